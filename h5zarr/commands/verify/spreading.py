"""Spread runs over processes: h5py reads in one thread at a time, so only processes make it faster.

A run can kill its process, for instance by running out of memory, and the pool then loses all runs in progress. Each
region of those runs is then tried alone. A region that kills a process again is the cause; the others continue.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import ExitStack, closing
from typing import TypeAlias

from h5zarr.commands.verify.comparers import open_comparer
from h5zarr.commands.verify.comparing import ArrayComparer, Run, Work
from h5zarr.commands.verify.verified_arrays import Outcome
from h5zarr.errors import H5ZarrError
from h5zarr.io.location import Location
from h5zarr.io.protocols import protocol_of
from h5zarr.processes import Processes, WorkersLost

PAYING_NBYTES = 256 << 20  # reading this much takes about three times as long as starting a process
_MOST_RUNS = 64  # in a task, however small they are
_LOOK_SECONDS = 0.2
_DIED = "its worker process died. It may have run out of memory: give it more, or use fewer workers"

Done: TypeAlias = tuple[Run, Outcome]


def compare(
    runs: Sequence[Run], comparer: ArrayComparer, workers: int | None, needs: Callable[[Run], bool]
) -> Generator[Done, None, None]:
    """Yield the outcomes of the runs that are still needed when their turn comes, as they finish.

    `workers` processes compare them; by default as many as pay off, if processes can be used. Raises WorkersLost.
    """
    count = count_processes(comparer, runs, workers)
    has_begun = False
    if count > 1:
        try:
            with closing(_compare_in_processes(runs, comparer, count, needs)) as found:
                for one in found:
                    has_begun = True
                    yield one
            return
        except WorkersLost:
            if workers is not None or has_begun:
                raise
    for run in runs:
        if needs(run):
            yield run, comparer.compare(run)


def count_processes(comparer: ArrayComparer, runs: Sequence[Run], wanted: int | None) -> int:
    """Return the number of processes: as requested, or as many as pay off. 1 means this process."""
    if multiprocessing.current_process().daemon or _is_only_here(comparer.work):
        return 1  # daemons cannot start processes, and others could not see the file
    if wanted is not None:
        return wanted
    if comparer.is_copy:
        return 1  # each process would read all of it
    return max(1, min(os.cpu_count() or 1, sum(run.nbytes for run in runs) // PAYING_NBYTES))


def _is_only_here(work: Work) -> bool:
    """Return whether an input exists only in the memory of this process."""
    sources = work.opened.sources
    urls = (work.source.text, *sources.urls, sources.references or "")
    return any(protocol_of(link) == "memory" for url in urls for link in Location.parse(url).links)


def _compare_in_processes(
    runs: Iterable[Run], comparer: ArrayComparer, count: int, needs: Callable[[Run], bool]
) -> Generator[Done, None, None]:
    work = comparer.work
    try:
        packed = pickle.dumps(work)
    except Exception as error:  # depends on the storage options
        what = f"the inputs cannot be sent to another process ({type(error).__name__})"
        raise WorkersLost(what, remedy="Compare in this process: workers=1.") from None
    processes = Processes(count, begin, packed)
    try:
        for run, outcome in _Spreading(runs, work.block_nbytes, processes, needs).done():
            if outcome is None:
                outcome = Outcome(error=f"{comparer.where(run)} could not be compared: {_DIED}")
            yield run, outcome
    finally:
        processes.close()


class _Spreading:
    """Hands out tasks, each of a few runs, to all processes."""

    def __init__(
        self, runs: Iterable[Run], task_nbytes: int, processes: Processes, needs: Callable[[Run], bool]
    ) -> None:
        self._queue = deque(_packed(runs, task_nbytes))
        self._suspects: deque[Run] = deque()
        self._processes = processes
        self._needs = needs
        self._running: dict[Future[list[Done]], tuple[Run, ...]] = {}
        self._is_trial = False  # a trial is a single region, alone

    def done(self) -> Iterator[tuple[Run, Outcome | None]]:
        """Yield the outcome of each run, or None if it killed a process."""
        while self._queue or self._suspects or self._running:
            self._submit()
            for future in wait(self._running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                runs = self._running.pop(future, None)
                if runs is None:
                    continue  # already suspected together with another task
                try:
                    found = future.result()
                except BrokenExecutor:
                    yield from self._blame(runs)
                else:
                    yield from found

    def _submit(self) -> None:
        if self._suspects:
            while self._suspects and not self._running:
                self._begin((self._suspects.popleft(),), is_trial=True)
            return
        while self._queue and len(self._running) < 2 * self._processes.count and not self._suspects:
            self._begin(self._queue.popleft(), is_trial=False)

    def _begin(self, runs: tuple[Run, ...], *, is_trial: bool) -> None:
        needed = tuple(run for run in runs if self._needs(run))
        if not needed:
            return
        try:
            self._running[self._processes.submit(compare_runs, needed)] = needed
            self._is_trial = is_trial
        except BrokenExecutor:
            self._suspect(needed)

    def _blame(self, runs: tuple[Run, ...]) -> Iterator[tuple[Run, None]]:
        if self._is_trial:
            yield runs[0], None
            runs = ()
        self._suspect(runs)

    def _suspect(self, runs: tuple[Run, ...]) -> None:
        """Suspect these runs and all runs in progress, and start new processes."""
        for one in (runs, *self._running.values()):
            self._suspects.extend(part for run in one for part in run.split())
        self._running.clear()
        self._processes.renew()


def _packed(runs: Iterable[Run], nbytes: int) -> Iterator[tuple[Run, ...]]:
    """Yield runs grouped into tasks of about so many bytes, large enough to be worth sending."""
    task: list[Run] = []
    for run in runs:
        task.append(run)
        if len(task) == _MOST_RUNS or sum(one.nbytes for one in task) >= nbytes:
            yield tuple(task)
            task = []
    if task:
        yield tuple(task)


# --- in another process


class _Kept:
    """What a process keeps between tasks."""

    packed = b""
    comparer: ArrayComparer | None = None
    stack = ExitStack()


def begin(packed: bytes) -> None:
    """Store the inputs. They are opened with the first run."""
    _Kept.packed = packed


def compare_runs(runs: tuple[Run, ...]) -> list[Done]:
    """Return the outcomes of runs, in order. Raises WorkersLost if this process cannot open the file."""
    if _Kept.comparer is None:
        try:
            _Kept.comparer = _Kept.stack.enter_context(open_comparer(pickle.loads(_Kept.packed)))
        except Exception as error:
            why = error if isinstance(error, H5ZarrError) else type(error).__name__
            what = f"another process cannot open the inputs: {why}"
            raise WorkersLost(what, remedy="Compare in this process: workers=1.") from None
    done: list[Done] = []
    ended: set[str] = set()
    for run in runs:
        if run.path not in ended:
            outcome = _Kept.comparer.compare(run)
            done.append((run, outcome))
            ended |= {run.path} if outcome.is_end else set()
    return done
