"""`h5zarr index`: references for all files of a collection, kept up to date."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, NOTHING, phrase, read_list, require_index, tell
from h5zarr.cli.index_options import EXAMPLES, HELP, add_index_options
from h5zarr.cli.options import FORM, OPENING, SELECTION, keywords
from h5zarr.cli.outputs import check_report
from h5zarr.cli.stopping import Stop, stopping
from h5zarr.display import readable

if TYPE_CHECKING:
    from h5zarr.cli.index_log import Voice
    from h5zarr.commands.index.index_report import IndexReport

_SEE_HELP = "  h5zarr index --help shows examples."
_JOB = (
    *("format", "name", "prune", "force", "dry_run", "strict", "max_attempts", "max_failures", "fail_on"),
    *("rebuild_catalog", "wait", "workers", "at_once", "dask", "run_id"),
)


def add_index(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `index` command."""
    parser = commands.add_parser(
        "index",
        help="write references for many files, and keep them up to date",
        description=HELP,
        epilog=EXAMPLES,
        usage="h5zarr index [OPTION ...] SOURCE ... OUT\n       h5zarr index [OPTION ...] --files-from FILE OUT"
        " | --config FILE",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_index_options(parser)
    parser.set_defaults(command=index)


def index(arguments: argparse.Namespace) -> int:
    """Run the job, report what happened, and return the exit code."""
    from h5zarr.commands.index.run_id import make_run_id

    arguments.run_id = arguments.run_id or make_run_id()
    if arguments.config or arguments.collection:
        return _index_archive(arguments)
    if not _take_places(arguments):
        return NOTHING
    with stopping() as stop:
        return run_job(arguments, stop)


def _index_archive(arguments: argparse.Namespace) -> int:
    """Run the jobs of a configuration file, one after the other, and return the highest exit code."""
    from h5zarr.cli.index_config import ConfigError, read_jobs

    try:
        jobs = read_jobs(arguments)
    except ConfigError as error:
        tell(f"h5zarr: {readable(line)}" for line in str(error).splitlines())
        return NOTHING
    code = DONE
    with stopping() as stop:
        for job in jobs:
            code = max(code, run_job(job, stop))
            if stop.is_set():
                break
    return code


def run_job(arguments: argparse.Namespace, stop: Stop) -> int:
    """Run the job on one index, write log, report and metrics, and return the exit code."""
    from h5zarr.cli.index_log import Voice
    from h5zarr.cli.index_results import Results
    from h5zarr.commands.index.index_report import ANOTHER_RUN, COULD_NOT_RUN, IndexReport
    from h5zarr.commands.index.lease import LeaseHeld
    from h5zarr.errors import H5ZarrError

    report = IndexReport(run_id=arguments.run_id)
    collection = getattr(arguments, "collection_name", None)
    voice = Voice(arguments.run_id, collection, as_json=arguments.log_format == "json")
    results = Results(arguments, voice)
    try:
        _check(arguments)
        report = _run(arguments, voice, stop)
    except LeaseHeld as error:
        message, remedy = _explain(arguments, error)
        if not arguments.quiet:
            voice.end_without_run(message, "", ANOTHER_RUN)
        return results.note_skipped(report.could_not_run(message, remedy, ANOTHER_RUN), DONE)
    except H5ZarrError as error:
        message, remedy = _explain(arguments, error)
        voice.end_without_run(message, remedy, COULD_NOT_RUN)
        return results.write(report.could_not_run(message, remedy), NOTHING)
    if stop.number:
        return results.write(report, 128 + stop.number)
    return results.write(report, DONE_WITH_PROBLEMS if report.is_failure else DONE)


def _check(arguments: argparse.Namespace) -> None:
    """Raise H5ZarrError for what is bound to fail."""
    from h5zarr.commands.index.naming import check_template
    from h5zarr.commands.index.otel import require_otel
    from h5zarr.io.location import Location

    if otel := arguments.otel:
        arguments.otel = None  # nothing can be sent without the package
        require_otel()
        arguments.otel = otel
    check_template(arguments.name)
    check_report(arguments, *arguments.sources)
    shown = str(Location.parse(arguments.out))
    require_index(arguments.sources, arguments.out, shown, is_dask=arguments.dask is not None)


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


def _run(arguments: argparse.Namespace, voice: Voice, stop: Stop) -> IndexReport:
    from h5zarr.cli.index_log import RunLog
    from h5zarr.commands.catalog.catalog_table import use_system_memory
    from h5zarr.commands.index.index import index as run
    from h5zarr.errors import ArgumentError

    use_system_memory()
    sources, found_by = _sources(arguments)
    if arguments.along and not arguments.cube:
        raise ArgumentError("along is for cubes", remedy="Name a cube with --cube CUBE, or leave out --along.")
    shared = {"along": arguments.along} if arguments.along else {}
    cubes = [{**shared, **one} for one in arguments.cube]
    chosen = keywords(arguments, *_JOB, *SELECTION, *FORM, *OPENING, "allow", "output_options", "overwrite")
    with RunLog(voice, **keywords(arguments, "quiet", "fail_on", "max_attempts")) as log:
        callbacks: dict[str, Any] = {"on_plan": log.plan, "on_row": log.row, "is_stopped": stop.is_set}
        report = run(sources, arguments.out, cubes=cubes, found_by=found_by, **callbacks, **chosen)
    log.end(report)
    return report


def _sources(arguments: argparse.Namespace) -> tuple[str | list[str], str]:
    """Return what to index, and a name for it if it is a list."""
    if arguments.files_from is None:
        return arguments.sources[0] if len(arguments.sources) == 1 else arguments.sources, ""
    return read_list(arguments.files_from), f"--files-from {arguments.files_from}"
