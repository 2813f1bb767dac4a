"""Waiting for what may take minutes, in a run that may be stopped and then ends in seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from h5zarr.indexing.lease import Stopped

T = TypeVar("T")
_LOOK_SECONDS = 0.1


def wait_for(act: Callable[..., T], is_stopped: Callable[[], bool]) -> T:
    """Return what `act` returns, or raise Stopped, and leave it behind: it is told then."""
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
