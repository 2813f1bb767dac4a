"""Run slow functions so that a stopped run still ends within seconds.

All threads are daemons. When Python ends, it waits for the threads of a ThreadPoolExecutor, so a request that hangs
would hold up a stopped run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import TypeVar

from h5zarr.errors import H5ZarrError

S = TypeVar("S")
T = TypeVar("T")
_AT_ONCE = 32
_LOOK_SECONDS = 0.1


class Stopped(H5ZarrError):
    """The run was stopped before it began."""

    kind = "stopped"


def wait_for(act: Callable[..., T], is_stopped: Callable[[], bool]) -> T:
    """Return the result of `act()`. Raise Stopped, and abandon `act`, once `is_stopped` returns True."""
    future: Future[T] = Future()
    is_left = threading.Event()

    def work() -> None:
        try:
            future.set_result(act(is_stopped=is_left.is_set))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    while not wait([future], timeout=_LOOK_SECONDS).done:
        if is_stopped():
            is_left.set()
            raise Stopped("the run was stopped before it began")
    return future.result()


def map_at_once(act: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return the result of `act` for each item, in order, with up to 32 calls at a time."""
    futures: list[Future[T]] = [Future() for _ in items]
    waiting = iter(zip(items, futures, strict=True))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                item, future = next(waiting, (None, None))
            if future is None:
                return
            try:
                future.set_result(act(item))  # type: ignore[arg-type]  # with a future, there is an item
            except BaseException as error:
                future.set_exception(error)

    for _ in range(min(_AT_ONCE, len(items))):
        threading.Thread(target=work, daemon=True).start()
    return [future.result() for future in futures]
