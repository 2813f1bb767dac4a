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
    add_storage_options,
    complain,
    source_options,
    source_policy,
    tell,
)
from h5zarr.cli.outputs import add_output_options, add_report_options, check_report, chosen_commit, write_report

if TYPE_CHECKING:
    from h5zarr.hierarchy import ArrayNode, Json

HELP = """\
Write references from one container into another: JSON, Parquet, or an Icechunk repository; version 2 or 3 of Zarr.

References of kerchunk and VirtualiZarr are read, too. The files that are referred to are not read, and what is known
of their state goes along. What OUT cannot hold is named among the problems with the reason: never wrong values.
"""
EXAMPLES = f"""\
examples:
  h5zarr convert refs.json refs.parquet                      for very many chunks
  h5zarr convert refs.parquet refs.json.zst                  one file again
  h5zarr convert refs.json icechunk+file:///data/ocean --message 'as of May'    a new snapshot of a repository
  h5zarr convert icechunk+s3://bucket/ocean refs.json --at v1.0 --anon          a branch, a tag or a snapshot
  h5zarr convert kerchunk.json refs.json                     Zarr version 2 becomes version 3
  h5zarr convert refs.json old.json --zarr-format 2          for readers that know version 2 only

fill values:
  In version 2, fill_value is both what unwritten chunks read as and what xarray takes for missing data. In version 3 it
  is the former, and the attribute _FillValue the latter: what was written by xarray's convention becomes both.
  If it is null, and there are unwritten chunks, nobody knows what those read as: --fill-value says it, else it is asked
  for at a terminal, else nothing is written. Values are JSON, as in Zarr's metadata: 0, -9.5, "NaN".

patterns:
  *, ? and [...] match within one name, ** any number of groups. A pattern without a leading slash matches at any depth.

{EXIT_CODES}"""


def add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `convert` command."""
    parser = commands.add_parser(
        "convert",
        help="write references from one container into another",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="references: a path or URL of JSON or Parquet, or an Icechunk repository, as for OUT",
    )
    parser.add_argument(
        "out",
        metavar="OUT",
        help="where to write: a path or URL, - is standard output; .gz and .zst compress, .parquet is a directory; "
        "icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX is an Icechunk repository, made if it is not there",
    )
    form = parser.add_argument_group("how")
    form.add_argument("--zarr-format", type=int, choices=(2, 3), default=3, help="version of the metadata (default 3)")
    form.add_argument(
        "--fill-value",
        action="append",
        default=[],
        type=fill_value,
        metavar="[PATTERN=]VALUE",
        help="what unwritten chunks read as, of arrays for which version 2 has null: all of them, or those whose path "
        "fits. May be repeated",
    )
    form.add_argument("--strict", action="store_true", help="write nothing if anything must be left out")
    add_output_options(form)
    reading = parser.add_argument_group("reading and reporting")
    reading.add_argument("--at", metavar="NAME", help="branch, tag or snapshot of SOURCE in Icechunk (default main)")
    add_storage_options(reading)
    add_report_options(reading)
    parser.set_defaults(command=convert)


def convert(arguments: argparse.Namespace) -> int:
    """Write references, and say what happened."""
    from h5zarr.cli.progress import Progress
    from h5zarr.cli.report import conversion_lines, describe_conversion, describe_failure, problem_lines
    from h5zarr.converting import convert as run
    from h5zarr.errors import H5ZarrError
    from h5zarr.translating import ProblemsFound

    source = arguments.source
    # Nobody could answer below a line that moves.
    ask = _ask if not arguments.quiet and sys.stdin.isatty() and sys.stderr.isatty() else None
    try:
        check_report(arguments)
        with Progress(source, is_shown=not arguments.quiet and sys.stderr.isatty() and ask is None) as progress:
            done = run(
                source,
                arguments.out,
                storage_options=source_options(source, arguments),
                output_options=dict(arguments.output_option),
                policy=source_policy(arguments),
                zarr_format=arguments.zarr_format,
                fill_values=dict(arguments.fill_value),
                ask=ask,
                at=arguments.at,
                commit=chosen_commit(arguments),
                strict=arguments.strict,
                on_open=progress.watch,
            )
    except H5ZarrError as error:
        if isinstance(error, ProblemsFound):
            tell(problem_lines(source, error.problems))
        write_report(arguments, describe_failure(source, error))
        return complain(source, str(error), error.remedy)
    write_report(arguments, describe_conversion(source, done))
    tell(conversion_lines(source, done, quiet=arguments.quiet))
    return DONE_WITH_PROBLEMS if done.problems else DONE


def fill_value(text: str) -> tuple[str, Json]:
    """Return a pattern of paths and a value: JSON where it is some, else text. Without a pattern, all are meant."""
    # Base64 ends in equals signs, and paths may have some.
    pattern, equals, _ = text.rstrip("=").rpartition("=")
    value = text[len(pattern) + len(equals) :]
    if not value or (equals and not pattern):
        raise argparse.ArgumentTypeError(f"{text!r}: VALUE or PATTERN=VALUE is wanted")
    return pattern or "**", _decode(value)


def _decode(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=str)  # NaN and infinities are text in Zarr's metadata
    except ValueError:
        return text


def _ask(path: str, node: ArrayNode) -> Json:
    """Return what the user says of an array; what zarr reads where they say nothing; None where they leave."""
    from h5zarr.inspect.escape import readable

    kind = node.data_type if isinstance(node.data_type, str) else node.data_type["name"]
    default = json.dumps(node.fill_value)
    tell([f"{readable(path)}, {kind}: fill_value is null, and there are chunks that were never written."])
    sys.stderr.write(f"What should they read as? [{default}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        return None
    return _decode(answer.strip()) if answer.strip() else node.fill_value
