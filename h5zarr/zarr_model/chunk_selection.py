"""Which chunks a selection touches along one axis, and which of their elements it takes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = npt.NDArray[np.int64]
Key: TypeAlias = int | slice | npt.NDArray[np.integer]
"""A selection along one axis. Axes are selected independently ("outer" indexing)."""
Part: TypeAlias = slice | Column


@dataclass(frozen=True, slots=True)
class AxisSelection:
    """A selection along one axis: `count` elements from the chunks `numbers`.

    The elements `inside[i]` of chunk `numbers[i]` go to `outside[i]` of the result. `is_dropped` is true if an
    integer selected the axis, so that the result does not have it.
    """

    count: int
    numbers: Column
    inside: list[Part]
    outside: list[Part]
    is_dropped: bool = False


class ChunkAxis(Protocol):
    """How one axis is divided into chunks."""

    @property
    def length(self) -> int:
        """The number of elements."""
        ...

    @property
    def count(self) -> int:
        """The number of chunks that have elements inside the array."""
        ...

    @property
    def shortest(self) -> int:
        """The length of the shortest stored chunk."""
        ...

    @property
    def longest(self) -> int:
        """The length of the longest stored chunk."""
        ...

    def find(self, positions: Column, /) -> Column:
        """Return the numbers of the chunks that contain these elements."""
        ...

    def bounds(self, numbers: Column, /) -> tuple[Column, Column]:
        """Return where each chunk starts, and where its part inside the array stops, in elements."""
        ...

    def stored_lengths(self, numbers: Column, /) -> Column:
        """Return the length of each chunk as it is stored, including any part past the end of the array."""
        ...


def select_axis(key: Key, axis: ChunkAxis) -> AxisSelection:
    """Return what `key` selects along one axis."""
    length = axis.length
    if isinstance(key, slice):
        return _select_range(range(length)[key], axis)
    if isinstance(key, np.ndarray) and key.ndim:
        return _select_array(_normalise(key, length), axis)
    number = int(key)
    if not -length <= number < length:
        raise IndexError(f"index {number} is out of bounds for an axis of {length} elements")
    one = _select_range(range(number % length, number % length + 1), axis)
    return AxisSelection(1, one.numbers, one.inside, one.outside, is_dropped=True)


def _normalise(key: npt.NDArray[np.integer], length: int) -> Column:
    if key.dtype == bool:
        key = np.flatnonzero(key)
    column = key.astype(np.int64)
    if len(column) and not (-length <= int(column.min()) and int(column.max()) < length):
        raise IndexError(f"an index is out of bounds for an axis of {length} elements")
    return np.where(column < 0, column + length, column)


def _select_range(wanted: range, axis: ChunkAxis) -> AxisSelection:
    if wanted.step < 0:
        return _select_array(np.array(wanted, np.int64), axis)
    if not wanted:
        return AxisSelection(0, np.empty(0, np.int64), [], [])
    step = wanted.step
    if step > axis.shortest:
        numbers = np.unique(axis.find(np.arange(wanted.start, wanted.stop, step)))
    else:
        first, last = axis.find(np.array([wanted.start, wanted[-1]])).tolist()
        numbers = np.arange(first, last + 1)
    starts, stops = axis.bounds(numbers)
    # For each chunk: the positions in `wanted` of its first element, and of the first element after it.
    outside_from = np.maximum(0, -((wanted.start - starts) // step))
    outside_to = np.minimum(len(wanted), -((wanted.start - stops) // step))
    inside_from = wanted.start + outside_from * step - starts
    inside_to = wanted.start + (outside_to - 1) * step - starts + 1
    rows = (inside_from.tolist(), inside_to.tolist(), outside_from.tolist(), outside_to.tolist())
    inside: list[Part] = [slice(start, stop, step) for start, stop in zip(rows[0], rows[1], strict=True)]
    outside: list[Part] = [slice(start, stop) for start, stop in zip(rows[2], rows[3], strict=True)]
    return AxisSelection(len(wanted), numbers, inside, outside)


def _select_array(wanted: Column, axis: ChunkAxis) -> AxisSelection:
    if not len(wanted):
        return AxisSelection(0, wanted, [], [])
    order = np.argsort(wanted, kind="stable")
    numbers, firsts = np.unique(axis.find(wanted[order]), return_index=True)
    outside: list[Part] = list(np.split(order, firsts[1:]))
    starts = axis.bounds(numbers)[0].tolist()
    inside: list[Part] = [wanted[place] - start for place, start in zip(outside, starts, strict=True)]
    return AxisSelection(len(wanted), numbers, inside, outside)
