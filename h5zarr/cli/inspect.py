"""`h5zarr inspect`: show what a file holds."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    EXIT_CODES,
    add_limits,
    add_storage_options,
    complain,
    complain_of_source,
    source_limits,
    source_options,
    source_policy,
    write_lines,
)

if TYPE_CHECKING:
    from h5zarr.errors import Problem
    from h5zarr.hdf5.model import H5File
    from h5zarr.inspect.view import View
    from h5zarr.io.log import RequestLog
    from h5zarr.netcdf3.model import ClassicFile

PIPE_WIDTH = 100  # columns, where there is no terminal to ask

INSPECT_HELP = """\
Show what a file holds: groups, dimensions, variables with type, shape and storage, attributes and links.

Only metadata is read. Members that are alike are folded, long values are shortened, and the attributes in which
netCDF-4 keeps its dimensions are shown as dimensions; --all shows everything as it stands.
"""
INSPECT_EXAMPLES = f"""\
examples:
  h5zarr inspect ocean.nc                            the whole file
  h5zarr inspect ocean.nc --no-attributes            types, shapes and storage only
  h5zarr inspect ocean.nc --path temp                one variable, wherever it is
  h5zarr inspect ocean.nc --path '/forecast/*_bnds'  some variables of one group
  h5zarr inspect ocean.nc --depth 1                  the root group only
  h5zarr inspect s3://bucket/ocean.nc --storage-option anon=true
  h5zarr inspect ocean.nc --json | jq '.datasets | map_values(.layout.chunk_shape)'

patterns:
  *, ? and [...] match within one name, ** any number of groups. A pattern without a leading slash matches at any depth.

{EXIT_CODES}"""


def add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `inspect` command."""
    parser = commands.add_parser(
        "inspect",
        help="show what a file holds",
        description=INSPECT_HELP,
        epilog=INSPECT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", metavar="URL", help="a path, or a URL that fsspec can open (https, s3, gs, ...)")
    parser.add_argument("--path", metavar="PATTERN", help="show only these objects, and what is in them")
    parser.add_argument("--depth", type=_depth, metavar="N", help="open groups down to N levels; 1 is the root only")
    parser.add_argument("--all", action="store_true", help="shorten, fold and leave out nothing")
    parser.add_argument("--no-attributes", action="store_true", help="leave out attributes")
    parser.add_argument("--json", action="store_true", help="write JSON, complete whatever the size")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="names in bold")
    add_storage_options(parser)
    add_limits(parser)
    parser.set_defaults(command=inspect)


def inspect(arguments: argparse.Namespace) -> int:
    """Show what a file holds."""
    from h5zarr.errors import H5ZarrError
    from h5zarr.inspect.classic import find_problems
    from h5zarr.io.source import open_source
    from h5zarr.netcdf3.model import ClassicFile
    from h5zarr.scanning import scan_any

    try:
        options, policy = source_options(arguments.url, arguments), source_policy(arguments)
        with open_source(arguments.url, options, policy) as source:
            file = scan_any(source, source_limits(arguments))
            nbytes, log = source.nbytes, source.log
    except H5ZarrError as error:
        return complain_of_source(arguments.url, error)
    if isinstance(file, ClassicFile):
        problems = find_problems(file)
        is_shown = _show_classic(arguments, file, problems, log)
    else:
        problems = file.problems
        is_shown = (_show_json if arguments.json else _show_text)(arguments, file, nbytes, log)
    if not is_shown:
        remedy = "Names are case-sensitive; a pattern without a leading slash matches at any depth."
        return complain(arguments.url, f"nothing matches {arguments.path}", remedy)
    return DONE_WITH_PROBLEMS if problems else DONE


def _show_classic(
    arguments: argparse.Namespace, file: ClassicFile, problems: tuple[Problem, ...], log: RequestLog
) -> bool:
    """Write what a netCDF-3 file holds; return False, having written nothing, when nothing matches."""
    import json

    from h5zarr.inspect.classic import classic_summary, render_classic
    from h5zarr.inspect.classic_json import describe_classic
    from h5zarr.inspect.report import problem_lines

    if arguments.json:
        described = describe_classic(
            file, problems, log, pattern=arguments.path, attributes=not arguments.no_attributes
        )
        if not (described["groups"] or described["datasets"]):
            return False
        write_lines((json.dumps(described, indent=2, allow_nan=False),))
        return True
    lines = render_classic(file, _view(arguments))
    if not lines:
        return False
    write_lines((*lines, *(("", *problem_lines(problems)) if problems else ())))
    write_lines(("", classic_summary(file, problems, log)))
    return True


def _show_text(arguments: argparse.Namespace, file: H5File, nbytes: int, log: RequestLog) -> bool:
    """Write the tree, the problems and the summary; return False, having written nothing, when nothing matches."""
    from h5zarr.inspect.report import problem_lines, summary
    from h5zarr.inspect.text import open_page, render

    page = open_page(file, _view(arguments))
    if page.part.is_empty:
        return False
    write_lines(render(page))
    if file.problems:
        write_lines(("", *problem_lines(file.problems)))
    write_lines(("", summary(file, nbytes, log)))
    return True


def _show_json(arguments: argparse.Namespace, file: H5File, nbytes: int, log: RequestLog) -> bool:
    import json

    from h5zarr.inspect.json import describe

    described = describe(
        file,
        nbytes,
        log,
        pattern=arguments.path,
        depth=arguments.depth,
        attributes=not arguments.no_attributes,
    )
    if not (described["groups"] or described["datasets"] or described["datatypes"]):
        return False
    write_lines((json.dumps(described, indent=2, allow_nan=False),))
    return True


def _view(arguments: argparse.Namespace) -> View:
    from shutil import get_terminal_size

    from h5zarr.inspect.view import View

    is_terminal = sys.stdout.isatty()
    return View(
        everything=arguments.all,
        attributes=not arguments.no_attributes,
        pattern=arguments.path,
        depth=arguments.depth,
        width=max(get_terminal_size((PIPE_WIDTH, 24)).columns, 60) if is_terminal else PIPE_WIDTH,
        colour=arguments.color == "always"
        or (arguments.color == "auto" and is_terminal and not os.environ.get("NO_COLOR")),
    )


def _depth(text: str) -> int:
    depth = int(text) if text.isdecimal() else 0
    if depth < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of levels, 1 or more")
    return depth
