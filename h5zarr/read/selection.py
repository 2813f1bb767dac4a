"""Selections: which chunks they touch, what is taken out of each, and where it goes. Pure.

A key has one entry for each axis: an integer, a slice, or an array of integers, each axis by itself ("outer" indexing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.io.ranges import Column

Key: TypeAlias = int | slice | npt.NDArray[np.integer]
Part: TypeAlias = slice | Column


@dataclass(frozen=True, slots=True)
class AxisSelection:
    """What is selected along one axis: `count` elements, from the chunks `numbers`.

    Of chunk `numbers[i]`, `inside[i]` is taken, and goes to `outside[i]`. `is_dropped` says that the axis was asked
    for by number, and is not there in the result.
    """

    count: int
    numbers: Column
    inside: list[Part]
    outside: list[Part]
    is_dropped: bool = False


def select_axis(key: Key, length: int, chunk: int) -> AxisSelection:
    """Return the selection by `key` along an axis of `length` elements, `chunk` of which are in a chunk."""
    if isinstance(key, slice):
        return _select_range(range(length)[key], chunk)
    if isinstance(key, np.ndarray) and key.ndim:
        return _select_array(_normalise(key, length), chunk)
    number = int(key)
    if not -length <= number < length:
        raise IndexError(f"index {number} is out of bounds for an axis of {length} elements")
    one = _select_range(range(number % length, number % length + 1), chunk)
    return AxisSelection(1, one.numbers, one.inside, one.outside, is_dropped=True)


def _normalise(key: npt.NDArray[np.integer], length: int) -> Column:
    if key.dtype == bool:
        key = np.flatnonzero(key)
    column = key.astype(np.int64)
    if len(column) and not (-length <= int(column.min()) and int(column.max()) < length):
        raise IndexError(f"an index is out of bounds for an axis of {length} elements")
    return np.where(column < 0, column + length, column)


def _select_range(wanted: range, chunk: int) -> AxisSelection:
    if wanted.step < 0:
        return _select_array(np.array(wanted, np.int64), chunk)
    if not wanted:
        return AxisSelection(0, np.empty(0, np.int64), [], [])
    step = wanted.step
    first, last = wanted.start // chunk, wanted[-1] // chunk
    numbers = np.arange(first, last + 1)
    if step > chunk:
        numbers = np.unique(np.arange(wanted.start, wanted.stop, step) // chunk)
    begin = numbers * chunk
    # The position, among those wanted, of the first that lies in each chunk, and of the first behind it.
    outside_from = np.maximum(0, -((wanted.start - begin) // step))
    outside_to = np.minimum(len(wanted), -((wanted.start - begin - chunk) // step))
    inside_from = wanted.start + outside_from * step - begin
    inside_to = wanted.start + (outside_to - 1) * step - begin + 1
    rows = (inside_from.tolist(), inside_to.tolist(), outside_from.tolist(), outside_to.tolist())
    inside: list[Part] = [slice(start, stop, step) for start, stop in zip(rows[0], rows[1], strict=True)]
    outside: list[Part] = [slice(start, stop) for start, stop in zip(rows[2], rows[3], strict=True)]
    return AxisSelection(len(wanted), numbers, inside, outside)


def _select_array(wanted: Column, chunk: int) -> AxisSelection:
    if not len(wanted):
        return AxisSelection(0, wanted, [], [])
    order = np.argsort(wanted, kind="stable")
    numbers, starts = np.unique(wanted[order] // chunk, return_index=True)
    outside: list[Part] = list(np.split(order, starts[1:]))
    begins = (numbers * chunk).tolist()
    inside: list[Part] = [wanted[place] - begin for place, begin in zip(outside, begins, strict=True)]
    return AxisSelection(len(wanted), numbers, inside, outside)
