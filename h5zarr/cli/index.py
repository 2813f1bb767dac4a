"""`h5zarr index`: references for all files of a collection, kept up to date."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    add_allow,
    add_limits,
    add_storage_options,
    positive,
    source_limits,
    source_options,
    source_policy,
    storage_option,
    tell,
)
from h5zarr.cli.outputs import write_report, write_text

if TYPE_CHECKING:
    from h5zarr.indexing.report import IndexReport
    from h5zarr.indexing.running import IndexJob
    from h5zarr.translating import Options

HELP = """\
Write references for all files that match a pattern, are below a directory, or stand in a list, and keep a catalog of
them beside the output. Run it again, from cron for instance: only what is new or has changed is read.

A file that cannot be read is recorded with the reason, and tried again by the next run; the others go on.
"""
EXAMPLES = """\
examples:
  h5zarr index 's3://bucket/ocean/**/*.nc' s3://refs/ocean/ --anon
  h5zarr index /data/ocean refs/ --format parquet               all HDF5 and netCDF files below a directory
  h5zarr index --files-from files.txt refs/                     one path or URL on a line; - is standard input
  h5zarr index '/data/**/*.nc' refs/ --dry-run                  say what would be done
  h5zarr index '/data/**/*.nc' refs/ --prune                    remove references of files that are gone
  h5zarr index 's3://bucket/**/*.nc' refs/ --dask tcp://scheduler:8786
  h5zarr status refs/                                           what the catalog says

the output:
  refs/PATH.json for each file, where PATH is that below the pattern's first directories without wildcards; see --name.
  refs/_h5zarr/catalog.parquet: a row for each file. With DuckDB:
  SELECT source, reason FROM 'refs/_h5zarr/catalog.parquet' WHERE status = 'failed'

exit codes:
  0    all that was listed has references that are right
  1    some files could not be indexed: see the reasons, and `h5zarr status`
  2    the job itself could not run, or the command line is wrong
  143  stopped by SIGTERM, 130 by Ctrl-C: what was finished is recorded, and the next run goes on from there
"""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def add_index(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `index` command."""
    parser = commands.add_parser(
        "index",
        help="write references for many files, and keep them up to date",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr index [OPTION ...] SOURCES OUT\n       h5zarr index [OPTION ...] --files-from FILE OUT",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="+",
        metavar="SOURCES OUT",
        help="SOURCES: a pattern in quotes, or a directory; OUT: the directory for references and catalog. "
        "Both are paths, or URLs that fsspec can open",
    )
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE, in the place of SOURCES")
    _add_what(parser.add_argument_group("what to do"))
    _add_how(parser.add_argument_group("how"))
    _add_telling(parser.add_argument_group("telling of it"))
    reading = parser.add_argument_group("reading")
    add_storage_options(reading)
    add_allow(reading, "besides files in its own directory, let a file refer to those")
    add_limits(reading)
    parser.set_defaults(command=index)


def _add_what(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--dry-run", action="store_true", help="only say what would be done")
    group.add_argument("--prune", action="store_true", help="remove the references of sources that have vanished")
    group.add_argument("--force", action="store_true", help="index everything anew")
    group.add_argument(
        "--max-attempts",
        type=positive,
        default=5,
        metavar="N",
        help="give a file up after N runs in which it failed, until it changes (default 5)",
    )
    group.add_argument(
        "--max-failures", type=_count, metavar="N", help="end the run when more than N files have failed in it"
    )
    group.add_argument(
        "--rebuild-catalog", action="store_true", help="make the catalog anew from the outputs, if it is lost"
    )
    group.add_argument(
        "--wait", type=_seconds, default=0.0, metavar="SECONDS", help="wait so long for another run on OUT to end"
    )


def _add_how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--format",
        choices=("json", "json.gz", "json.zst", "parquet", "icechunk"),
        default="json",
        help="the container for each file (default json)",
    )
    group.add_argument("--zarr-format", type=int, choices=(2, 3), default=3, help="version of the metadata (default 3)")
    group.add_argument(
        "--name",
        default="{path}",
        metavar="TEMPLATE",
        help="names of outputs, without suffix: {path}, {directory}, {name}, {stem}, {hash} (default {path})",
    )
    group.add_argument("--workers", type=positive, metavar="N", help="processes (default: one for each processor)")
    group.add_argument(
        "--at-once", type=positive, default=16, metavar="N", help="files under way in each process (default 16)"
    )
    group.add_argument("--dask", metavar="ADDRESS", help="let the workers of a Dask cluster do it: tcp://HOST:PORT")
    group.add_argument(
        "--output-option",
        action="append",
        default=[],
        type=storage_option,
        metavar="KEY=VALUE",
        help="as --storage-option, for OUT",
    )


def _add_telling(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--log-format", choices=("text", "json"), default="text", help="json: one object on a line")
    group.add_argument("--report", metavar="FILE", help="write what happened, as JSON; - is standard output")
    group.add_argument(
        "--metrics",
        metavar="FILE",
        help="write figures for Prometheus, for the textfile collector of its node exporter",
    )
    group.add_argument("--job", metavar="NAME", help="the label `index` of these figures (default: OUT)")
    group.add_argument("--quiet", action="store_true", help="say nothing but failures")


def index(arguments: argparse.Namespace) -> int:
    """Run the job, and say what happened."""
    from h5zarr.cli.index_telling import tell_could_not_run
    from h5zarr.errors import H5ZarrError
    from h5zarr.indexing.lease import LeaseHeld
    from h5zarr.indexing.naming import UnclearTemplate, check_template
    from h5zarr.indexing.report import IndexReport

    # No report then: what --report has taken for its FILE may be the missing one, and a source.
    if len(arguments.places) != (2 if arguments.files_from is None else 1):
        tell(["h5zarr: give SOURCES and OUT, or --files-from FILE and OUT", "  h5zarr index --help shows examples."])
        return NOTHING
    *patterns, arguments.out = arguments.places
    arguments.sources = patterns[0] if patterns else None
    report = IndexReport()
    try:
        check_template(arguments.name)
        with _stopping() as stop:
            report = _run(arguments, stop)
    except (H5ZarrError, UnclearTemplate, ImportError) as error:
        message, remedy = _explain(arguments, error)
        tell_could_not_run(message, remedy, as_json=arguments.log_format == "json")
        report.could_not_run(message, remedy)
        if not isinstance(error, LeaseHeld):  # the figures are those of the index, of which the other run will tell
            _write_metrics(arguments, report)
        return _write_report(arguments, report, NOTHING)
    _write_metrics(arguments, report)
    if stop.number:
        return _write_report(arguments, report, 128 + stop.number)
    return _write_report(arguments, report, DONE if report.is_good else DONE_WITH_PROBLEMS)


def _explain(arguments: argparse.Namespace, error: Exception) -> tuple[str, str]:
    """Return why the job could not run and what to do, without what may be secret in a URL."""
    from h5zarr.errors import H5ZarrError, SourceError
    from h5zarr.io.url import display_url

    if isinstance(error, ImportError):
        return f"{display_url(arguments.out)}: a package is missing: {error.name}", 'pip install "h5zarr[index]"'
    if not isinstance(error, H5ZarrError):
        return f"--name: {error}", ""
    is_source = isinstance(error, SourceError)
    shown = display_url((arguments.sources or arguments.files_from) if is_source else arguments.out)
    return f"{shown}: {str(error).removeprefix(f'{shown}:').strip()}", error.remedy


def _write_report(arguments: argparse.Namespace, report: IndexReport, exit_code: int) -> int:
    """Write what happened, where that is asked for, and return the exit code."""
    write_report(arguments, {"exit_code": exit_code, **report.to_json()})
    return exit_code


def _write_metrics(arguments: argparse.Namespace, report: IndexReport) -> None:
    """Write figures where they are asked for, with a label that no other index of this machine has."""
    from h5zarr.io.url import display_url, find_local_path

    path = find_local_path(arguments.out)
    place = display_url(arguments.out.rstrip("/")) if path is None else os.path.abspath(path)
    write_text(arguments.metrics, report.to_metrics(arguments.job or place))


def _run(arguments: argparse.Namespace, stop: _Stop) -> IndexReport:
    from h5zarr.cli.index_telling import Teller
    from h5zarr.indexing.running import IndexWatch
    from h5zarr.indexing.running import index as run
    from h5zarr.indexing.table import use_system_memory

    use_system_memory()
    sources, found_by = _sources(arguments)
    with Teller(quiet=arguments.quiet, as_json=arguments.log_format == "json") as teller, _executor(arguments) as one:
        report = run(
            sources,
            arguments.out,
            format=arguments.format,
            storage_options=source_options(sources if isinstance(sources, str) else next(iter(sources), ""), arguments),
            output_options=dict(arguments.output_option),
            policy=source_policy(arguments),
            options=_options(arguments),
            workers=arguments.workers,
            executor=one,
            at_once=arguments.at_once,
            job=_job(arguments),
            watch=IndexWatch(on_plan=teller.plan, on_row=teller.row, is_stopped=stop.is_set),
            found_by=found_by,
        )
    teller.end(report)
    return report


def _sources(arguments: argparse.Namespace) -> tuple[str | list[str], str]:
    """Return what to index, and what that is called."""
    from h5zarr.errors import SourceGone
    from h5zarr.indexing.listing import read_names
    from h5zarr.io.url import display_url

    if arguments.files_from is None:
        return arguments.sources, ""
    name = arguments.files_from
    try:
        if name == "-":
            return read_names(sys.stdin), "--files-from -"
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            return read_names(file), f"--files-from {name}"
    except OSError as error:
        raise SourceGone(f"{display_url(name)}: {error.strerror}", remedy="Check --files-from.") from None


def _options(arguments: argparse.Namespace) -> Options:
    from h5zarr.translating import Options

    limits = source_limits(arguments)
    return Options(zarr_format=arguments.zarr_format, limits=limits, allow=tuple(arguments.allow))


def _job(arguments: argparse.Namespace) -> IndexJob:
    from h5zarr.indexing.running import IndexJob

    return IndexJob(
        template=arguments.name,
        max_attempts=arguments.max_attempts,
        max_failures=arguments.max_failures,
        prune=arguments.prune,
        force=arguments.force,
        dry_run=arguments.dry_run,
        rebuild=arguments.rebuild_catalog,
        wait_seconds=arguments.wait,
    )


@contextmanager
def _executor(arguments: argparse.Namespace) -> Iterator[Any]:
    """Give the Dask client that was asked for, or None."""
    if arguments.dask is None:
        yield None
        return
    import dask
    from distributed import Client

    from h5zarr.errors import H5ZarrError
    from h5zarr.io.url import display_url

    before = dask.config.get("scheduler", None)
    try:
        client: Any = Client(arguments.dask, timeout=10)  # type: ignore[no-untyped-call, unused-ignore]
    except (OSError, TimeoutError, ValueError) as error:
        # It has made itself the default before it failed, and Dask would ask for it ever after.
        dask.config.set(scheduler=before)
        what = f"no Dask scheduler answers at {display_url(arguments.dask)} ({type(error).__name__})"
        raise H5ZarrError(what, remedy="Check the address, such as tcp://scheduler:8786.") from None
    with client:
        yield client


class _Stop:
    """Set by a signal, whose `number` it keeps."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.number = 0

    def set(self, number: int, frame: FrameType | None = None) -> None:
        self.number = number
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


@contextmanager
def _stopping() -> Iterator[_Stop]:
    """Give what a signal sets. A second one ends the process as ever."""
    stop = _Stop()
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        stop.set(number)
        for one, handler in before.items():
            signal.signal(one, handler)

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
