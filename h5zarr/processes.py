"""Worker processes on this machine that end when this process ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar

from h5zarr.errors import H5ZarrError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

Given = ParamSpec("Given")
Made = TypeVar("Made")


def keep_to_one_processor() -> None:
    """Pin this process to one processor, if the system allows it.

    Siblings get different processors if there are enough. This suits processes with many threads that take turns, as
    Python threads do. Otherwise each thread runs on any free processor, whose cache holds none of its data. With one
    process per processor, that cost 10 to 20 % of the time. Do not call this when there are fewer processes than
    processors: another program may need the chosen processor, and this process could not move away.
    """
    # Siblings are numbered in the order in which they start.
    number = multiprocessing.current_process().name.rpartition("-")[2]
    if hasattr(os, "sched_setaffinity") and number.isdigit():
        allowed = sorted(os.sched_getaffinity(0))
        with suppress(OSError):
            os.sched_setaffinity(0, {allowed[int(number) % len(allowed)]})


class WorkersLost(H5ZarrError):
    """No worker process is left to do the work."""

    kind = "workers"


class Processes:
    """Up to `count` worker processes, started on demand. They end with this process, even if it is killed.

    Each worker first calls `begin` with `arguments`.
    """

    def __init__(self, count: int, begin: Callable[..., None] | None = None, *arguments: Any) -> None:
        self.count = count
        self._begin = begin
        self._arguments = arguments
        self._start()

    def _start(self) -> None:
        # Forking would break the threads of fsspec and other libraries.
        context = multiprocessing.get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        given = (theirs, self._begin, self._arguments)
        self._pool = ProcessPoolExecutor(self.count, context, initializer=_prepare, initargs=given)
        self._theirs = theirs  # stays open until the last process, which starts later, has inherited it

    def submit(self, function: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Future[Made]:
        """Call a function in the next free process. Raises BrokenExecutor if a process has died."""
        with _signals_blocked():
            return self._pool.submit(function, *given, **named)

    def renew(self) -> None:
        """Restart all processes after one of them died. Raises WorkersLost if no process can be started."""
        self.close()
        self._start()
        try:
            self.submit(os.getpid).result()
        except BrokenExecutor:
            what = "no worker process can be started"
            remedy = 'In a script, call this under `if __name__ == "__main__":`. Otherwise check the workers\' stderr.'
            raise WorkersLost(what, remedy=remedy) from None

    def close(self) -> None:
        """Stop all processes, even those that are busy."""
        self._ours.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._theirs.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals while processes start.

    They inherit the mask, so a Ctrl-C does not end them before they are ready.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The tracker unblocks signals when it starts, for itself and for the processes started with it.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(until_closed: Connection, begin: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """Exit when the parent closes its end of the pipe or dies. Ignore signals: the parent handles them."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        until_closed.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if begin is not None:
        begin(*arguments)
