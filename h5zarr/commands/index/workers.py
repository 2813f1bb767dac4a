"""Workers: processes on this machine, or any executor."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import Any, Protocol

from h5zarr.commands.index.planning import Task
from h5zarr.commands.index.work import Batch, IndexSettings, index_batch
from h5zarr.errors import H5ZarrError
from h5zarr.io.location import Location
from h5zarr.io.threads import processor_count
from h5zarr.processes import Processes, WorkersLost, keep_to_one_processor

_ANEW = "Create a new one and run the index again: finished work is not repeated."


class Workers(Protocol):
    """Runs batches, `count` of them at a time."""

    @property
    def count(self) -> int: ...

    def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
        """Start a batch, now or when a worker is free."""
        ...

    def renew(self) -> None:
        """Start new workers, after some died and broke the pool."""
        ...

    def close(self) -> None:
        """Stop the workers at once."""
        ...


class LocalWorkers:
    """Processes on this machine. They end when this process ends, however it ends."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or processor_count()
        begin = keep_to_one_processor if self.count >= processor_count() else None
        self._processes = Processes(self.count, begin)

    def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
        return self._processes.submit(index_batch, tasks, settings)

    def renew(self) -> None:
        self._processes.renew()

    def close(self) -> None:
        self._processes.close()


class ExecutorWorkers:
    """Any `concurrent.futures.Executor`, which stays open, or a Dask client, which provides one."""

    def __init__(self, executor: Any, count: int | None = None) -> None:
        self._executor: Executor = executor if isinstance(executor, Executor) else _of_dask(executor)
        found = sum(executor.ncores().values()) if hasattr(executor, "ncores") else _size(executor)
        self.count = count or found or os.cpu_count() or 1

    def submit(self, tasks: Sequence[Task], settings: IndexSettings) -> Future[Batch]:
        try:
            return self._executor.submit(index_batch, tasks, settings)
        except BrokenExecutor:
            raise
        except Exception as error:
            what = f"the executor or cluster accepts no more work ({type(error).__name__})"
            raise WorkersLost(what, remedy=_ANEW) from None

    def renew(self) -> None:
        what = "the executor is broken: its workers died"
        raise WorkersLost(what, remedy=_ANEW)

    def close(self) -> None:
        """Does nothing: the caller owns the executor."""


def _of_dask(client: Any) -> Executor:
    if not hasattr(client, "get_executor"):
        raise TypeError(f"{type(client).__name__} is neither an Executor nor a dask.distributed.Client")
    executor: Executor = client.get_executor(pure=False)
    return executor


def _size(executor: Any) -> int | None:
    size = getattr(executor, "_max_workers", None)
    return size if isinstance(size, int) else None


@contextmanager
def dask_client(address: str | None) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`, or None without an address. Raises H5ZarrError if none
    answers.
    """
    if address is None:
        yield None
        return
    from distributed import Client
    from distributed.comm.addressing import parse_host_port

    try:
        if address.startswith(("tcp://", "tls://")):
            parse_host_port(address)  # a client of an invalid address complains once more when it is deleted
        # Not as Dask's default: a client that fails to connect would stay the default of this process.
        client: Any = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call, unused-ignore]
    except (OSError, TimeoutError, ValueError) as error:
        what = f"no Dask scheduler answers at {Location.parse(address)} ({type(error).__name__})"
        raise H5ZarrError(what, remedy="Check the address, such as tcp://scheduler:8786.") from None
    with client:
        yield client
