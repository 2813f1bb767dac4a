"""Run slow functions so that a stopped run still ends within seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from h5zarr.commands.index.lease import Stopped

T = TypeVar("T")
_LOOK_SECONDS = 0.1


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
