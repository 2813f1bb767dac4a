"""`h5zarr check`: can these files be virtualised, and combined?"""

from __future__ import annotations

import argparse
import json
import sys

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    add_storage_options,
    complain,
    positive,
    source_options,
    source_policy,
    tell,
    write_lines,
)

HELP = """\
Say what becomes of each variable of a file: referenced, inlined, or refused and why; what it costs to read it, and what
would make that better. Of several files, say also what keeps them from being combined along an axis, naming the files.

As by a translation, only metadata is read, and what is inlined; nothing is written. A local file is looked at as if it
were in a bucket near by.
"""
EXAMPLES = """\
examples:
  h5zarr check ocean.nc                            every variable of one file, and advice
  h5zarr check 2024-*.nc                           can they be combined? They are joined in the order of the names
  h5zarr check 's3://bucket/ocean/*.nc' --anon     patterns of the cloud stand in quotes
  h5zarr check --files-from files.txt --along time one path or URL on a line; - is standard input
  h5zarr check *.nc --each                         each by itself; they are not meant to be combined
  h5zarr check ocean.nc --json | jq '.files[].variables[] | select(.verdict == "refused")'

verdicts:
  referenced  the chunks stay in the file, and references point to them
  inlined     the references hold the values themselves
  unwritten   nothing is stored; it reads as fill
  refused     it cannot be had through references, for the reason that is shown

combining:
  The axis is the dimension that may grow, else that of time, else the only one that differs in length; or --along.
  Everything that is told must be the same in all files. 1,000 files of which one is odd give one line, which names it.

exit codes:
  0  everything can be virtualised; several files can also be combined
  1  something cannot: see what is refused, and what differs. Advice alone is no reason
  2  a file could not be read, or the command line is wrong
"""


def add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `check` command."""
    parser = commands.add_parser(
        "check",
        help="say whether files can be virtualised and combined, and at what cost",
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
        help="a path, a directory, a pattern in quotes, or a URL that fsspec can open",
    )
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE")
    parser.add_argument("--along", metavar="DIMENSION", help="combine along this dimension, which may be a new one")
    parser.add_argument("--group", default="/", metavar="PATH", help="check only what is below this group")
    parser.add_argument("--include", action="append", default=[], metavar="PATTERN", help="only these variables")
    parser.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help="not these variables")
    parser.add_argument("--each", action="store_true", help="check each file by itself, not whether they fit together")
    parser.add_argument("--all", action="store_true", help="show every variable of every file")
    parser.add_argument("--json", action="store_true", help="write JSON, complete whatever the size")
    parser.add_argument("--at-once", type=positive, default=8, metavar="N", help="files under way (default 8)")
    add_storage_options(parser.add_argument_group("reading"))
    parser.set_defaults(command=check)


def check(arguments: argparse.Namespace) -> int:
    """Check, and say what was found."""
    from h5zarr.checking.check import check as run
    from h5zarr.checking.text import report_lines
    from h5zarr.errors import H5ZarrError
    from h5zarr.selecting import Selection
    from h5zarr.translating import Options

    sources = list(arguments.places)
    try:
        sources += _read_list(arguments.files_from) if arguments.files_from else []
    except OSError as error:
        return complain(arguments.files_from, f"could not be read: {error.strerror or type(error).__name__}")
    if not sources:
        tell(["h5zarr: give a SOURCE, or --files-from FILE", "  h5zarr check --help shows examples."])
        return NOTHING
    selection = Selection(group=arguments.group, include=arguments.include, exclude=arguments.exclude)
    progress = _Progress(is_shown=sys.stderr.isatty() and not arguments.json)
    try:
        report = run(
            sources,
            combine=False if arguments.each else None,
            along=arguments.along,
            storage_options=source_options(sources[0], arguments),
            policy=source_policy(arguments),
            options=Options(selection=selection),
            at_once=arguments.at_once,
            on_file=progress.show,
        )
    except H5ZarrError as error:
        return complain(sources[0], str(error), error.remedy)
    finally:
        progress.wipe()
    is_json = arguments.json
    write_lines([json.dumps(report.to_json(), indent=2)] if is_json else report_lines(report, in_full=arguments.all))
    if report.unreadable:
        return NOTHING
    return DONE if report.is_virtualisable else DONE_WITH_PROBLEMS


def _read_list(place: str) -> list[str]:
    from h5zarr.indexing.listing import read_names

    if place == "-":
        return read_names(sys.stdin)
    with open(place, encoding="utf-8") as lines:
        return read_names(lines)


class _Progress:
    """A line that shows how many files are done."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown
        self._done = 0

    def show(self, source: str, count: int) -> None:
        self._done += 1
        if self._is_shown and count > 1:
            sys.stderr.write(f"\r\x1b[K{self._done:,} of {count:,} files, {source[-60:]}")
            sys.stderr.flush()

    def wipe(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
