"""`h5zarr translate`: write Zarr references for a file."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    EXIT_CODES,
    add_allow,
    add_limits,
    add_storage_options,
    complain_of_source,
    source_limits,
    source_options,
    source_policy,
    tell,
)
from h5zarr.cli.outputs import add_output_options, add_report_options, check_report, chosen_commit, write_report

if TYPE_CHECKING:
    from h5zarr.translating import Options

HELP = """\
Write Zarr metadata and references to the chunks of a file, so that zarr, xarray and dask read it as if it were Zarr.

Only metadata is read, and small arrays that are inlined. Every dataset is referred to, inlined, or named among the
problems with the reason: never wrong values.
"""
EXAMPLES = f"""\
examples:
  h5zarr translate ocean.nc ocean.json                       references beside the file
  h5zarr translate s3://bucket/ocean.nc ocean.json.zst --anon
  h5zarr translate ocean.nc ocean.json --target-url s3://bucket/ocean.nc    scan here, refer there
  h5zarr translate ocean.nc ocean.json --include 'sst' --include time --include l[ao][tn]
  h5zarr translate ocean.nc ocean.json --group /forecast --exclude '*_bnds'
  h5zarr translate ocean.nc icechunk+file:///data/ocean --message 'as of May'    a new snapshot of a repository
  h5zarr translate ocean.nc - | jq '.refs | keys'            to standard output
  h5zarr translate ocean.nc ocean.parquet                    a directory of Parquet files, for very many chunks

open them with:
  xarray.open_dataset("ocean.json", engine="h5zarr")
  Without h5zarr:
  xarray.open_dataset("reference://", engine="zarr", storage_options={{"fo": "ocean.json"}})
  That needs "remote_options": {{"asynchronous": True}} in the storage options for files on http or s3,
  and "remote_protocol": "file", "https" or "s3" for Parquet.
  An Icechunk repository is opened with the package icechunk, which must be allowed to read the files:
  repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access={{"file:///data/": None}})
  xarray.open_zarr(repository.readonly_session("main").store, consolidated=False)

patterns:
  *, ? and [...] match within one name, ** any number of groups. A pattern without a leading slash matches at any depth;
  one that matches a group matches all that is in it.

{EXIT_CODES}"""


def add_translate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `translate` command."""
    parser = commands.add_parser(
        "translate",
        help="write Zarr references for a file",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="a path, or a URL that fsspec can open (https, s3, gs, ...)")
    parser.add_argument(
        "out",
        metavar="OUT",
        help="where to write: a path or URL, - is standard output; .gz and .zst compress, .parquet is a directory; "
        "icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX is an Icechunk repository, made if it is not there",
    )
    part = parser.add_argument_group("what")
    part.add_argument("--group", default="/", metavar="PATH", help="only this group, which becomes the root")
    part.add_argument("--include", action="append", default=[], metavar="PATTERN", help="only these arrays")
    part.add_argument("--exclude", action="append", default=[], metavar="PATTERN", help="not these arrays")
    part.add_argument("--strict", action="store_true", help="write nothing if anything must be left out")
    _add_form(parser.add_argument_group("how"))
    reading = parser.add_argument_group("reading and reporting")
    add_storage_options(reading)
    add_allow(reading, "besides files in the directory of SOURCE, let it refer to those")
    add_limits(reading)
    add_report_options(reading)
    parser.set_defaults(command=translate)


def _add_form(form: argparse._ArgumentGroup) -> None:
    form.add_argument("--target-url", metavar="URL", help="what the references refer to, if not SOURCE")
    form.add_argument("--zarr-format", type=int, choices=(2, 3), default=3, help="version of the metadata (default 3)")
    form.add_argument("--nz", action="store_true", help="declare the NZ-1.0 convention, and list what is against it")
    form.add_argument(
        "--chunk-bytes",
        type=_chunk_nbytes,
        metavar="N",
        help="cut netCDF-3 variables and contiguous datasets into chunks of about N bytes (default 8 MiB)",
    )
    form.add_argument(
        "--inline-bytes",
        type=_nbytes,
        metavar="N",
        help="carry arrays of up to N bytes in the references themselves; 0 for only what cannot be referred to "
        "(default: 1 KiB, and 256 KiB for coordinates)",
    )
    form.add_argument(
        "--max-inline-bytes", type=_nbytes, metavar="N", help="all inlined arrays together (default 64 MiB)"
    )
    add_output_options(form)


def translate(arguments: argparse.Namespace) -> int:
    """Write references, and say what happened."""
    from h5zarr.cli.progress import Progress
    from h5zarr.cli.report import describe_failure, describe_translation, problem_lines, report_lines
    from h5zarr.errors import H5ZarrError
    from h5zarr.translating import ProblemsFound
    from h5zarr.translating import translate as run

    source = arguments.source
    try:
        check_report(arguments)
        with Progress(source, is_shown=not arguments.quiet and sys.stderr.isatty()) as progress:
            done = run(
                source,
                arguments.out,
                storage_options=source_options(source, arguments),
                output_options=dict(arguments.output_option),
                policy=source_policy(arguments),
                options=_options(arguments),
                commit=chosen_commit(arguments),
                on_open=progress.watch,
            )
    except H5ZarrError as error:
        if isinstance(error, ProblemsFound):
            tell(problem_lines(source, error.problems))
        write_report(arguments, describe_failure(source, error))
        return complain_of_source(source, error)
    write_report(arguments, describe_translation(source, done))
    tell(report_lines(source, done, quiet=arguments.quiet))
    return DONE_WITH_PROBLEMS if done.problems else DONE


def _options(arguments: argparse.Namespace) -> Options:
    from dataclasses import replace

    from h5zarr.encode.options import Inlining
    from h5zarr.selecting import Selection
    from h5zarr.translating import Options

    inlining = Inlining() if arguments.inline_bytes is None else Inlining.up_to(arguments.inline_bytes)
    if arguments.max_inline_bytes is not None:
        inlining = replace(inlining, total_nbytes=arguments.max_inline_bytes)
    chunks = {} if arguments.chunk_bytes is None else {"chunk_nbytes": arguments.chunk_bytes}
    return Options(
        **chunks,
        selection=Selection(group=arguments.group, include=arguments.include, exclude=arguments.exclude),
        inlining=inlining,
        target_url=arguments.target_url,
        zarr_format=arguments.zarr_format,
        nz=arguments.nz,
        strict=arguments.strict,
        limits=source_limits(arguments),
        allow=tuple(arguments.allow),
    )


def _chunk_nbytes(text: str) -> int:
    if (nbytes := _nbytes(text)) < 1:
        raise argparse.ArgumentTypeError("a chunk has at least 1 byte")
    return nbytes


def _nbytes(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(text)
