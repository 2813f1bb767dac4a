"""`h5zarr translate`: write Zarr references for a file."""

from __future__ import annotations

import argparse
import sys

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, EXIT_CODES, PATTERNS, complain_of_source, phrase, tell
from h5zarr.cli.options import (
    FORM,
    OPENING,
    SELECTION,
    WRITING,
    add_allow,
    add_form,
    add_opening,
    add_reporting,
    add_selection,
    add_strict,
    add_writing,
    keywords,
)
from h5zarr.cli.outputs import check_report, describe_failure, write_report

OUT_HELP = (
    "where to write: a path or URL ending in .json, .json.gz, .json.zst or .parquet (a directory); - is standard "
    "output; icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX is an Icechunk repository, created if needed"
)
HELP = """\
Write Zarr metadata and references to the chunks of a file, so that zarr, xarray and Dask read it as if it were Zarr.

Reads only metadata, and small arrays to inline. Every dataset is referenced, inlined, or reported as a problem with the
reason. Values are never silently wrong.
"""
EXAMPLES = f"""\
examples:
  h5zarr translate ocean.nc ocean.json
  h5zarr translate s3://bucket/ocean.nc ocean.json.zst --anon
  h5zarr translate ocean.nc ocean.json --target-url s3://bucket/ocean.nc    scan a local copy, refer to the bucket
  h5zarr translate ocean.nc ocean.json --include 'sst' --include time --include l[ao][tn]
  h5zarr translate ocean.nc ocean.json --group /forecast --exclude '*_bnds'
  h5zarr translate ocean.nc icechunk+file:///data/ocean --message 'as of May'    commit to an Icechunk repository
  h5zarr translate ocean.nc - | jq '.refs | keys'            write to standard output
  h5zarr translate ocean.nc ocean.parquet                    a directory of Parquet files, for millions of chunks

open the references:
  xarray.open_dataset("ocean.json", engine="h5zarr")
  Without h5zarr:
  xarray.open_dataset("reference://", engine="zarr", storage_options={{"fo": "ocean.json"}})
  If the file is on http or s3, add "remote_options": {{"asynchronous": True}} to the storage options; for Parquet, add
  "remote_protocol": "file", "https" or "s3".
  Open an Icechunk repository with the icechunk package, and authorise it to read the files:
  repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access={{"file:///data/": None}})
  xarray.open_zarr(repository.readonly_session("main").store, consolidated=False)

{PATTERNS}
{EXIT_CODES}"""


def add_translate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `translate` command."""
    parser = commands.add_parser(
        "translate",
        usage="h5zarr translate [OPTION ...] SOURCE OUT",
        help="write Zarr references for a file",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="a path, or a URL that fsspec opens (https, s3, gs, ...)")
    parser.add_argument("out", metavar="OUT", help=OUT_HELP)
    part = parser.add_argument_group("what to translate")
    add_selection(part)
    add_strict(part)
    form = parser.add_argument_group("what to write")
    form.add_argument("--target-url", metavar="URL", help="the URL to write into the references in place of SOURCE")
    add_form(form)
    add_writing(form)
    reading = parser.add_argument_group("reading")
    add_opening(reading)
    add_allow(reading, "let SOURCE refer not only to files in and below its own directory, but also to files")
    add_reporting(parser.add_argument_group("reporting"))
    parser.set_defaults(command=translate)


def translate(arguments: argparse.Namespace) -> int:
    """Write references, and say what happened."""
    from h5zarr.cli.progress import Progress
    from h5zarr.commands.translate.translate import translate as run
    from h5zarr.commands.translate.translation import ProblemsFound
    from h5zarr.commands.translate.translation_text import problem_lines, translation_lines
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location

    source = Location.parse(arguments.source)
    chosen = keywords(arguments, *SELECTION, *FORM, *WRITING, *OPENING, "allow", "strict", "target_url")
    try:
        check_report(arguments, arguments.source)
        with Progress(source, is_shown=not arguments.quiet and sys.stderr.isatty()) as progress:
            done = run(arguments.source, arguments.out, on_open=progress.watch, **chosen)
    except H5ZarrError as error:
        if isinstance(error, ProblemsFound):
            tell(problem_lines(str(source), error.problems, phrase=phrase))
        write_report(arguments, describe_failure(source, error))
        return complain_of_source(arguments.source, error)
    write_report(arguments, done.to_json())
    tell(translation_lines(done, quiet=arguments.quiet, phrase=phrase))
    return DONE_WITH_PROBLEMS if done.problems else DONE
