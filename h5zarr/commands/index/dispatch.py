"""Dispatch batches to the workers until all tasks are done, even if workers die.

A file can kill a worker, for instance by running it out of memory, and the worker takes its other files down with it.
Each of these files is then tried alone. A file that kills a worker again is recorded as the cause; the others continue.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from itertools import count

from h5zarr.commands.index.planning import Task
from h5zarr.commands.index.work import Batch, Done, IndexSettings, failed_row
from h5zarr.commands.index.workers import Workers
from h5zarr.errors import H5ZarrError

_MOST_AT_ONCE = 64  # tasks in a batch
_LOOK_SECONDS = 0.1
GRACE_SECONDS = 3.0  # for running batches when a run is stopped
BACKOFF_SECONDS = (1.0, 5.0)  # before retrying a task that failed for a transient reason


class WorkerDied(H5ZarrError):
    """The process that read a file died."""

    kind = "crash"
    remedy = (
        "It may have run out of memory: use fewer processes (workers=NUMBER), or fewer files at a time "
        "(at_once=NUMBER). Otherwise please open an issue."
    )


class Dispatcher:
    """Runs tasks on workers. Takes the tasks out of the queue it is given.

    It calls `is_stopped` often; once that returns True, it only waits for running batches. `has_lost` is True if
    workers died and may have left temporary files.
    """

    def __init__(
        self,
        tasks: deque[Task],
        settings: IndexSettings,
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
        self._later: list[tuple[float, int, Task]] = []  # (when to retry, tie-breaker, task)
        self._tries: dict[str, int] = {}
        self._numbers = count()
        self._running: dict[Future[Batch], list[Task]] = {}
        self.has_lost = False

    def run(self) -> Iterator[Done]:
        """Yield the result of each task as it finishes. Tasks left over when the run is stopped yield nothing."""
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
        """Move tasks whose backoff has passed back into the queue."""
        while self._later and self._later[0][0] <= time.monotonic():
            self._queue.append(heapq.heappop(self._later)[2])

    def _submit(self) -> None:
        if self._suspects:
            if not self._running:
                self._begin([self._suspects.popleft()])
            return
        room = 2 * self._workers.count - len(self._running)
        while room > 0 and self._queue and not self._suspects:
            # Batches shrink towards the end, so that all workers finish at about the same time.
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
        """Yield the results available within `seconds`."""
        if not self._running:
            time.sleep(min(seconds, 0.01))
            return
        for future in wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED).done:
            tasks = self._running.pop(future, None)
            if tasks is None:
                continue  # already suspected together with another batch
            try:
                batch = future.result()
            except CancelledError:
                self._queue.extend(tasks)  # cancelled at the end of `run`, or by a cluster that restarted
            except Exception as error:
                if not self._is_stopped():  # an external signal also kills the workers
                    yield from self._blame(tasks, error)
            else:
                self._queue.extendleft(reversed(batch.left))
                yield from (done for done in batch.done if not self._put_off(done))

    def _put_off(self, done: Done) -> bool:
        """Return whether a failed task will be retried later in the same run."""
        tries = self._tries.get(done.task.source, 0)
        if not done.is_temporary or tries >= len(self._backoff_seconds):
            return False
        self._tries[done.task.source] = tries + 1
        heapq.heappush(self._later, (time.monotonic() + self._backoff_seconds[tries], next(self._numbers), done.task))
        return True

    def _blame(self, tasks: list[Task], error: Exception) -> Iterator[Done]:
        """Yield a failure if one task must have killed the worker; otherwise suspect these and all running tasks."""
        is_broken = isinstance(error, BrokenExecutor)
        if len(tasks) == 1 and not (is_broken and self._running):
            died = WorkerDied(f"{tasks[0].source}: the process that read it died ({type(error).__name__})")
            yield Done(tasks[0], failed_row(tasks[0], self._settings, died), False)
        else:
            self._suspects.extend(tasks)
        if is_broken:
            self._suspect_all()

    def _suspect_all(self) -> None:
        """Suspect all running tasks, and start new workers."""
        for tasks in self._running.values():
            self._suspects.extend(tasks)
        self._running.clear()
        self.has_lost = True
        self._workers.renew()
