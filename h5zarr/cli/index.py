"""`h5zarr index`: references for all files of a collection, kept up to date."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, NOTHING, phrase, read_list, require_index, tell
from h5zarr.cli.options import (
    FORM,
    OPENING,
    SELECTION,
    add_allow,
    add_form,
    add_opening,
    add_output_options,
    add_overwrite,
    add_reporting,
    add_selection,
    keywords,
    positive,
)
from h5zarr.cli.outputs import check_report, output_format, write_report, write_text

if TYPE_CHECKING:
    from h5zarr.commands.index.index_report import IndexReport

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
  h5zarr status refs/                                           summarise the catalog

the output:
  refs/PATH.json for each file, where PATH starts at the first wildcard of the pattern; see --name.
  refs/_h5zarr/catalog.parquet has a row for each file. With DuckDB:
  SELECT source, reason FROM 'refs/_h5zarr/catalog.parquet' WHERE status = 'failed'

exit codes:
  0    the run finished without new failures, or another run is active and does the work
  1    files failed for the first time since they changed (--fail-on chooses another condition), or more than
       --max-failures files failed
  2    the job could not run, or the command line is wrong
  143  stopped by SIGTERM (130 by Ctrl-C). Finished work is recorded, and the next run continues
  `h5zarr status` shows failed files and problems with the reasons, whatever the exit code of the last run was.
"""
_SEE_HELP = "  h5zarr index --help shows examples."
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_JOB = (
    *("format", "name", "prune", "force", "dry_run", "strict", "max_attempts", "max_failures", "fail_on"),
    *("rebuild_catalog", "wait", "workers", "at_once", "dask"),
)


def add_index(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `index` command."""
    parser = commands.add_parser(
        "index",
        help="write references for many files, and keep them up to date",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr index [OPTION ...] SOURCE ... OUT\n       h5zarr index [OPTION ...] --files-from FILE OUT",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "places",
        nargs="+",
        metavar="SOURCE ... OUT",
        help="SOURCE: a quoted pattern, a directory or a file; OUT: the directory for references and catalog. All can "
        "be paths or URLs that fsspec opens. Among several sources, a remote directory must end with a slash if it is "
        "on a web server or its name contains a dot",
    )
    parser.add_argument("--files-from", metavar="FILE", help="read paths and URLs from FILE instead of SOURCE ...")
    _add_job(parser.add_argument_group("the job"))
    _add_work(parser.add_argument_group("parallel work"))
    add_selection(parser.add_argument_group("what to translate"))
    form = parser.add_argument_group("what to write")
    form.add_argument(
        "--format",
        type=output_format,
        default="json",
        help="container for each file: json, json.gz, json.zst, parquet or icechunk (default json)",
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
    parser.set_defaults(command=index)


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
    group.add_argument("--job", metavar="NAME", help="value of the label `index` in the metrics (default: OUT)")


def index(arguments: argparse.Namespace) -> int:
    """Run the job, report what happened, and return the exit code."""
    from h5zarr.cli.index_log import log_without_run
    from h5zarr.commands.index.index_report import ANOTHER_RUN, COULD_NOT_RUN, IndexReport
    from h5zarr.commands.index.lease import LeaseHeld
    from h5zarr.commands.index.naming import check_template
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location

    if not _take_places(arguments):
        return NOTHING
    report, as_json = IndexReport(), arguments.log_format == "json"
    try:
        check_template(arguments.name)
        check_report(arguments, *arguments.sources)
        shown = str(Location.parse(arguments.out))
        require_index(arguments.sources, arguments.out, shown, is_dask=arguments.dask is not None)
        with _stopping() as stop:
            report = _run(arguments, stop)
    except LeaseHeld as error:
        message, remedy = _explain(arguments, error)
        if not arguments.quiet:
            log_without_run(message, "", ANOTHER_RUN, as_json=as_json)
        _note_skipped(arguments)
        return _write_report(arguments, report.could_not_run(message, remedy, ANOTHER_RUN), DONE)
    except H5ZarrError as error:
        message, remedy = _explain(arguments, error)
        log_without_run(message, remedy, COULD_NOT_RUN, as_json=as_json)
        report.could_not_run(message, remedy)
        _write_metrics(arguments, report.to_metrics(_label(arguments)))
        return _write_report(arguments, report, NOTHING)
    _write_metrics(arguments, report.to_metrics(_label(arguments)))
    if stop.number:
        return _write_report(arguments, report, 128 + stop.number)
    return _write_report(arguments, report, DONE_WITH_PROBLEMS if report.is_failure else DONE)


def _take_places(arguments: argparse.Namespace) -> bool:
    """Split the places into sources and OUT. Without a report if that fails: its FILE may be a forgotten source."""
    *arguments.sources, arguments.out = arguments.places
    if bool(arguments.sources) is (arguments.files_from is None):
        return True
    if arguments.sources:
        tell(["h5zarr: give either sources or --files-from FILE, and then OUT", _SEE_HELP])
    else:
        tell(["h5zarr: give at least one source, and then OUT, the directory for the references", _SEE_HELP])
    return False


def _explain(arguments: argparse.Namespace, error: Exception) -> tuple[str, str]:
    """Return why the job could not run and what to do, without secrets in URLs."""
    from h5zarr.commands.index.lease import LEASE
    from h5zarr.commands.index.naming import UnclearTemplate
    from h5zarr.errors import H5ZarrError, OutputError, PackageMissing, SourceError
    from h5zarr.io.location import Location

    if isinstance(error, PackageMissing):
        return phrase(str(error)), error.remedy
    if isinstance(error, UnclearTemplate):
        return f"--name: {error}", ""
    assert isinstance(error, H5ZarrError)
    is_about_out = str(error).startswith(str(Location.parse(arguments.out.rstrip("/"))))
    is_about_text = isinstance(error, OutputError) and not is_about_out  # the report, or the metrics
    is_source = isinstance(error, SourceError) and not is_about_out
    message = str(error).replace(f"/{LEASE}:", ":", 1)  # nobody asked for that file
    if is_about_out or is_about_text or (is_source and len(arguments.sources) > 1):
        return phrase(message), phrase(error.remedy)  # which names the place that it is about
    shown = str(Location.parse((arguments.sources or [arguments.files_from])[0] if is_source else arguments.out))
    return f"{shown}: {phrase(message.removeprefix(f'{shown}:').strip())}", phrase(error.remedy)


def _write_report(arguments: argparse.Namespace, report: IndexReport, exit_code: int) -> int:
    """Write the report, if the user wants one, and return the exit code."""
    write_report(arguments, {"exit_code": exit_code, **report.to_json()})
    return exit_code


def _label(arguments: argparse.Namespace) -> str:
    """Return the label `index` of the metrics: unique on this machine, and without secrets."""
    from h5zarr.io.location import Location

    if arguments.job:
        return str(arguments.job)
    out = Location.parse(arguments.out)
    return str(Location.parse(arguments.out.rstrip("/"))) if out.path is None else out.absolute()


def _write_metrics(arguments: argparse.Namespace, metrics: str) -> None:
    """Write metrics, if the user wants them."""
    write_text(arguments.metrics, metrics)


def _note_skipped(arguments: argparse.Namespace) -> None:
    """Note in the metrics that this run did nothing, and keep what the last one wrote.

    The active run cannot end and write its own just now: its lease was renewed a moment ago.
    """
    from h5zarr.commands.index.index_report import mark_skipped

    if not arguments.metrics:
        return
    try:
        with open(arguments.metrics, encoding="utf-8") as file:
            before = file.read()
    except (OSError, UnicodeDecodeError):
        before = ""
    _write_metrics(arguments, mark_skipped(before, _label(arguments)))


def _run(arguments: argparse.Namespace, stop: _Stop) -> IndexReport:
    from h5zarr.cli.index_log import RunLog
    from h5zarr.commands.index.catalog_table import use_system_memory
    from h5zarr.commands.index.index import index as run

    use_system_memory()
    sources, found_by = _sources(arguments)
    chosen = keywords(arguments, *_JOB, *SELECTION, *FORM, *OPENING, "allow", "output_options", "overwrite")
    about = keywords(arguments, "quiet", "fail_on", "max_attempts")
    with RunLog(as_json=arguments.log_format == "json", **about) as log:
        callbacks: dict[str, Any] = {"on_plan": log.plan, "on_row": log.row, "is_stopped": stop.is_set}
        report = run(sources, arguments.out, found_by=found_by, **callbacks, **chosen)
    log.end(report)
    return report


def _sources(arguments: argparse.Namespace) -> tuple[str | list[str], str]:
    """Return what to index, and a name for it if it is a list."""
    if arguments.files_from is None:
        return arguments.sources[0] if len(arguments.sources) == 1 else arguments.sources, ""
    return read_list(arguments.files_from), f"--files-from {arguments.files_from}"


class _Stop:
    """Set by a signal; keeps its `number`."""

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
    """Yield a flag that a signal sets. A second signal ends the process."""
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
