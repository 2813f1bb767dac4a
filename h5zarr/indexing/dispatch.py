"""Handing out work: batches for all workers, until all is done, whatever becomes of the workers.

A worker may die of a file, of too little memory for instance, and takes along all that it was at. Then each of those
files is tried alone: the one of which a worker dies again is at fault, and is recorded as such; the others go on.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from itertools import count

from h5zarr.errors import H5ZarrError
from h5zarr.indexing.planning import Task
from h5zarr.indexing.work import Batch, Done, Settings, failed_row
from h5zarr.indexing.workers import Workers

_MOST_AT_ONCE = 64  # tasks in a batch
_LOOK_SECONDS = 0.1
GRACE_SECONDS = 3.0  # for what is under way when a run is stopped
BACKOFF_SECONDS = (1.0, 5.0)  # before what failed for a passing reason is tried again


class WorkerDied(H5ZarrError):
    """The process that read a file died."""

    kind = "crash"
    remedy = "It may have run out of memory: give it more, or fewer --workers; else please tell of it in an issue."


class Dispatcher:
    """Runs tasks on workers, and takes them out of the queue that it is given.

    `is_stopped` is asked often; when it says so, only what is under way is waited for. `has_lost` says that some of the
    workers died, and may have left something behind.
    """

    def __init__(
        self,
        tasks: deque[Task],
        settings: Settings,
        workers: Workers,
        is_stopped: Callable[[], bool],
        *,
        backoff_seconds: tuple[float, ...] = BACKOFF_SECONDS,
    ) -> None:
        self._queue = tasks
        self._settings = settings
        self._workers = workers
        self._is_stopped = is_stopped
        self._backoff_seconds = backoff_seconds
        self._suspects: deque[Task] = deque()
        self._later: list[tuple[float, int, Task]] = []  # when to try again, a number that orders equals, what
        self._tries: dict[str, int] = {}
        self._numbers = count()
        self._running: dict[Future[Batch], list[Task]] = {}
        self.has_lost = False

    def run(self) -> Iterator[Done]:
        """Yield what becomes of each task, as it is done. What is not done when a run is stopped is not told of."""
        while (self._queue or self._suspects or self._later or self._running) and not self._is_stopped():
            self._bring_back()
            self._submit()
            yield from self._collect(_LOOK_SECONDS)
        end = time.monotonic() + GRACE_SECONDS
        for future in self._running:
            future.cancel()
        while self._running and time.monotonic() < end:
            yield from self._collect(_LOOK_SECONDS)
        self.has_lost |= bool(self._running)

    def _bring_back(self) -> None:
        """Put what failed for a passing reason back into the queue, when its time has come."""
        while self._later and self._later[0][0] <= time.monotonic():
            self._queue.append(heapq.heappop(self._later)[2])

    def _submit(self) -> None:
        if self._suspects:
            if not self._running:
                self._begin([self._suspects.popleft()])
            return
        room = 2 * self._workers.count - len(self._running)
        while room > 0 and self._queue and not self._suspects:
            # Towards the end batches are small, so that all workers end at the same time.
            size = min(_MOST_AT_ONCE, max(1, len(self._queue) // (2 * self._workers.count)))
            self._begin([self._queue.popleft() for _ in range(min(size, len(self._queue)))])
            room -= 1

    def _begin(self, tasks: list[Task]) -> None:
        try:
            self._running[self._workers.submit(tasks, self._settings)] = tasks
        except BrokenExecutor:
            self._suspects.extend(tasks)
            self._suspect_all()

    def _collect(self, seconds: float) -> Iterator[Done]:
        """Yield what has been done by now, or in a moment."""
        if not self._running:
            time.sleep(min(seconds, 0.01))
            return
        for future in wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED).done:
            tasks = self._running.pop(future, None)
            if tasks is None:
                continue  # it went down with another one
            try:
                batch = future.result()
            except CancelledError:
                self._queue.extend(tasks)  # by this one in the end, or by a cluster that was told to begin anew
            except Exception as error:
                if not self._is_stopped():  # what is ended from outside takes its workers along
                    yield from self._blame(tasks, error)
            else:
                self._queue.extendleft(reversed(batch.left))
                yield from (done for done in batch.done if not self._put_off(done))

    def _put_off(self, done: Done) -> bool:
        """Return whether a task that failed is tried again later in the same run."""
        tries = self._tries.get(done.task.source, 0)
        if not done.may_pass or tries >= len(self._backoff_seconds):
            return False
        self._tries[done.task.source] = tries + 1
        heapq.heappush(self._later, (time.monotonic() + self._backoff_seconds[tries], next(self._numbers), done.task))
        return True

    def _blame(self, tasks: list[Task], error: Exception) -> Iterator[Done]:
        """Find out which of these tasks, and of those that were under way, a worker died of."""
        is_broken = isinstance(error, BrokenExecutor)
        if len(tasks) == 1 and not (is_broken and self._running):
            died = WorkerDied(f"{tasks[0].source}: the process that read it died ({type(error).__name__})")
            yield Done(tasks[0], failed_row(tasks[0], self._settings, died), False)
        else:
            self._suspects.extend(tasks)
        if is_broken:
            self._suspect_all()

    def _suspect_all(self) -> None:
        """Suspect all that was under way, and begin with new workers."""
        for tasks in self._running.values():
            self._suspects.extend(tasks)
        self._running.clear()
        self.has_lost = True
        self._workers.renew()
