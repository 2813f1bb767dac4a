"""The index command: list the sources and run the job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.listing import Listing, list_named, list_several, list_sources, nothing_found
from h5zarr.commands.catalog.place import STATE, Place, check_directory
from h5zarr.commands.catalog.rows import Row
from h5zarr.commands.catalog.source_names import source_name
from h5zarr.commands.catalog.waiting import Stopped, wait_for
from h5zarr.commands.index.cubes import CubeSpec, check_cubes, options_for_cubes
from h5zarr.commands.index.index_report import FAIL_ON, IndexReport
from h5zarr.commands.index.output_formats import container_of_format, container_of_output, output_formats
from h5zarr.commands.index.planning import Plan
from h5zarr.commands.index.run_id import check_run_id
from h5zarr.commands.index.running import IndexJob, IndexRun, IndexWatch
from h5zarr.commands.index.work import IndexSettings
from h5zarr.commands.index.workers import ExecutorWorkers, LocalWorkers, Workers, dask_client
from h5zarr.commands.translate.options import make_options
from h5zarr.containers.container import Container, Output
from h5zarr.containers.registry import mark_location, require_output
from h5zarr.containers.target import check_target
from h5zarr.errors import ArgumentError, SourceGone
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.protocols import require_sources
from h5zarr.packages import require, require_catalog


def index(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    format: str = "json",
    name: str = "{path}",
    prune: bool = False,
    force: bool = False,
    dry_run: bool = False,
    strict: bool = False,
    max_attempts: int = 5,
    max_failures: int | None = None,
    fail_on: str = "new",
    rebuild_catalog: bool = False,
    wait: float = 0.0,
    cubes: Sequence[str | Mapping[str, Any]] = (),
    workers: int | None = None,
    at_once: int = 16,
    dask: str | None = None,
    executor: Any = None,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    zarr_format: int = 3,
    nz: bool = False,
    chunk_bytes: int | None = None,
    inline_bytes: int | None = None,
    max_inline_bytes: int | None = None,
    joinable: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    output_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    run_id: str | None = None,
    found_by: str = "",
    on_plan: Callable[[Plan], None] = lambda plan: None,
    on_row: Callable[[Row], None] = lambda row: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> IndexReport:
    """Write references and a catalog for many files below `out`. Only new or changed files are read.

    `logging.getLogger("h5zarr")` gets the progress at level INFO, and failures at level WARNING.

    Parameters
    ----------
    sources
        A pattern, a directory, a file, or a list of these, as paths or URLs. In a list, a remote directory must end
        with a slash.
    out
        The directory for references and catalog, as a path or URL.
    format
        The container for each file: json, json.gz, json.zst, parquet or icechunk; none if only `cubes` are wanted.
    name
        Template for the names of outputs, with {path}, {directory}, {name}, {stem} and {hash}; the suffix follows
        from `format`.
    prune
        Remove the outputs of sources that have vanished.
    force
        Index everything again.
    dry_run
        Only report what would be done.
    strict
        Count a file with problems as failed, and write no references for it.
    max_attempts
        Give up on a source after this many failed runs, until it changes.
    max_failures
        Stop the run when more sources than this have failed.
    fail_on
        When `is_failure` of the report is True: "new" if a source failed that had not failed before, or not since it
        last changed; "any" if any listed source is failed or stale, even if it was given up; "never".
    rebuild_catalog
        First rebuild the catalog from the outputs, if it is missing.
    wait
        Wait up to this many seconds for another run to finish.
    cubes
        Cubes to keep up to date with the index: each a name such as `"cube.parquet"`, text such as
        `"tas.parquet,along=time,files=tas_*.nc"`, or a mapping with `out` and options of `h5zarr.combine` and
        `h5zarr.update`. `files` are patterns for the names of files.
    workers
        How many processes to use, by default one per processor.
    at_once
        How many files each process works on at a time.
    dask
        Address of a Dask scheduler whose workers do the work.
    executor
        A `concurrent.futures.Executor` or `dask.distributed.Client` to use instead.
    group, include, exclude, zarr_format, nz, chunk_bytes, inline_bytes, max_inline_bytes, joinable
        What to write for each file, as in `h5zarr.translate`.
    storage_options, anon, network, limits, allow
        How to open the files, as in `h5zarr.translate`.
    output_options
        fsspec options for writing `out`.
    overwrite
        Replace files in `out` even if they are not references, as in `h5zarr.translate`. Without it, their sources
        fail.
    run_id
        An id for this run, which is in its log lines, report, metrics and lease; by default a new one that sorts by
        time.
    found_by
        A name for the list `sources`, whose entries are then exact paths and URLs, not patterns or directories. Sources
        found earlier under the same name and missing now have vanished.
    on_plan, on_row, is_stopped
        Callbacks: `on_plan` gets the plan, and `on_row` each finished row. `is_stopped` is called often; the run ends
        when it returns True.

    Returns
    -------
    IndexReport
        What was done. Failures are in the report and in the catalog.

    Raises
    ------
    H5ZarrError
        The job cannot run at all, or another run is active (`LeaseHeld`).
    ValueError
        An option has an invalid value.

    Examples
    --------
    >>> import h5zarr
    >>> h5zarr.index("ocean*.nc", "refs", workers=1)
    <h5zarr.IndexReport of refs: finished, 1 indexed, 0 indexed with problems, 0 unchanged, 0 failed>
    >>> h5zarr.index("ocean*.nc", "refs", workers=1)
    <h5zarr.IndexReport of refs: finished, 0 indexed, 0 indexed with problems, 1 unchanged, 0 failed>
    """
    require_catalog(str(Location.parse(os.fspath(out))))
    container = container_of_format(format)  # raises for an unknown one
    if container is not None:
        example = Location.parse(f"{os.fspath(out)}/x{output_formats()[format]}")
        require_output(mark_location(container, example), f"format={format!r}")
    if dask is not None:
        require("distributed", "dask=")
    if isinstance(sources, str | os.PathLike):
        require_sources([os.fspath(sources)])
    else:
        sources = names = [os.fspath(one) for one in sources]
        require_sources(names)
    if fail_on not in FAIL_ON:
        raise ArgumentError(f"fail_on is {fail_on!r}, but must be one of {', '.join(FAIL_ON)}")
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    place = Place(out, output_options, access.network)
    check_directory(place)
    if container is not None:
        _check_repositories(container, place)
    options = make_options(
        group=group,
        include=include,
        exclude=exclude,
        zarr_format=zarr_format,
        nz=nz,
        chunk_bytes=chunk_bytes,
        inline_bytes=inline_bytes,
        max_inline_bytes=max_inline_bytes,
        joinable=joinable,
    )
    specs = tuple(map(CubeSpec.of, cubes))
    check_cubes(specs, place, access, output_options)
    settings = IndexSettings(
        out=place.url,
        format=format,
        strict=strict,
        access=access,
        output_options=dict(output_options or {}),
        overwrite=overwrite,
        options=options if container is not None else options_for_cubes(options, name, specs),
        at_once=at_once,
    )
    job = IndexJob(
        cubes=specs,
        name=name,
        max_attempts=max_attempts,
        max_failures=max_failures,
        fail_on=fail_on,
        prune=prune,
        force=force,
        dry_run=dry_run,
        rebuild_catalog=rebuild_catalog,
        wait=wait,
    )
    watch = IndexWatch(on_plan=on_plan, on_row=on_row, is_stopped=is_stopped)
    report = IndexReport() if run_id is None else IndexReport(run_id=check_run_id(run_id))
    run = IndexRun(place, settings, job, watch, report)
    try:
        with dask_client(dask) as client, run.leased():
            catalog = None if job.rebuild_catalog else Catalog(place)
            find = partial(_list, sources, found_by, access, catalog, place, is_stopped)
            return run.go(find, catalog, _WorkersFactory(workers, client or executor))
    except Stopped:
        return run.report.end("stopped")


def _check_repositories(container: Container, place: Place) -> None:
    """Raise OutputError if no repository can be written below a remote directory: every file would fail for that."""
    if container.traits.has_commits and not place.is_local:
        location = Location.parse(place.url)
        marked = mark_location(container, location)
        output = Output(location=marked, storage_options=place.storage_options, network=place.network)
        container.check(output, location)
        check_target(output, container.state(output))


def _list(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    found_by: str,
    access: Access,
    catalog: Catalog | None,
    place: Place,
    is_stopped: Callable[[], bool],
) -> Listing:
    """Return the sources. Listing may take minutes, so it runs in a thread: a stopped run ends in seconds.

    Outputs that match a pattern are not sources. Raises SourceGone if nothing is found: the pattern is probably wrong,
    and pruning would then remove everything.
    """

    @cache
    def known() -> set[str]:
        return set() if catalog is None else catalog.sources()

    def is_known(url: str) -> bool:
        return catalog is None or source_name(url) in known()

    if isinstance(sources, str | os.PathLike):
        act = partial(list_sources, os.fspath(sources), access, is_known)
    elif found_by:
        act = partial(list_named, [os.fspath(one) for one in sources], found_by, access, is_known)
    else:
        act = partial(list_several, [os.fspath(one) for one in sources], access, is_known)
    listing = wait_for(act, is_stopped)
    if not found_by:
        listing = replace(listing, sources=tuple(one for one in listing.sources if not _is_output(one.url, place)))
    if not listing.sources:
        if not listing.found_by:
            raise ArgumentError("the list of sources is empty")
        if found_by:
            raise SourceGone(f"{found_by}: no file was found", remedy="Check the command that made the list.")
        raise nothing_found(listing.found_by)
    return listing


def _is_output(url: str, place: Place) -> bool:
    """Return whether a file below `out` belongs to the index. Sources may be there, too."""
    name = place.name_of(url)
    if name is None:
        return False
    parts = name.split("/")
    return parts[0] == STATE or any(container_of_output(part) is not None for part in parts)


@dataclass(frozen=True, slots=True)
class _WorkersFactory:
    """Starts workers when there is work for them."""

    count: int | None
    executor: Any

    def __call__(self) -> Workers:
        return LocalWorkers(self.count) if self.executor is None else ExecutorWorkers(self.executor, self.count)
