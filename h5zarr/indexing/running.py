"""A run of an indexing job: list, compare, index what is new or changed, record all of it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from h5zarr.errors import SourceGone
from h5zarr.indexing.catalog import Catalog
from h5zarr.indexing.dispatch import Dispatcher
from h5zarr.indexing.lease import Lease, Stopped
from h5zarr.indexing.listing import Listing, list_named, list_sources
from h5zarr.indexing.place import STATE, Place
from h5zarr.indexing.planning import Plan, Rules, Task, make_plan, source_name
from h5zarr.indexing.rebuilding import rebuild_rows
from h5zarr.indexing.report import IndexReport
from h5zarr.indexing.rows import Row, Status
from h5zarr.indexing.waiting import wait_for
from h5zarr.indexing.watching import settle_watched
from h5zarr.indexing.work import Settings
from h5zarr.indexing.workers import ExecutorWorkers, LocalWorkers, Workers
from h5zarr.io.policy import ReadPolicy
from h5zarr.scanning import paused_collector
from h5zarr.translating import Options

_FLUSH_SECONDS, _FLUSH_ROWS = 2.0, 1000
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexJob:
    """What a run does besides indexing what is new or changed.

    - `template`: names of outputs, of {path}, {directory}, {name}, {stem} and {hash}; the suffix is that of the format.
    - `max_attempts`: how often a source is tried, over all runs, until it changes.
    - `max_failures`: a run ends when more sources than that have failed in it.
    - `prune`: remove outputs whose sources have vanished. `force`: index all anew.
    - `dry_run`: only say what would be done.
    - `rebuild`: make the catalog anew from the outputs first.
    - `wait_seconds`: how long to wait for another run to end.
    """

    template: str = "{path}"
    max_attempts: int = 5
    max_failures: int | None = None
    prune: bool = False
    force: bool = False
    dry_run: bool = False
    rebuild: bool = False
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWatch:
    """Whom to tell what goes on, and who may stop it: all of these are called from the thread that runs the job."""

    on_plan: Callable[[Plan], None] = lambda plan: None
    on_row: Callable[[Row], None] = lambda row: None
    is_stopped: Callable[[], bool] = lambda: False


def index(
    sources: str | os.PathLike[str] | Iterable[str],
    out: str | os.PathLike[str],
    *,
    format: str = "json",
    storage_options: Mapping[str, Any] | None = None,
    output_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    options: Options | None = None,
    workers: int | None = None,
    executor: Any = None,
    at_once: int = 16,
    job: IndexJob | None = None,
    watch: IndexWatch | None = None,
    found_by: str = "",
) -> IndexReport:
    """Write references for all of `sources` below `out`, and keep a catalog of them there; return what was done.

    `sources` is a pattern, a directory, or any number of paths and URLs, which `found_by` gives a name: sources that
    were found by the same name before, and are not among these, have vanished. Only what is new or has changed is read.
    The work is done by as many processes as `workers` says, one for each processor if nothing is said, or by
    `executor`: any `concurrent.futures.Executor`, or a `dask.distributed.Client`; by each `at_once` sources at a time.

    Failures are in the catalog and in what is returned. Raises H5ZarrError where nothing can be done at all.
    """
    place = Place(out, output_options)
    settings = Settings(
        out=place.url,
        format=format,
        storage_options=dict(storage_options or {}),
        output_options=dict(output_options or {}),
        policy=policy,
        options=options or Options(),
        at_once=at_once,
    )
    job, watch = job or IndexJob(), watch or IndexWatch()
    run = _Run(place, settings, job, watch)
    try:
        with run.leased():
            catalog = None if job.rebuild else Catalog(place)
            find = partial(_list, sources, found_by, storage_options, catalog, place, watch.is_stopped)
            return run.go(find, catalog, _Hiring(workers, executor))
    except Stopped:
        return run.report.end("stopped")


def _list(
    sources: str | os.PathLike[str] | Iterable[str],
    found_by: str,
    storage_options: Mapping[str, Any] | None,
    catalog: Catalog | None,
    place: Place,
    is_stopped: Callable[[], bool],
) -> Listing:
    """Return what there is, in a thread of its own: that may take minutes, and a run that is stopped ends in seconds.

    What a pattern finds among the outputs is none of it. Raises SourceGone where there is nothing: not all has vanished
    at once, as a rule, but the pattern is misspelt, or whatever made the list failed. Whoever has --prune on would lose
    everything.
    """

    @cache
    def known() -> set[str]:
        return set() if catalog is None else catalog.sources()

    def is_known(url: str) -> bool:
        return catalog is None or source_name(url) in known()

    if isinstance(sources, str | os.PathLike):
        remedy = "Check the pattern, in quotes so that the shell leaves it alone; ** matches any number of directories."
        act = partial(list_sources, os.fspath(sources), storage_options, is_known)
    else:
        remedy = "Check what made the list."
        act = partial(list_named, sources, found_by or "a list", storage_options, is_known)
    listing = wait_for(act, is_stopped)
    if isinstance(sources, str | os.PathLike):
        listing = replace(listing, sources=tuple(one for one in listing.sources if not place.holds(one.url)))
    if not listing.sources:
        raise SourceGone(f"{listing.found_by}: no file was found", remedy=remedy)
    return listing


@dataclass(frozen=True, slots=True)
class _Hiring:
    """How workers are got, when there is something for them to do."""

    count: int | None
    executor: Any

    def __call__(self) -> Workers:
        return LocalWorkers(self.count) if self.executor is None else ExecutorWorkers(self.executor, self.count)


@dataclass(slots=True)
class _Run:
    """One run, and what it has come to."""

    place: Place
    settings: Settings
    job: IndexJob
    watch: IndexWatch
    report: IndexReport = field(default_factory=IndexReport)
    _lease: Lease | None = None
    _flushed_at: float = 0.0
    _replaced: list[str] = field(default_factory=list)

    @contextmanager
    def leased(self) -> Iterator[None]:
        """Hold the lease on the index; a run that writes nothing needs none."""
        if self.job.dry_run:
            yield
            return
        wait_seconds, is_stopped = self.job.wait_seconds, self.watch.is_stopped
        with Lease(self.place, wait_seconds=wait_seconds, is_stopped=is_stopped) as self._lease:
            self.place.sweep("" if self._lease.is_inherited else STATE)
            yield

    def go(self, find: Callable[[], Listing], catalog: Catalog | None, hire: Callable[[], Workers]) -> IndexReport:
        """Do all there is to do, and return the report. Without a catalog, it is made anew from the outputs."""
        plan, catalog = self._plan(find(), catalog)
        self.watch.on_plan(plan)
        if self.job.dry_run:
            return self.report.end("planned")
        for row in catalog.find(one.source for one in plan.adopted):
            catalog.add(replace(row, found_by=self.settings.found_by))
        vanished, tasks = [row.source for row in plan.vanished], deque(plan.tasks)
        del plan  # of which nothing is kept but what is not done yet
        if tasks:
            self._index(tasks, catalog, hire)
        if not self._is_stopped():
            self._settle_vanished(catalog.find(vanished), catalog)
            catalog.fold()
        else:
            catalog.flush()
        return self.report.end(self._why_stopped())

    def _plan(self, listing: Listing, catalog: Catalog | None) -> tuple[Plan, Catalog]:
        """Return what there is to do, and the catalog; the listing, which may be large, is not needed any more."""
        self.settings = replace(self.settings, found_by=listing.found_by)
        if catalog is None:
            catalog = Catalog(self.place, self._rebuilt(listing))
        with paused_collector():  # which would look at the whole listing again and again
            plan = make_plan(listing, catalog.known(), self._rules())
        settle = partial(settle_watched, plan, listing, self.settings.storage_options)
        wait_for(settle, self.watch.is_stopped)
        self.report.take_plan(plan, len(listing.sources), catalog.find(row.source for row in plan.given_up))
        return plan, catalog

    def _rebuilt(self, listing: Listing) -> Iterator[Row]:
        """Yield the rows of all outputs. By whom those were found that are not listed now is not known any more: this
        run cannot say that they have vanished."""
        listed = {source_name(one.url) for one in listing.sources}
        for row in rebuild_rows(self.place, listing.found_by, self.settings):
            if self._is_stopped():
                raise Stopped("the run was stopped before it began")
            yield row if row.source in listed else replace(row, found_by="")

    def _rules(self) -> Rules:
        return Rules(
            template=self.job.template,
            suffix=self.settings.suffix,
            settings=self.settings.digest,
            max_attempts=self.job.max_attempts,
            force=self.job.force,
        )

    def _index(self, tasks: deque[Task], catalog: Catalog, hire: Callable[[], Workers]) -> None:
        workers = hire()
        self._flushed_at = time.monotonic()
        dispatcher = Dispatcher(tasks, self.settings, workers, self._is_stopped)
        try:
            for done in dispatcher.run():
                self._record(done.task, done.row, catalog)
        finally:
            catalog.flush()
            workers.close()
        self._remove_replaced()
        if dispatcher.has_lost:
            self.place.sweep()

    def _record(self, task: Task, row: Row, catalog: Catalog) -> None:
        if task.replaces and row.status is Status.INDEXED:
            self._replaced.append(task.replaces)
        elif task.replaces:
            row = replace(row, output=task.replaces, status=Status.STALE)
        catalog.add(row)
        self.report.take_row(row)
        self.watch.on_row(row)
        now = time.monotonic()
        if now - self._flushed_at > _FLUSH_SECONDS or catalog.unwritten_count >= _FLUSH_ROWS:
            catalog.flush() if catalog.part_count < _MOST_PARTS else catalog.fold()
            self._remove_replaced()
            self._flushed_at = now

    def _remove_replaced(self) -> None:
        """Remove outputs in whose places there are others, once the catalog says so: until then it names them."""
        while self._replaced:
            self.place.remove(self._replaced.pop())

    def _settle_vanished(self, vanished: list[Row], catalog: Catalog) -> None:
        """Remove the outputs of sources that are gone, if that is wanted; else note that they are."""
        for row in vanished:
            if self._is_stopped():
                return
            if self.job.prune and row.has_output:
                self.place.remove(row.output)
                self.report.pruned_count += 1
            if self.job.prune or not row.has_output:
                catalog.remove(row.source)
            elif row.status is not Status.VANISHED:
                catalog.add(replace(row, status=Status.VANISHED, time=datetime.now(UTC)))

    def _is_stopped(self) -> bool:
        return self._why_stopped() != "finished"

    def _why_stopped(self) -> str:
        if self._lease is not None and self._lease.is_lost.is_set():
            return "another run took over"
        if self.watch.is_stopped():
            return "stopped"
        most = self.job.max_failures
        return "too many failures" if most is not None and self.report.failed_count > most else "finished"
