"""Read ahead for a loop along an axis: while a program works on one step, the next ones are on their way.

Three selections that differ by the same shift along one axis are a loop. If several threads read at once, there is
none: they do not wait for each other, and their order is accidental. What follows is read in blocks of whole chunks, so
that steps within a chunk share one read. How many blocks are read ahead depends on how often the loop had to wait.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.chunk_selection import Key
from h5zarr.zarr_model.grid import ChunkGrid

Values = npt.NDArray[Any]
_WORTHWHILE_SECONDS = 0.003  # a faster read need not be begun early
_SURE = 2  # steps
_FIRST_AHEAD, _MOST_AHEAD = 2, 16  # blocks


class Range(NamedTuple):
    """The elements of an axis that a selection takes."""

    start: int
    stop: int


class _Loop(NamedTuple):
    """A loop along `axis`: each selection is `shift` elements after the one before. The other ranges stay."""

    axis: int
    shift: int


class _AheadBlock:
    """Values that are read ahead: those of a whole number of chunks along the axis of a loop."""

    __slots__ = ("__weakref__", "place", "values")

    def __init__(self, place: Range, values: Future[Values]) -> None:
        self.place, self.values = place, values


class _Budget:
    """The bytes that all arrays of a process have read ahead."""

    def __init__(self) -> None:
        self._taken_nbytes = 0
        self._returned: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def used_nbytes(self) -> int:
        """The bytes that are in use."""
        return self._taken_nbytes - sum(list(self._returned))

    def reserve(self, nbytes: int, most_nbytes: int) -> bool:
        """Take bytes of the budget, if it has so many left."""
        with self._lock:
            while self._returned:
                self._taken_nbytes -= self._returned.popleft()
            if self._taken_nbytes + nbytes > most_nbytes:
                return False
            self._taken_nbytes += nbytes
            return True

    def release(self, nbytes: int) -> None:
        """Give bytes back. Without a lock: Python's collector may call this at any moment, while this thread has it."""
        self._returned.append(nbytes)


_budget = _Budget()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_AHEAD, thread_name_prefix="h5zarr-ahead")


_arrays: weakref.WeakSet[ReadingAhead] = weakref.WeakSet()


def _forget() -> None:
    """Start anew in a child process: the threads that read ahead exist only in the parent."""
    global _budget
    _budget = _Budget()
    _threads.cache_clear()
    for array in list(_arrays):
        array.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class ReadingAhead:
    """Reads an array by selection with `read`, and ahead of a loop, up to `most_nbytes` for all arrays together."""

    def __init__(self, read: Callable[[Sequence[Range]], Values], grid: ChunkGrid, itemsize: int, most: int) -> None:
        self._read, self._grid, self._itemsize, self._most_nbytes = read, grid, itemsize, most
        self.forget()
        _arrays.add(self)

    def forget(self) -> None:
        """Forget the loop, and what was read ahead of it."""
        self._lock = threading.Lock()
        self._last: tuple[Range, ...] | None = None
        self._loop: _Loop | None = None
        self._steps = self._readers = 0
        self._blocks: list[_AheadBlock] = []
        self._ahead = _FIRST_AHEAD

    def get(self, wanted: tuple[Range, ...]) -> Values:
        """Return the values of a selection."""
        with self._lock:
            self._readers += 1
        try:
            return self._get(wanted)
        finally:
            with self._lock:
                self._readers -= 1

    def _get(self, wanted: tuple[Range, ...]) -> Values:
        with self._lock:
            self._follow(wanted)
            block = self._find(wanted)
            if block is not None and not block.values.done():
                self._ahead = min(2 * self._ahead, _MOST_AHEAD)
            loop = self._loop
            if block is not None:
                self._read_on(wanted)
        if block is None or loop is None:
            return self._read_now(wanted)
        try:
            values = block.values.result()
        except Exception:
            return self._read(wanted)  # the error may be about another step
        inside = [slice(None)] * len(wanted)
        inside[loop.axis] = slice(*(at - block.place.start for at in wanted[loop.axis]))
        return values[tuple(inside)].copy()

    def _read_now(self, wanted: tuple[Range, ...]) -> Values:
        """Read a selection, and what follows if that took long."""
        began = time.perf_counter()
        values = self._read(wanted)
        if time.perf_counter() - began > _WORTHWHILE_SECONDS:
            with self._lock:
                self._read_on(wanted)
        return values

    def _follow(self, wanted: tuple[Range, ...]) -> None:
        """Find out whether a selection continues a loop. If not, forget what was read ahead."""
        before, self._last = self._last, wanted
        if before is None or wanted == before:
            return
        loop = find_loop(before, wanted)
        if loop != self._loop:
            self._loop, self._steps, self._blocks, self._ahead = loop, 0, [], _FIRST_AHEAD
        self._steps += 1

    def _find(self, wanted: tuple[Range, ...]) -> _AheadBlock | None:
        if self._loop is None:
            return None
        start, stop = wanted[self._loop.axis]
        if self._loop.shift > 0:
            self._blocks = [one for one in self._blocks if one.place.stop > start]
        else:
            self._blocks = [one for one in self._blocks if one.place.start < stop]
        return next((one for one in self._blocks if one.place.start <= start and stop <= one.place.stop), None)

    def _read_on(self, wanted: tuple[Range, ...]) -> None:
        """Begin to read the blocks that the next steps of the loop need."""
        if self._loop is None or self._steps < _SURE or self._readers > 1:
            return
        axis, shift = self._loop
        length = self._grid.shape[axis]
        known = {one.place for one in self._blocks}
        start, stop = wanted[axis]
        while len(known) < self._ahead:
            start, stop = start + shift, stop + shift
            if start < 0 or stop > length:
                return
            place = self._whole_chunks(axis, start, stop)
            if place not in known:
                known.add(place)
                if not self._begin(wanted, axis, place):
                    return

    def _whole_chunks(self, axis: int, start: int, stop: int) -> Range:
        """Return the elements of all chunks that a range touches."""
        division = self._grid.axes[axis]
        first, end = division.bounds(division.find(np.array([start, stop - 1], np.int64)))
        return Range(int(first[0]), int(end[1]))

    def _begin(self, wanted: tuple[Range, ...], axis: int, place: Range) -> bool:
        """Begin to read a block. Return whether the budget allows it."""
        ranges = (*wanted[:axis], place, *wanted[axis + 1 :])
        nbytes = prod(one.stop - one.start for one in ranges) * self._itemsize
        if not _budget.reserve(nbytes, self._most_nbytes):
            return False
        block = _AheadBlock(place, _threads().submit(self._read, ranges))
        weakref.finalize(block, _budget.release, nbytes)
        self._blocks.append(block)
        return True


def find_loop(before: Sequence[Range], wanted: Sequence[Range]) -> _Loop | None:
    """Return the loop of which these are two steps; None unless they differ by a shift along one axis."""
    differing = [axis for axis, (one, other) in enumerate(zip(before, wanted, strict=True)) if one != other]
    if len(differing) != 1:
        return None
    one, other = before[differing[0]], wanted[differing[0]]
    if one.stop - one.start != other.stop - other.start:
        return None
    return _Loop(differing[0], other.start - one.start)


def plain_ranges(key: Sequence[Key], shape: Sequence[int]) -> tuple[Range, ...] | None:
    """Return a selection as ranges of consecutive elements; None if it is of another form, or empty."""
    found = []
    for one, length in zip(key, shape, strict=True):
        if isinstance(one, slice):
            start, stop, step = one.indices(length)
            if step != 1 or stop <= start:
                return None
            found.append(Range(start, stop))
        elif isinstance(one, int | np.integer) and -length <= one < length:
            found.append(Range(int(one) % length, int(one) % length + 1))
        else:
            return None
    return tuple(found)
