"""Every task is done once, even if workers die, and the file that kills them is found."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pytest

import h5zarr
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index.dispatch import Dispatcher
from h5zarr.commands.index.planning import Task
from h5zarr.commands.index.work import Batch, Done, IndexSettings, index_batch
from h5zarr.commands.index.workers import LocalWorkers
from h5zarr.processes import WorkersLost
from tests.commands.index.jobs import check_index, children, eventually, fill, rows_of

SETTINGS = IndexSettings(out="refs")


def tasks(count: int) -> list[Task]:
    return [Task(f"/data/{number}.nc", f"/data/{number}.nc", None, f"{number}.nc.json") for number in range(count)]


def done(task: Task, *, is_temporary: bool = False) -> Done:
    status = Status.FAILED if is_temporary else Status.INDEXED
    row = Row(
        source=task.source,
        found_by="",
        identity=None,
        output=task.output,
        settings="",
        status=status,
        time=datetime.now(UTC),
    )
    return Done(task, row, is_temporary)


class Pool:
    """Workers that run `act` in threads. If one dies, all die."""

    def __init__(self, act: Callable[[Sequence[Task]], Batch]) -> None:
        self.count = 2
        self.batches: list[list[str]] = []
        self.renewed = 0
        self._act = act
        self._under_way: list[Future[Batch]] = []

    def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
        self.batches.append([task.source for task in tasks])
        future: Future[Batch] = Future()
        self._under_way.append(future)
        threading.Timer(0.005, self._work, (future, tasks, self._under_way)).start()
        return future

    def _work(self, future: Future[Batch], tasks: Sequence[Task], together: list[Future[Batch]]) -> None:
        try:
            made = self._act(tasks)
        except BrokenProcessPool as error:
            for one in together:
                if not one.done():
                    one.set_exception(error)
        else:
            if not future.done():
                future.set_result(made)

    def renew(self) -> None:
        self.renewed += 1
        self._under_way = []

    def close(self) -> None:
        pass


def run(pool: Pool, count: int, **choices: tuple[float, ...]) -> list[Done]:
    return list(Dispatcher(deque(tasks(count)), SETTINGS, pool, lambda: False, **choices).run())


def test_all_tasks_are_done_once_in_batches_that_become_small() -> None:
    pool = Pool(lambda batch: Batch([done(task) for task in batch], []))
    assert sorted(one.task.source for one in run(pool, 1000)) == sorted(task.source for task in tasks(1000))
    sizes = [len(batch) for batch in pool.batches]
    assert (sizes[0], sizes[-1], sum(sizes)) == (64, 1, 1000)


def test_what_a_batch_had_no_time_for_is_done_by_another() -> None:
    pool = Pool(lambda batch: Batch([done(batch[0])], list(batch[1:])))
    assert len({one.task.source for one in run(pool, 30)}) == 30


@pytest.mark.parametrize("deadly", [{7}, {0}, {99}, {3, 4, 50}, set(range(100))])
def test_files_that_kill_workers_are_found_and_all_others_are_done(deadly: set[int]) -> None:
    names = {f"/data/{number}.nc" for number in deadly}

    def act(batch: Sequence[Task]) -> Batch:
        if names & {task.source for task in batch}:
            raise BrokenProcessPool
        return Batch([done(task) for task in batch], [])

    found = {one.task.source: one.row for one in run(Pool(act), 100)}
    assert len(found) == 100
    assert {source for source, row in found.items() if row.status is Status.FAILED} == names
    assert all(found[name].reason.startswith("crash: ") and found[name].attempts == 1 for name in names)


def test_a_death_that_does_not_come_again_costs_no_file() -> None:
    deaths: list[int] = []

    def act(batch: Sequence[Task]) -> Batch:
        if len(deaths) < 2 and len(batch) > 1:
            deaths.append(len(batch))
            raise BrokenProcessPool
        return Batch([done(task) for task in batch], [])

    pool = Pool(act)
    assert {one.row.status for one in run(pool, 100)} == {Status.INDEXED}
    assert pool.renewed > 0


def test_temporary_failures_are_retried_later_and_reported_once() -> None:
    tries: dict[str, int] = {}

    def act(batch: Sequence[Task]) -> Batch:
        for task in batch:
            tries[task.source] = tries.get(task.source, 0) + 1
        return Batch(
            [done(task, is_temporary=tries[task.source] < 3 or task.source == "/data/5.nc") for task in batch], []
        )

    found = run(Pool(act), 10, backoff_seconds=(0.05, 0.1))
    assert len(found) == 10
    assert [one.task.source for one in found if one.row.status is Status.FAILED] == ["/data/5.nc"]
    assert set(tries.values()) == {3}


def test_an_error_of_the_executor_itself_is_the_failure_of_one_task_only() -> None:
    def act(batch: Sequence[Task]) -> Batch:
        return Batch([done(task) for task in batch], [])

    class Refusing(Pool):
        def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
            future = super().submit(tasks, settings)
            if any(task.source == "/data/3.nc" for task in tasks):
                refused: Future[Batch] = Future()
                refused.set_exception(MemoryError("no"))
                return refused
            return future

    found = {one.task.source: one.row.status for one in run(Refusing(act), 20)}
    assert [source for source, status in found.items() if status is Status.FAILED] == ["/data/3.nc"]
    assert len(found) == 20


def test_batches_that_were_cancelled_are_repeated() -> None:
    cancelled: list[Future[Batch]] = []

    class Restarted(Pool):
        def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
            if len(cancelled) < 2:
                cancelled.append(Future())
                cancelled[-1].cancel()
                cancelled[-1].set_running_or_notify_cancel()
                return cancelled[-1]
            return super().submit(tasks, settings)

    assert len(run(Restarted(lambda batch: Batch([done(task) for task in batch], [])), 50)) == 50


def deadly_batch(batch: Sequence[Task], settings: IndexSettings) -> Batch:
    """Do as `index_batch` does, but die of a file that is called so."""
    if any("deadly" in task.url for task in batch):
        time.sleep(0.2)  # the others have begun, too
        os.kill(os.getpid(), signal.SIGKILL)
    return index_batch(batch, settings)


class MortalWorkers(LocalWorkers):
    def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
        return self._processes.submit(deadly_batch, tasks, settings)


def test_a_file_that_kills_processes_is_recorded_and_all_others_are_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", MortalWorkers)
    paths, out = fill(tmp_path / "data", 12), tmp_path / "refs"
    deadly = tmp_path / "data" / "1" / "deadly.nc"
    shutil.copy(paths[0], deadly)
    before = children(os.getpid())
    report = h5zarr.index(tmp_path / "data", out, workers=2)
    assert (report.indexed_count, report.failed_count) == (12, 1)
    row = rows_of(out)[str(deadly)]
    assert (row.status, row.attempts) == (Status.FAILED, 1)
    assert row.reason.startswith("crash: the process that read it died (")
    assert "memory" in row.remedy
    deadly.unlink()
    assert h5zarr.index(tmp_path / "data", out, workers=1).is_good
    check_index(out, paths, tmp_path)
    tracker = 1  # of multiprocessing, which stays
    assert eventually(lambda: len(children(os.getpid()) - before) <= tracker)


def test_any_executor_will_do(tmp_path: Path) -> None:
    paths = fill(tmp_path / "data", 8)
    pools = {
        "threads": ThreadPoolExecutor(2),
        "processes": ProcessPoolExecutor(2, get_context("spawn")),
    }
    for name, pool in pools.items():
        with pool:
            assert h5zarr.index(tmp_path / "data", tmp_path / name, executor=pool).is_good
            assert pool.submit(os.getpid).result()  # it stays open
        check_index(tmp_path / name, paths, tmp_path)


def test_anything_else_than_an_executor_is_a_type_error(tmp_path: Path) -> None:
    fill(tmp_path / "data", 1)
    with pytest.raises(TypeError, match=r"list is neither an Executor nor a dask\.distributed\.Client"):
        h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=[])


def test_an_executor_that_is_broken_or_closed_is_an_error_that_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "data", 2)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        with pytest.raises(WorkersLost, match="the executor is broken: its workers died"):
            h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=pool)
    with pytest.raises(WorkersLost, match="executor"):
        h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=pool)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(os.getpid).result()
    with pytest.raises(WorkersLost, match=r"the executor or cluster accepts no more work \(RuntimeError\)"):
        h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=threads)
    assert not (tmp_path / "refs" / "_h5zarr" / "lease.json").exists()
