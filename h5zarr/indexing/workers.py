"""Who does the work: processes of this machine, or anything that takes functions as an executor does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Protocol

from h5zarr.errors import H5ZarrError
from h5zarr.indexing.planning import Task
from h5zarr.indexing.work import Batch, Settings, index_batch

_ANEW = "Make a new one, and index again: what was finished is not done twice."
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class WorkersLost(H5ZarrError):
    """There is nobody left to do the work."""

    kind = "workers"


class Workers(Protocol):
    """Does batches, `count` of them at a time."""

    @property
    def count(self) -> int: ...

    def submit(self, tasks: Sequence[Task], settings: Settings) -> Future[Batch]:
        """Begin a batch, now or when somebody is free."""
        ...

    def renew(self) -> None:
        """Begin anew, after some of the workers died and took the others with them."""
        ...

    def close(self) -> None:
        """Let the workers go, whatever they are doing."""
        ...


class LocalWorkers:
    """Processes of this machine. They end with this one, however that ends."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self._begin()

    def _begin(self) -> None:
        # Not forked: threads of fsspec and others do not survive that.
        context = multiprocessing.get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(self.count, context, initializer=_prepare_worker, initargs=(theirs,))
        self._theirs = theirs  # kept until the last process has it, which are started one by one

    def submit(self, tasks: Sequence[Task], settings: Settings) -> Future[Batch]:
        with _signals_blocked():
            return self._pool.submit(index_batch, tasks, settings)

    def renew(self) -> None:
        self.close()
        self._begin()
        try:
            with _signals_blocked():
                first = self._pool.submit(os.getpid)
            first.result()
        except BrokenExecutor:
            what = "no process can be started to do the work"
            remedy = 'In a script, index below: if __name__ == "__main__". Or see what the processes said.'
            raise WorkersLost(what, remedy=remedy) from None

    def close(self) -> None:
        self._ours.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._theirs.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Have signals wait while processes are started, which begin like that: one for all would end them at once."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which does not wait, and has the processes that are started with it not wait
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker(until_closed: Connection) -> None:
    """End this process when the other end of a pipe is closed, by whom or whatever, and leave signals to its parent."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        until_closed.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class ExecutorWorkers:
    """Any `concurrent.futures.Executor`, which stays open; or a client of Dask, which can make one."""

    def __init__(self, executor: Any, count: int | None = None) -> None:
        self._executor: Executor = executor if isinstance(executor, Executor) else _of_dask(executor)
        found = sum(executor.ncores().values()) if hasattr(executor, "ncores") else _size(executor)
        self.count = count or found or os.cpu_count() or 1

    def submit(self, tasks: Sequence[Task], settings: Settings) -> Future[Batch]:
        try:
            return self._executor.submit(index_batch, tasks, settings)
        except BrokenExecutor:
            raise
        except Exception as error:
            what = f"the executor or the cluster takes no more work ({type(error).__name__})"
            raise WorkersLost(what, remedy=_ANEW) from None

    def renew(self) -> None:
        what = "the executor is broken: its workers died"
        raise WorkersLost(what, remedy=_ANEW)

    def close(self) -> None:
        """Whoever made the executor closes it."""


def _of_dask(client: Any) -> Executor:
    if not hasattr(client, "get_executor"):
        raise TypeError(f"{type(client).__name__} is neither an Executor nor a dask.distributed.Client")
    executor: Executor = client.get_executor(pure=False)
    return executor


def _size(executor: Any) -> int | None:
    size = getattr(executor, "_max_workers", None)
    return size if isinstance(size, int) else None
