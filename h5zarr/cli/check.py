"""`h5zarr check`: can these files be virtualised, and combined?"""

from __future__ import annotations

import argparse
import json
import sys

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    complain,
    complain_of,
    phrase,
    read_list,
    tell,
    write_lines,
)
from h5zarr.cli.options import OPENING, SELECTION, add_allow, add_opening, add_selection, keywords, positive

HELP = """\
Report whether your files can be virtualised and combined, and what reading them costs.

For each variable, shows whether it is referenced, inlined or refused (with the reason), the cost of reading it, and
possible improvements. For several files, also shows what prevents combining them along an axis, and in which files.
Reads only metadata and writes nothing. Costs of local files are estimated as if they were in a nearby bucket.
"""
EXAMPLES = """\
examples:
  h5zarr check ocean.nc                            every variable of one file, and advice
  h5zarr check 2024-*.nc                           can they be combined, in the order given?
  h5zarr check 's3://bucket/ocean/*.nc' --anon     quote patterns for the cloud
  h5zarr check --files-from files.txt --along time one path or URL per line; - is standard input
  h5zarr check *.nc --each                         check each file by itself
  h5zarr check ocean.nc --json | jq '.files[].variables[] | select(.verdict == "refused")'

verdicts:
  referenced  the chunks stay in the file, and references point to them
  inlined     the references contain the values
  unwritten   nothing is stored; it reads as the fill value
  refused     it cannot be read through references, for the reason shown

combining:
  By default, the axis is the unlimited dimension, else time, else the only dimension whose length differs. --along
  selects another.
  Differences are grouped: if one file of 1,000 differs, one line names it.

exit codes:
  0  everything can be virtualised, and several files can be combined
  1  a variable is refused, or files differ. Advice alone does not change the exit code
  2  a file could not be read, or the command line is wrong
"""


def add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `check` command."""
    parser = commands.add_parser(
        "check",
        help="report whether files can be virtualised and combined, and at what cost",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr check [OPTION ...] SOURCE [SOURCE ...]\n       h5zarr check [OPTION ...] --files-from FILE",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="*",
        default=[],
        metavar="SOURCE",
        help="a path, a directory, a quoted pattern, or a URL that fsspec opens",
    )
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE")
    parser.add_argument(
        "--along",
        action="append",
        metavar="DIMENSION",
        help="combine along this dimension, which may be a new one. May be repeated, for tiles",
    )
    parser.add_argument("--each", action="store_true", help="check each file by itself")
    add_selection(parser, "check only this group")
    parser.add_argument("--all", action="store_true", help="show every variable of every file")
    parser.add_argument("--json", action="store_true", help="print the complete report as JSON")
    parser.add_argument("--at-once", type=positive, default=8, metavar="N", help="files to read at a time (default 8)")
    reading = parser.add_argument_group("reading")
    add_opening(reading)
    add_allow(reading, "let a SOURCE refer not only to files in and below its own directory, but also to files")
    parser.set_defaults(command=check)


def check(arguments: argparse.Namespace) -> int:
    """Check, and say what was found."""
    from h5zarr.cli.progress import CountLine
    from h5zarr.commands.check.check import check as run
    from h5zarr.commands.check.check_text import report_lines
    from h5zarr.errors import H5ZarrError

    sources = list(arguments.places)
    try:
        sources += read_list(arguments.files_from) if arguments.files_from else []
    except H5ZarrError as error:
        return complain(arguments.files_from, str(error), error.remedy)
    if not sources:
        tell(["h5zarr: give a SOURCE, or --files-from FILE", "  h5zarr check --help shows examples."])
        return NOTHING
    progress = CountLine("files", is_shown=sys.stderr.isatty() and not arguments.json)
    try:
        chosen = keywords(arguments, *SELECTION, *OPENING, "allow", "along", "each", "at_once")
        report = run(sources, on_file=progress.show, **chosen)
    except H5ZarrError as error:
        return complain_of(sources[0], error)
    finally:
        progress.wipe()
    if arguments.json:
        write_lines([json.dumps(report.to_json(), indent=2)])
    else:
        write_lines(report_lines(report, all=arguments.all, phrase=phrase))
    if report.unreadable:
        return NOTHING
    return DONE if report.is_virtualisable else DONE_WITH_PROBLEMS
