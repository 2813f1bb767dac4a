"""What all sources of one process share when they read from far away: requests under way, and memory.

Each of them keeps to its own policy. But a process may scan many files at the same time, and then the sum counts: for
the connections, of which the libraries below open some hundred at most, and for the memory of the machine.
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
    """So many bytes may be under way at once. What is larger than all of it waits until it is alone."""

    def __init__(self, total_nbytes: int) -> None:
        self._total_nbytes = total_nbytes
        self._used_nbytes = 0
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, nbytes: int) -> Iterator[None]:
        """Take `nbytes` out of the budget for as long as the block runs, which waits until they are there."""
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
        self.under_way = ByteBudget(MOST_NBYTES)
        self._sources: WeakSet[object] = WeakSet()
        self._requests: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def join(self, source: object) -> None:
        """Count a source among those that are open."""
        self._sources.add(source)

    def leave(self, source: object) -> None:
        """Count it no longer."""
        self._sources.discard(source)

    def cache_nbytes(self, wanted_nbytes: int) -> int:
        """Return how much one source may keep, which would keep `wanted_nbytes` if it were alone."""
        share = wanted_nbytes // max(1, len(self._sources))
        return max(share, min(wanted_nbytes, _LEAST_CACHE_NBYTES))

    def requests(self) -> asyncio.Semaphore:
        """Return what each request under way holds, in the event loop that runs."""
        loop = asyncio.get_running_loop()
        if loop not in self._requests:
            self._requests[loop] = asyncio.Semaphore(MOST_REQUESTS)
        return self._requests[loop]


_sharing = Sharing()


def sharing() -> Sharing:
    """Return the limits of this process."""
    return _sharing


def _forget() -> None:
    """A child process begins anew: what is under way is the parent's."""
    global _sharing
    _sharing = Sharing()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
