"""Who does the work: processes of this machine, or anything that takes functions as an executor does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Protocol

from h5zarr.indexing.planning import Task
from h5zarr.indexing.work import Batch, Settings, index_batch
from h5zarr.io.threads import processor_count
from h5zarr.processes import Processes, WorkersLost, keep_to_one_processor

_ANEW = "Make a new one, and index again: what was finished is not done twice."


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
        self.count = count or processor_count()
        begin = keep_to_one_processor if self.count >= processor_count() else None
        self._processes = Processes(self.count, begin)

    def submit(self, tasks: Sequence[Task], settings: Settings) -> Future[Batch]:
        return self._processes.submit(index_batch, tasks, settings)

    def renew(self) -> None:
        self._processes.renew()

    def close(self) -> None:
        self._processes.close()


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
