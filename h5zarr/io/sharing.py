"""Limits that all remote sources of one process share: requests in flight, and memory.

Each source follows its own policy. But a process may scan many files at the same time, and their sum is limited too:
the HTTP libraries open about a hundred connections, and the machine has limited memory.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary, WeakSet

MIB = 1024 * 1024
MOST_REQUESTS = 96
MOST_NBYTES = 256 * MIB
_LEAST_CACHE_NBYTES = 8 * MIB


class ByteBudget:
    """A limit of the bytes in flight. A reservation larger than the limit waits until it is the only one."""

    def __init__(self, total_nbytes: int) -> None:
        self._total_nbytes = total_nbytes
        self._used_nbytes = 0
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, nbytes: int) -> Iterator[None]:
        """Wait until `nbytes` are available, and reserve them while the `with` block runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self._used_nbytes or self._used_nbytes + nbytes <= self._total_nbytes)
            self._used_nbytes += nbytes
        try:
            yield
        finally:
            with self._changed:
                self._used_nbytes -= nbytes
                self._changed.notify_all()


class Sharing:
    """The limits of one process."""

    def __init__(self) -> None:
        self.in_flight = ByteBudget(MOST_NBYTES)
        self._sources: WeakSet[object] = WeakSet()
        self._requests: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def join(self, source: object) -> None:
        """Count a source as open."""
        self._sources.add(source)

    def leave(self, source: object) -> None:
        """Count a source as closed."""
        self._sources.discard(source)

    def cache_nbytes(self, wanted_nbytes: int) -> int:
        """Return how much one source may cache, if it would cache `wanted_nbytes` when no other source is open."""
        share = wanted_nbytes // max(1, len(self._sources))
        return max(share, min(wanted_nbytes, _LEAST_CACHE_NBYTES))

    def requests(self) -> asyncio.Semaphore:
        """Return the semaphore that every request in flight holds. Each event loop has its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._requests:
            self._requests[loop] = asyncio.Semaphore(MOST_REQUESTS)
        return self._requests[loop]


_sharing = Sharing()


def sharing() -> Sharing:
    """Return the limits of this process."""
    return _sharing


def _forget() -> None:
    """Start with empty limits in a child process: the requests in flight belong to the parent."""
    global _sharing
    _sharing = Sharing()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
