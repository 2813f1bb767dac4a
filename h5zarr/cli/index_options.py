"""The options of `h5zarr index`."""

from __future__ import annotations

import argparse

from h5zarr.cli.options import (
    Tables,
    add_allow,
    add_config,
    add_form,
    add_opening,
    add_output_options,
    add_overwrite,
    add_reporting,
    add_selection,
    positive,
)
from h5zarr.cli.outputs import output_format

HELP = """\
Write references for many files, and keep a catalog of them beside the output. Run it again, for example from cron: it
reads only files that are new or have changed.

If a file cannot be read, is truncated, or contains nothing that can be read, it is recorded as failed with the reason,
and the next run tries it again. If only parts of a file cannot be translated, it is "indexed with problems".
"""
EXAMPLES = """\
examples:
  h5zarr index 's3://bucket/ocean/**/*.nc' s3://refs/ocean/ --anon
  h5zarr index /data/ocean refs/ --format parquet               all HDF5 and netCDF files below a directory
  h5zarr index a.nc b.nc /data/ocean refs/                      several sources; the output comes last
  h5zarr index --files-from files.txt refs/                     one path or URL per line; - is standard input
  h5zarr index '/data/**/*.nc' refs/ --dry-run                  report what would be done
  h5zarr index '/data/**/*.nc' refs/ --prune                    remove references of files that are gone
  h5zarr index 's3://bucket/**/*.nc' refs/ --dask tcp://scheduler:8786
  h5zarr index '/data/**/*.nc' refs/ --cube all.parquet --along time    one dataset, kept up to date
  h5zarr index '/data/**/*.nc' refs/ --cube all.parquet --along time --format none     nothing but the cube
  h5zarr index --config archive.toml                            all collections of an archive, with their options
  h5zarr index --config archive.toml --collection ocean --dry-run
  h5zarr index '/data/**/*.nc' refs/ --log-format json --push-metrics http://pushgateway:9091
  h5zarr status refs/                                           summarise the catalog

the output:
  refs/PATH.json for each file, where PATH starts at the first wildcard of the pattern; see --name.
  refs/_h5zarr/catalog.parquet has a row for each file. With DuckDB:
  SELECT source, reason FROM 'refs/_h5zarr/catalog.parquet' WHERE status = 'failed'

exit codes:
  0    the run finished without new failures, or another run is active and does the work
  1    files failed for the first time since they changed (--fail-on chooses another condition), more than
       --max-failures files failed, or a cube has new misfits or could not be updated
  2    the job could not run, or the command line is wrong
  143  stopped by SIGTERM (130 by Ctrl-C). Finished work is recorded, and the next run continues
  With --config: the highest exit code of all collections.
  `h5zarr status` shows failed files and problems with the reasons, whatever the exit code of the last run was.
"""


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add the places and options of the `index` command."""
    parser.add_argument(
        "places",
        nargs="+",
        default=[],
        metavar="SOURCE ... OUT",
        help="SOURCE: a quoted pattern, a directory or a file; OUT: the directory for references and catalog. All can "
        "be paths or URLs that fsspec opens. Among several sources, a remote directory must end with a slash if it is "
        "on a web server or its name contains a dot",
    )
    add_config(parser, "index")
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE instead of SOURCE ...")
    _add_job(parser.add_argument_group("the job"))
    _add_cubes(parser.add_argument_group("cubes"))
    _add_work(parser.add_argument_group("parallel work"))
    add_selection(parser.add_argument_group("what to translate"))
    form = parser.add_argument_group("what to write")
    form.add_argument(
        "--format",
        type=output_format,
        default="json",
        help="container for each file: json, json.gz, json.zst, parquet or icechunk (default json); none if only the "
        "cubes are wanted",
    )
    form.add_argument(
        "--name",
        default="{path}",
        metavar="TEMPLATE",
        help="names of outputs without suffix: {path}, {directory}, {name}, {stem}, {hash} (default {path})",
    )
    add_form(form)
    add_output_options(form)
    add_overwrite(form, "a file in OUT, or FILE,")
    reading = parser.add_argument_group("reading")
    add_opening(reading)
    add_allow(reading, "let a file refer not only to files in and below its own directory, but also to files")
    _add_reporting(parser.add_argument_group("logging and reports"))


def _add_job(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--dry-run", action="store_true", help="only report what would be done")
    group.add_argument("--prune", action="store_true", help="remove the references of sources that have vanished")
    group.add_argument("--force", action="store_true", help="index everything again")
    group.add_argument(
        "--strict", action="store_true", help="count a file with problems as failed, and write no references for it"
    )
    group.add_argument(
        "--max-attempts",
        type=positive,
        default=5,
        metavar="N",
        help="give up on a file after N failed runs, until it changes (default 5)",
    )
    group.add_argument(
        "--max-failures", type=_count, metavar="N", help="stop the run when more than N files have failed"
    )
    group.add_argument(
        "--fail-on",
        choices=("new", "any", "never"),
        default="new",
        help="exit with 1 if files failed for the first time since they changed (new, the default), if any file is in "
        "a failed state, given up or not (any), or never",
    )
    group.add_argument("--rebuild-catalog", action="store_true", help="rebuild a lost catalog from the outputs")
    group.add_argument(
        "--wait", type=_seconds, default=0.0, metavar="SECONDS", help="wait up to SECONDS for another run to finish"
    )


def _add_cubes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--cube",
        action=Tables,
        type=_cube,
        default=[],
        metavar="CUBE[,NAME=VALUE...]",
        help="one dataset of all files, which every run brings up to date; may be repeated. NAME is an option of "
        "h5zarr combine, such as along, include or on_misfit, or files: a pattern for the names of files",
    )
    group.add_argument(
        "--along",
        action="append",
        default=[],
        metavar="NAME[=SOURCE]",
        help="the dimension along which cubes are joined that do not say it themselves; see h5zarr combine --help",
    )


def _cube(given: str | dict[str, object]) -> dict[str, object]:
    from h5zarr.commands.index.cubes import CubeSpec, describe_cube
    from h5zarr.errors import ArgumentError

    try:
        CubeSpec.of(given)
    except (ArgumentError, TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error).partition("\n")[0]) from None
    return describe_cube(given)


def _add_work(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--workers", type=positive, metavar="N", help="processes (default: one per processor)")
    group.add_argument(
        "--at-once", type=positive, default=16, metavar="N", help="files per process at a time (default 16)"
    )
    group.add_argument("--dask", metavar="ADDRESS", help="use the workers of a Dask cluster: tcp://HOST:PORT")


def _add_reporting(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--log-format", choices=("text", "json"), default="text", help="json: one object per line")
    add_reporting(group, "print only new failures; with --fail-on any, all failures")
    group.add_argument("--metrics", metavar="FILE", help="write metrics for Prometheus' textfile collector")
    group.add_argument(
        "--push-metrics",
        type=_receiver,
        metavar="URL",
        help="push the metrics to a Prometheus Pushgateway, such as http://pushgateway:9091",
    )
    group.add_argument(
        "--otel",
        type=_receiver,
        metavar="URL",
        help="send the metrics to an OpenTelemetry collector with OTLP over HTTP, such as http://collector:4318",
    )
    group.add_argument("--job", metavar="NAME", help="value of the label `index` in the metrics (default: OUT)")
    group.add_argument(
        "--run-id",
        type=_run_id,
        metavar="ID",
        help="id of this run in log lines, report, metrics and lease (default: a new one, which sorts by time)",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _receiver(text: str) -> str:
    from h5zarr.commands.index.pushing import Receiver
    from h5zarr.errors import ArgumentError

    try:
        Receiver.parse(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _run_id(text: str) -> str:
    from h5zarr.commands.index.run_id import check_run_id
    from h5zarr.errors import ArgumentError

    try:
        return check_run_id(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
