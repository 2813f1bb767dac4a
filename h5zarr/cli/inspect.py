"""`h5zarr inspect`: show what a file or references contain."""

from __future__ import annotations

import argparse
import os
import sys

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    EXIT_CODES,
    PATTERNS,
    complain,
    complain_of,
    phrase,
    write_lines,
)
from h5zarr.cli.options import OPENING, add_opening, keywords

PIPE_WIDTH = 100  # columns, if the output is not a terminal

HELP = """\
Show what a file contains: groups, dimensions, variables with type, shape and storage, attributes and links. References
are shown in the same way, with the files that they refer to, and where each file is in a cube of h5zarr combine.

Reads only metadata; of references, not the files that they refer to. Similar members are folded, long values are
shortened, and the attributes that netCDF-4 uses to store dimensions are shown as dimensions. --all shows everything in
full.
"""
EXAMPLES = f"""\
examples:
  h5zarr inspect ocean.nc                            the whole file
  h5zarr inspect ocean.nc --no-attributes            only types, shapes and storage
  h5zarr inspect ocean.nc --path temp                one variable, in any group
  h5zarr inspect ocean.nc --path '/forecast/*_bnds'  some variables of one group
  h5zarr inspect ocean.nc --depth 1                  only the root group
  h5zarr inspect s3://bucket/ocean.nc --anon
  h5zarr inspect cube.parquet                        references, and the files of a cube
  h5zarr inspect ocean.nc --json | jq '.datasets | map_values(.layout.chunk_shape)'

{PATTERNS}
{EXIT_CODES}"""


def add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `inspect` command."""
    parser = commands.add_parser(
        "inspect",
        usage="h5zarr inspect [OPTION ...] SOURCE",
        help="show what a file or references contain",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a path, or a URL that fsspec opens (https, s3, gs, ...), of a file or of references",
    )
    parser.add_argument("--path", metavar="PATTERN", help="show only objects that match, and their contents")
    parser.add_argument("--depth", type=_depth, metavar="N", help="show N levels of groups; 1 shows only the root")
    parser.add_argument("--all", action="store_true", help="show everything in full")
    parser.add_argument("--no-attributes", action="store_true", help="leave out attributes")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="whether to print names in bold; auto does so on a terminal (default auto)",
    )
    reading = parser.add_argument_group("reading")
    reading.add_argument("--at", metavar="NAME", help="branch, tag or snapshot of an Icechunk SOURCE (default main)")
    add_opening(reading)
    parser.set_defaults(command=inspect)


def inspect(arguments: argparse.Namespace) -> int:
    """Show what a file or references contain."""
    import json

    from h5zarr.commands.inspect.inspect import NothingMatches
    from h5zarr.commands.inspect.inspect import inspect as run
    from h5zarr.errors import H5ZarrError

    try:
        found = run(arguments.source, **keywords(arguments, *OPENING, "path", "depth", "no_attributes", "at"))
        if arguments.json:
            lines = [json.dumps(found.to_json(), indent=2, allow_nan=False)]
        else:
            lines = found.lines(all=arguments.all, width=_width(), color=_is_coloured(arguments.color), phrase=phrase)
    except NothingMatches as error:
        return complain(arguments.source, str(error), error.remedy)
    except H5ZarrError as error:
        return complain_of(arguments.source, error)
    write_lines(lines)
    return DONE_WITH_PROBLEMS if found.problems else DONE


def _width() -> int:
    from shutil import get_terminal_size

    return max(get_terminal_size((PIPE_WIDTH, 24)).columns, 60) if sys.stdout.isatty() else PIPE_WIDTH


def _is_coloured(choice: str) -> bool:
    return choice == "always" or (choice == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def _depth(text: str) -> int:
    depth = int(text) if text.isdecimal() else 0
    if depth < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of levels of at least 1")
    return depth
