"""`h5zarr combine`: one dataset from many files."""

from __future__ import annotations

import argparse
import os
import sys

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    PATTERNS,
    complain,
    complain_of,
    complain_of_output,
    phrase,
    read_list,
    tell,
    write_lines,
)
from h5zarr.cli.options import (
    OPENING,
    SELECTION,
    WRITING,
    add_allow,
    add_max_inline,
    add_opening,
    add_reporting,
    add_selection,
    add_strict,
    add_writing,
    keywords,
    positive,
)
from h5zarr.cli.outputs import check_report, describe_failure, write_report
from h5zarr.cli.update import add_updating, check_options, update

HELP = """\
Make one dataset of many files, without copying a byte.

The files are put in order by their coordinate, whatever their names are. Files with different variables are merged.
If files differ in a way that one dataset cannot express, nothing is written, and the message names them. Values are
never silently wrong.
"""
EXAMPLES = f"""\
examples:
  h5zarr combine '2024-*.nc' year.json                         along the unlimited dimension, or time
  h5zarr combine 's3://bucket/tas_*.nc' tas.parquet --along time --anon
  h5zarr combine 'tiles/*.nc' grid.json --along time --along x  tiles in two dimensions
  h5zarr combine 'member*.nc' all.json --along member          a new dimension, in the order given
  h5zarr combine '*.nc' runs.json --along 'run=name:ocean_%Y%m%d'  a new dimension, with dates from the names
  h5zarr combine refs/ cube.json                               from an index; its files are not read again
  h5zarr combine '*.nc' --dry-run                              show the plan and write nothing
  h5zarr combine --update cube.json                            add new files, read changed ones again
  h5zarr combine --update cube.json new.nc --prune             only look at some files

the axis:
  --along NAME                  a dimension of the files, or a new one: ordered by a scalar variable of that name,
                                else in the order given
  --along NAME=name:PATTERN     coordinates from file names: a regular expression with one group, such as
                                'run=name:ocean_(\\d+)', or a date format, such as 'run=name:ocean_%Y%m%d'
  --along NAME=attr:ATTRIBUTE   coordinates from an attribute of each file
  --along NAME=START/STOP/STEP  a time axis laid out ahead, such as time=2000-01-01/2030-01-01/PT30M; STOP is not
                                part of it, and times without a file read as missing data
  By default, the axis is the unlimited dimension, else time, else the only dimension whose length differs. Files
  without any of these are merged, if they have different variables. --merge joins no dimension in any case.

open the result:
  xarray.open_dataset("cube.json", engine="h5zarr")
  The summary says what other readers cannot open, and why.

{PATTERNS}
exit codes:
  0  everything was joined, or the cube is up to date
  1  joined or updated, but something is left out: see the problems. Files that were left out before do not count
  2  nothing was written, or the command line is wrong
"""
_SEE_HELP = "  h5zarr combine --help shows examples."
_CHOICES = (
    "along",
    "merge",
    "on_duplicate",
    "constant",
    "attributes",
    "skip_broken",
    "strict",
    "max_inline_bytes",
    "at_once",
    "dry_run",
)


def add_combine(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `combine` command."""
    parser = commands.add_parser(
        "combine",
        help="make one dataset of many files",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr combine [OPTION ...] SOURCE ... OUT\n       h5zarr combine [OPTION ...] --files-from FILE OUT\n"
        "       h5zarr combine [OPTION ...] --update CUBE [SOURCE ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="*",
        metavar="SOURCE ... OUT",
        help="SOURCE: files, quoted patterns, directories, references in any container, or the directory of an index; "
        "OUT: a path or URL ending in .json, .json.gz, .json.zst or .parquet (a directory), - for standard output, "
        "or icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX. With --dry-run, OUT may be left out",
    )
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE instead of SOURCE ...")
    _add_joining(parser.add_argument_group("how to join"))
    add_updating(parser.add_argument_group("updating a cube"))
    add_selection(parser.add_argument_group("what to join"), "join only this group, which becomes the root")
    form = parser.add_argument_group("what to write")
    form.add_argument("--dry-run", action="store_true", help="show the plan, and write nothing")
    add_max_inline(form)
    add_strict(form)
    add_writing(form)
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--skip-broken", action="store_true", help="leave out files that cannot be read, and name them"
    )
    reading.add_argument(
        "--at-once", type=positive, default=8, metavar="N", help="remote files to read at a time (default 8)"
    )
    add_opening(reading)
    add_allow(reading, "let a SOURCE refer not only to files in and below its own directory, but also to files")
    add_reporting(parser.add_argument_group("reporting"))
    usual = argparse.Namespace(**{action.dest: action.default for action in parser._actions})
    parser.set_defaults(command=combine, usual=usual)


def _add_joining(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--along",
        action="append",
        metavar="NAME[=SOURCE]",
        help="the dimension to join along; see below. May be repeated, for tiles",
    )
    group.add_argument(
        "--merge",
        action="store_true",
        help="join no dimension: the dataset has the variables of all files",
    )
    group.add_argument(
        "--on-duplicate",
        choices=("refuse", "first", "last", "newest"),
        default="refuse",
        help="which file to use if several have the same part of a variable: none (refuse, the default), the first or "
        "last one given, or the one that was changed last (newest)",
    )
    group.add_argument(
        "--constant",
        choices=("refuse", "first", "along"),
        default="refuse",
        help="what to do if a variable without the joined dimension differs between files: stop (refuse, the "
        "default), use that of the first file along the axis, or give it the joined dimension (along)",
    )
    group.add_argument(
        "--attributes",
        choices=("first", "drop-conflicts", "strict"),
        default="first",
        help="attributes that differ between files: use those of the first file along the axis (first, the default), "
        "leave out those that differ, or stop (strict)",
    )


def combine(arguments: argparse.Namespace) -> int:
    """Join files, or update a cube, and say what happened."""
    if not check_options(arguments, arguments.usual):
        return NOTHING
    return _join(arguments) if arguments.update is None else update(arguments)


def _join(arguments: argparse.Namespace) -> int:
    from h5zarr.cli.progress import CountLine
    from h5zarr.commands.combine.combine import combine as run
    from h5zarr.commands.combine.cube import SomeRefused
    from h5zarr.commands.combine.cube_text import axis_lines, cube_lines, outcome_lines
    from h5zarr.commands.translate.translation import ProblemsFound
    from h5zarr.commands.translate.translation_text import problem_lines
    from h5zarr.display import counted, readable
    from h5zarr.errors import H5ZarrError, NotJoinable, OutputError
    from h5zarr.io.location import Location

    if not _take_places(arguments):
        return NOTHING
    progress = CountLine("files", is_shown=sys.stderr.isatty() and not arguments.quiet)
    chosen = keywords(arguments, *_CHOICES, *SELECTION, *OPENING, *WRITING, "allow")
    first = Location.parse((arguments.sources or [arguments.files_from])[0])
    try:
        check_report(arguments, *arguments.sources)
        sources = arguments.sources if arguments.files_from is None else read_list(arguments.files_from)
        done = run(sources, arguments.out, on_file=progress.show, **chosen)
    except H5ZarrError as error:
        progress.wipe()
        if isinstance(error, ProblemsFound):
            tell(problem_lines(str(first), error.problems, phrase=phrase))
        write_report(arguments, describe_failure(first, error) | _describe_plan(error))
        if isinstance(error, SomeRefused):
            tell([*axis_lines(error.axes), *outcome_lines([one for one in error.outcomes if one.notes], phrase=phrase)])
            count = sum(one.how == "refused" for one in error.outcomes)
            tell([f"h5zarr: nothing was written: {counted(count, 'variable')} refused"])
            return NOTHING
        if isinstance(error, NotJoinable):  # the message names the files
            tell([f"h5zarr: {readable(phrase(str(error)))}", f"  {readable(phrase(error.remedy))}"])
            return NOTHING
        if isinstance(error, OutputError):
            return complain_of_output(error)
        return complain_of(first, error)
    progress.wipe()
    write_report(arguments, done.to_json())
    if arguments.dry_run:
        write_lines([*cube_lines(done, phrase=phrase, is_plan=True)])
    else:
        tell(cube_lines(done, quiet=arguments.quiet, phrase=phrase))
    return DONE_WITH_PROBLEMS if done.problems else DONE


def _describe_plan(error: Exception) -> dict[str, object]:
    """Return the outcome of every variable, for the report of a job that wrote nothing."""
    return {"variables": [one.to_json() for one in getattr(error, "outcomes", ())]}


def _is_source(place: str) -> bool:
    """Return whether the last argument is a file that the shell found for a pattern: OUT was forgotten."""
    return os.path.isfile(place) and place.lower().endswith((".nc", ".nc4", ".h5", ".hdf5", ".cdf"))


def _take_places(arguments: argparse.Namespace) -> bool:
    """Split the places into sources and OUT, which a dry run does not need."""
    from h5zarr.containers.registry import names_output

    *arguments.sources, arguments.out = arguments.places or [None]
    if arguments.out is None:
        tell(["h5zarr: give at least one source, and then OUT, such as cube.json", _SEE_HELP])
        return False
    if arguments.dry_run and not names_output(arguments.out):
        arguments.sources, arguments.out = arguments.places, None
    if arguments.sources and arguments.out is not None and _is_source(arguments.out):
        complain(arguments.out, "this is a file, but the last argument is OUT, such as cube.json")
        return False
    if bool(arguments.sources) is (arguments.files_from is None):
        return True
    if arguments.sources:
        what = "give either sources or --files-from FILE, and then OUT"
    else:
        what = "give at least one source, and then OUT, such as cube.json"
    tell([f"h5zarr: {what}", _SEE_HELP])
    return False
