"""`h5zarr convert`: write references from one container into another."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    EXIT_CODES,
    PATTERNS,
    complain_of,
    complain_of_output,
    phrase,
    tell,
)
from h5zarr.cli.options import (
    OPENING,
    WRITING,
    add_opening,
    add_reporting,
    add_strict,
    add_writing,
    add_zarr_format,
    keywords,
)
from h5zarr.cli.outputs import check_report, describe_failure, write_report
from h5zarr.cli.translate import OUT_HELP

if TYPE_CHECKING:
    from h5zarr.zarr_model.hierarchy import ArrayNode, Json

HELP = """\
Write references from one container into another: JSON, Parquet or Icechunk, with version 2 or 3 of Zarr.

SOURCE can also be references written by kerchunk or VirtualiZarr. The files that they refer to are not read, and the
recorded state of those files is kept. Anything that OUT cannot represent is reported as a problem with the reason.
Values are never silently wrong.
"""
EXAMPLES = f"""\
examples:
  h5zarr convert refs.json refs.parquet                      for millions of chunks
  h5zarr convert refs.parquet refs.json.zst                  back to one file
  h5zarr convert refs.json icechunk+file:///data/ocean --message 'as of May'    commit to an Icechunk repository
  h5zarr convert icechunk+s3://bucket/ocean refs.json --at v1.0 --anon          read a branch, tag or snapshot
  h5zarr convert kerchunk.json refs.json                     from Zarr version 2 to version 3
  h5zarr convert refs.json old.json --zarr-format 2          for readers that support only version 2

fill values:
  In Zarr version 2, fill_value is both the value of unwritten chunks and what xarray treats as missing data. Version 3
  separates these: fill_value, and the attribute _FillValue. If an array follows xarray's convention, both are set.
  If fill_value is null and some chunks are unwritten, their value is unknown. Give it with --fill-value, or answer at
  the prompt; otherwise nothing is written. Values are JSON, as in Zarr metadata: 0, -9.5, "NaN".

{PATTERNS}
{EXIT_CODES}"""


def add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `convert` command."""
    parser = commands.add_parser(
        "convert",
        usage="h5zarr convert [OPTION ...] SOURCE OUT",
        help="write references from one container into another",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="references: JSON or Parquet at a path or URL, or an Icechunk repository"
    )
    parser.add_argument("out", metavar="OUT", help=OUT_HELP)
    form = parser.add_argument_group("what to write")
    add_zarr_format(form)
    form.add_argument(
        "--fill-value",
        action="append",
        default=[],
        type=fill_value,
        metavar="[PATTERN=]VALUE",
        help="fill value for version 2 arrays whose fill_value is null: for all of them, or for those whose path "
        "matches. May be repeated",
    )
    add_strict(form)
    add_writing(form)
    reading = parser.add_argument_group("reading")
    reading.add_argument("--at", metavar="NAME", help="branch, tag or snapshot of an Icechunk SOURCE (default main)")
    add_opening(reading)
    add_reporting(parser.add_argument_group("reporting"))
    parser.set_defaults(command=convert)


def convert(arguments: argparse.Namespace) -> int:
    """Write references, and say what happened."""
    from h5zarr.cli.progress import Progress
    from h5zarr.commands.convert.convert import conversion_lines
    from h5zarr.commands.convert.convert import convert as run
    from h5zarr.commands.translate.translation import ProblemsFound
    from h5zarr.commands.translate.translation_text import problem_lines
    from h5zarr.errors import H5ZarrError, OutputError
    from h5zarr.io.location import Location

    source = Location.parse(arguments.source)
    # A progress line would overwrite the question.
    ask = _ask if not arguments.quiet and sys.stdin.isatty() and sys.stderr.isatty() else None
    chosen = keywords(arguments, *OPENING, *WRITING, "zarr_format", "at", "strict")
    try:
        check_report(arguments, arguments.source)
        with Progress(source, is_shown=not arguments.quiet and sys.stderr.isatty() and ask is None) as progress:
            fill = dict(arguments.fill_value)
            done = run(arguments.source, arguments.out, fill_value=fill, ask=ask, on_open=progress.watch, **chosen)
    except H5ZarrError as error:
        if isinstance(error, ProblemsFound):
            tell(problem_lines(str(source), error.problems, phrase=phrase))
        write_report(arguments, describe_failure(source, error))
        if isinstance(error, OutputError):
            return complain_of_output(error)
        return complain_of(source, error)
    write_report(arguments, done.to_json())
    tell(conversion_lines(done, quiet=arguments.quiet, phrase=phrase))
    return DONE_WITH_PROBLEMS if done.problems else DONE


def fill_value(text: str) -> tuple[str, Json]:
    """Return a pattern of paths, all of them by default, and a value: JSON if it is valid JSON, else text."""
    # Base64 ends in equals signs, and paths may have some.
    pattern, equals, _ = text.rstrip("=").rpartition("=")
    value = text[len(pattern) + len(equals) :]
    if not value or (equals and not pattern):
        raise argparse.ArgumentTypeError(f"{text!r}: expected VALUE or PATTERN=VALUE")
    return pattern or "**", _decode(value)


def _decode(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=str)  # NaN and infinities are text in Zarr's metadata
    except ValueError:
        return text


def _ask(path: str, node: ArrayNode) -> Json:
    """Return the fill value that the user types; the one that zarr uses for null if they type none; None at the end."""
    from h5zarr.display import readable

    kind = node.data_type if isinstance(node.data_type, str) else node.data_type["name"]
    default = json.dumps(node.fill_value)
    tell([f"{readable(path)}, {kind}: fill_value is null, and some chunks were never written."])
    sys.stderr.write(f"Fill value for them? [{default}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        return None
    return _decode(answer.strip()) if answer.strip() else node.fill_value
