"""One run of an indexing job: compare, index new and changed sources, record the results, and log the progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.listing import Listing
from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.catalog.source_names import source_name
from h5zarr.commands.catalog.waiting import Stopped, wait_for
from h5zarr.commands.index.cubes import CubeSpec, discard_shards, follow, record_cubes, shard_stores
from h5zarr.commands.index.dispatch import Dispatcher
from h5zarr.commands.index.index_report import TAKEN_OVER, TOO_MANY, IndexReport
from h5zarr.commands.index.lease import Lease
from h5zarr.commands.index.planning import Plan, Rules, Task, make_plan
from h5zarr.commands.index.rebuilding import is_references, rebuild_rows
from h5zarr.commands.index.run_id import RunLogger
from h5zarr.commands.index.run_record import record_run
from h5zarr.commands.index.watching import settle_watched
from h5zarr.commands.index.work import IndexSettings
from h5zarr.commands.index.workers import Workers
from h5zarr.display import counted
from h5zarr.errors import H5ZarrError
from h5zarr.formats import paused_collector

_FLUSH_SECONDS, _FLUSH_ROWS = 2.0, 1000
_MOST_PARTS = 64
_LOG_STEPS = 20  # progress messages per run


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexJob:
    """What a run does besides indexing new and changed sources; see `index`."""

    name: str = "{path}"
    max_attempts: int = 5
    fail_on: str = "new"
    max_failures: int | None = None
    prune: bool = False
    force: bool = False
    dry_run: bool = False
    rebuild_catalog: bool = False
    wait: float = 0.0
    cubes: tuple[CubeSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWatch:
    """Callbacks of a run, all called from the thread that runs the job."""

    on_plan: Callable[[Plan], None]
    on_row: Callable[[Row], None]
    is_stopped: Callable[[], bool]


@dataclass(slots=True)
class IndexRun:
    """One run and its results so far."""

    place: Place
    settings: IndexSettings
    job: IndexJob
    watch: IndexWatch
    report: IndexReport
    _log: RunLogger = field(init=False)
    _lease: Lease | None = None
    _flushed_at: float = 0.0
    _replaced: list[str] = field(default_factory=list)
    _task_count: int = 0

    def __post_init__(self) -> None:
        self.report.out, self.report.fail_on = self.place.shown, self.job.fail_on
        self._log = RunLogger(self.report.run_id)

    @contextmanager
    def leased(self) -> Iterator[None]:
        """Hold the lease on the index. A run that writes nothing needs none."""
        if self.job.dry_run:
            yield
            return
        wait_seconds, is_stopped = self.job.wait, self.watch.is_stopped
        run_id = self.report.run_id
        with Lease(self.place, run_id=run_id, wait_seconds=wait_seconds, is_stopped=is_stopped) as self._lease:
            self.place.sweep("" if self._lease.is_inherited else STATE)
            yield

    def go(self, find: Callable[[], Listing], catalog: Catalog | None, hire: Callable[[], Workers]) -> IndexReport:
        """Do the planned work and return the report. If there is no catalog, rebuild it from the outputs."""
        self._log.info("index %s: listing the sources", self.place.shown)
        plan, catalog = self._plan(find(), catalog)
        self._log_plan(plan)
        self.watch.on_plan(plan)
        if self.job.dry_run:
            return self._end("planned")
        adopted = {one.source: one.found_by for one in plan.adopted}
        for row in catalog.find(adopted):
            catalog.add(replace(row, found_by=adopted[row.source]))
        vanished, tasks = [row.source for row in plan.vanished], deque(plan.tasks)
        del plan  # only unfinished tasks stay in memory
        if tasks:
            self._index(tasks, catalog, hire)
        if not self._is_stopped():
            self._settle_vanished(catalog.find(vanished), catalog)
            catalog.fold()
            self._follow_cubes()
        else:
            catalog.flush()
        self._end(how := self._why_stopped())
        if how != TAKEN_OVER:
            self._record_run()
        return self.report

    def _follow_cubes(self) -> None:
        """Bring the cubes up to date with the catalog, one after the other."""
        for spec in self.job.cubes:
            if self._is_stopped():
                return
            access, options = self.settings.access, self.settings.output_options
            outcome = follow(spec, self.place, access, options, prune=self.job.prune)
            self.report.cubes.append(outcome)
            for line in outcome.lines():
                (self._log.warning if outcome.is_failure else self._log.info)("%s", line)
        if self.job.cubes:
            record_cubes(self.place, self.report.cubes)
        if self.job.cubes and all(outcome.done is not None for outcome in self.report.cubes):
            discard_shards(self.place)

    def _end(self, how: str) -> IndexReport:
        report = self.report.end(how)
        counts = {status.key: report.states[status] for status in Status}
        self._log.info("index %s: %s after %.1f s; sources: %s", self.place.shown, how, report.seconds, counts)
        return report

    def _record_run(self) -> None:
        """Record how the run ended. The work is done and in the catalog, so it does not fail for this."""
        try:
            record_run(self.place, self.report)
        except H5ZarrError as error:
            self._log.warning("%s: how the run ended could not be recorded: %s", self.place.shown, error)

    def _log_plan(self, plan: Plan) -> None:
        self._task_count = len(plan.tasks)
        counts = (len(plan.new), len(plan.changed), len(plan.retried), plan.unchanged_count)
        self._log.info("index %s: %d new, %d changed, %d tried again, %d unchanged", self.place.shown, *counts)

    def _log_row(self, row: Row) -> None:
        """Log failures, and the progress: about twenty times in a run, or for each file if there are few."""
        done = self.report.done_count
        if row.status.is_failure:
            self._log.warning("%s: %s", row.source, row.reason)
        if done % max(1, self._task_count // _LOG_STEPS) == 0 or done == self._task_count:
            failed = self.report.failed_count
            count = counted(self._task_count, "file")
            self._log.info("index %s: %d of %s, %d failed", self.place.shown, done, count, failed)

    def _plan(self, listing: Listing, catalog: Catalog | None) -> tuple[Plan, Catalog]:
        """Return the plan and the catalog. The listing, which may be large, is dropped."""
        if catalog is None:
            catalog = Catalog(self.place, self._rebuilt(listing))
        with paused_collector():  # the collector would scan the whole listing again and again
            plan = make_plan(listing, catalog.known(), self._rules())
        settle = partial(settle_watched, plan, listing, self.settings.access)
        wait_for(settle, self.watch.is_stopped)
        self.report.take_plan(plan, len(listing.sources), catalog.find(row.source for row in plan.given_up))
        return plan, catalog

    def _rebuilt(self, listing: Listing) -> Iterator[Row]:
        """Yield the rows of all outputs."""
        found_by = {source_name(one.url): one.found_by for one in listing.sources}
        for row in rebuild_rows(self.place, found_by, self.settings):
            if self._is_stopped():
                raise Stopped("the run was stopped before it began")
            yield row

    def _rules(self) -> Rules:
        return Rules(
            template=self.job.name,
            suffix=self.settings.suffix,
            settings=self.settings.digest,
            max_attempts=self.job.max_attempts,
            force=self.job.force,
            strict=self.settings.strict,
        )

    def _index(self, tasks: deque[Task], catalog: Catalog, hire: Callable[[], Workers]) -> None:
        workers = hire()
        self._flushed_at = time.monotonic()
        stores = shard_stores(self.job.cubes, self.place, self.settings.access)
        settings = replace(self.settings, recipes=tuple(store.recipe for store in stores))
        dispatcher = Dispatcher(tasks, settings, workers, self._is_stopped)
        try:
            for done in dispatcher.run():
                if self._record(done.task, done.row, catalog):
                    for store in stores:
                        store.merge()
        finally:
            catalog.flush()
            workers.close()
        self._remove_replaced()
        if dispatcher.has_lost:
            self.place.sweep()

    def _record(self, task: Task, row: Row, catalog: Catalog) -> bool:
        """Record the result of a task. Return whether the catalog was written, as it is now and then."""
        if task.replaces and row.status.is_indexed:
            self._replaced.append(task.replaces)
        elif task.replaces:
            row = replace(row, output=task.replaces, status=Status.STALE)
        catalog.add(row)
        self.report.take_row(row, task.former)
        self._log_row(row)
        self.watch.on_row(row)
        now = time.monotonic()
        if now - self._flushed_at > _FLUSH_SECONDS or catalog.unwritten_count >= _FLUSH_ROWS:
            catalog.flush() if catalog.part_count < _MOST_PARTS else catalog.fold()
            self._remove_replaced()
            self._flushed_at = now
            return True
        return False

    def _remove_replaced(self) -> None:
        """Remove replaced outputs, after the catalog no longer names them."""
        while self._replaced:
            self._remove_output(self._replaced.pop())

    def _remove_output(self, name: str) -> bool:
        """Remove an output, if there is one, and return True. Whatever else has taken its place stays."""
        if not name:
            return True
        if not is_references(self.place, name):
            return False
        self.place.remove(name)
        return True

    def _settle_vanished(self, vanished: list[Row], catalog: Catalog) -> None:
        """Remove the outputs of vanished sources if pruning; otherwise mark them as vanished."""
        for row in vanished:
            if self._is_stopped():
                return
            is_kept = row.status.has_output and not self.job.prune
            if row.status.has_output and not is_kept:
                self.report.pruned_count += self._remove_output(row.output)
            if not is_kept:
                catalog.remove(row.source)
            elif row.status is not Status.VANISHED:
                catalog.add(replace(row, status=Status.VANISHED, time=datetime.now(UTC)))
            self.report.take_vanished(row.status, is_kept=is_kept)

    def _is_stopped(self) -> bool:
        return self._why_stopped() != "finished"

    def _why_stopped(self) -> str:
        if self._lease is not None and self._lease.is_lost.is_set():
            return TAKEN_OVER
        if self.watch.is_stopped():
            return "stopped"
        most = self.job.max_failures
        return TOO_MANY if most is not None and self.report.failed_count > most else "finished"
