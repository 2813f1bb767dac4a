"""Signals that stop a long command, and let it finish what it has begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Set by a signal; keeps its `number`."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.number = 0

    def set(self, number: int, frame: FrameType | None = None) -> None:
        self.number = number
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


@contextmanager
def stopping() -> Iterator[Stop]:
    """Yield a flag that a signal sets. A second signal ends the process."""
    stop = Stop()
    before: dict[signal.Signals, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        stop.set(number)
        for one, handler in before.items():
            signal.signal(one, handler)

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
