"""Other processes of this machine that work for this one, and end with it."""

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
    """Have this process keep to one processor, a different one than its siblings where there are enough; if possible.

    For processes of many threads that take turns, as Python's do: whichever is next would run where there is room, and
    find nothing of what it needs in that processor's cache. With a process for each of them, a tenth to a fifth of the
    time was lost in that way. Where there are fewer, some other program may want the one that was chosen, and this
    process could not get out of its way: leave it alone then.
    """
    number = multiprocessing.current_process().name.rpartition("-")[2]  # siblings are numbered as they are started
    if hasattr(os, "sched_setaffinity") and number.isdigit():
        allowed = sorted(os.sched_getaffinity(0))
        with suppress(OSError):
            os.sched_setaffinity(0, {allowed[int(number) % len(allowed)]})


class WorkersLost(H5ZarrError):
    """There is nobody left to do the work."""

    kind = "workers"


class Processes:
    """Up to `count` processes, started when there is work for them. They end with this one, however that ends.

    Each calls `begin` with `arguments` before anything else.
    """

    def __init__(self, count: int, begin: Callable[..., None] | None = None, *arguments: Any) -> None:
        self.count = count
        self._begin = begin
        self._arguments = arguments
        self._start()

    def _start(self) -> None:
        # Not forked: threads of fsspec and others do not survive that.
        context = multiprocessing.get_context("spawn")
        theirs, self._ours = context.Pipe(duplex=False)
        given = (theirs, self._begin, self._arguments)
        self._pool = ProcessPoolExecutor(self.count, context, initializer=_prepare, initargs=given)
        self._theirs = theirs  # kept until the last process has it, which are started one by one

    def submit(self, function: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Future[Made]:
        """Have a function called, now or when a process is free. Raises BrokenExecutor where one of them has died."""
        with _signals_blocked():
            return self._pool.submit(function, *given, **named)

    def renew(self) -> None:
        """Begin anew, after one of them died and took the others with it. Raises WorkersLost where that fails, too."""
        self.close()
        self._start()
        try:
            self.submit(os.getpid).result()
        except BrokenExecutor:
            what = "no process can be started to do the work"
            remedy = 'In a script, call this below: if __name__ == "__main__". Or see what the processes said.'
            raise WorkersLost(what, remedy=remedy) from None

    def close(self) -> None:
        """End them, whatever they are doing."""
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


def _prepare(until_closed: Connection, begin: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """End this process when the other end of a pipe is closed, by whom or whatever, and leave signals to its parent."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        until_closed.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if begin is not None:
        begin(*arguments)
