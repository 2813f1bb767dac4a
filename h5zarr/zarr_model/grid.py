"""Chunk grids: how an array is divided into chunks, and which chunks a selection touches. Pure.

A chunk has an *index*, its coordinates in the grid, and a *number*, its position in row-major order. A chunk that
extends past the end of the array is stored in full, but only part of it is inside the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported

Column: TypeAlias = npt.NDArray[np.int64]
Key: TypeAlias = int | slice | npt.NDArray[np.integer]
"""A selection along one axis. Axes are selected independently ("outer" indexing)."""
Part: TypeAlias = slice | Column

_MOST_DIMENSIONS = 64  # numpy's limit
_MOST = 2**63 - 1


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
    def shortest(self) -> int:
        """The length of the shortest stored chunk."""
        ...

    def find(self, positions: Column, /) -> Column:
        """Return the numbers of the chunks that contain these elements."""
        ...

    def bounds(self, numbers: Column, /) -> tuple[Column, Column]:
        """Return where each chunk starts, and where its part inside the array stops, in elements."""
        ...


class ChunkGrid(Protocol):
    """How an array is divided into chunks. Subclasses implement the members without a body."""

    __slots__ = ()
    shape: tuple[int, ...]

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        ...

    @property
    def axes(self) -> Sequence[ChunkAxis]: ...

    def stored_shape(self, index: Sequence[int], /) -> tuple[int, ...]:
        """Return the shape of a stored chunk, including any part past the end of the array."""
        ...

    def encode(self) -> dict[str, Any]:
        """Return `chunk_grid` of Zarr version 3."""
        ...

    @property
    def chunk_count(self) -> int:
        """The number of chunks, written or not."""
        return prod(self.grid_shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The difference between the numbers of neighbouring chunks, along each axis."""
        grid_shape = self.grid_shape
        return tuple(prod(grid_shape[axis + 1 :]) for axis in range(len(grid_shape)))

    def contains(self, index: Column) -> npt.NDArray[np.bool_]:
        """Return which chunks are in the grid; `index` has one row per chunk. If a dataset shrank, some are outside."""
        inside = (index >= 0) & (index < np.array(self.grid_shape, np.int64))
        return np.asarray(inside.all(axis=1))

    def number(self, index: Column) -> Column:
        """Return the numbers of chunks. `index` has one row per chunk, and all chunks must be in the grid.

        Raises Unsupported if the numbers do not fit into 64 bits.
        """
        if self.chunk_count > _MOST:
            shown = "×".join(map(str, self.grid_shape))
            raise Unsupported(f"the grid of {shown} chunks is too large: chunk numbers do not fit into 64 bits")
        if not self.grid_shape:
            return np.zeros(len(index), np.int64)
        numbers: Column = index @ np.array(self.strides, np.int64)
        return numbers

    def index(self, number: int) -> tuple[int, ...]:
        """Return the index of one chunk."""
        return unravel(number, self.grid_shape)

    def part(self, first: Sequence[int], end: Sequence[int] | None = None) -> tuple[slice, ...]:
        """Return the slices that the chunks from `first` up to `end` cover. Without `end`, one chunk."""
        bounds = []
        for axis, start, stop in zip(self.axes, first, end or [at + 1 for at in first], strict=True):
            starts, stops = axis.bounds(np.array([start, stop - 1], np.int64))
            bounds.append(slice(int(starts[0]), int(stops[1])))
        return tuple(bounds)

    def select(self, key: Sequence[Key]) -> list[AxisSelection]:
        """Return what `key` selects along each axis. Raises IndexError if that is outside the array."""
        return [select_axis(one, axis) for one, axis in zip(key, self.axes, strict=True)]

    def touched(self, selections: Sequence[AxisSelection]) -> Column:
        """Return the numbers of all chunks that the selections touch, in row-major order."""
        numbers = np.zeros(1, np.int64)
        for selection, stride in zip(selections, self.strides, strict=True):
            numbers = (numbers[:, None] + selection.numbers * stride).reshape(-1)
        return numbers


@dataclass(frozen=True, slots=True)
class RegularAxis:
    """An axis with chunks of the same length. The last chunk may extend past the end of the array."""

    length: int
    chunk: int

    @property
    def shortest(self) -> int:
        return self.chunk

    def find(self, positions: Column, /) -> Column:
        return positions // self.chunk

    def bounds(self, numbers: Column, /) -> tuple[Column, Column]:
        starts = numbers * self.chunk
        return starts, starts + np.minimum(self.length - starts, self.chunk)  # `starts + chunk` may overflow


@dataclass(frozen=True, slots=True)
class RegularGrid(ChunkGrid):
    """A grid of chunks with the same shape."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]

    @property
    def grid_shape(self) -> tuple[int, ...]:
        return tuple([-(-length // chunk) for length, chunk in zip(self.shape, self.chunk_shape, strict=True)])

    @property
    def axes(self) -> Sequence[RegularAxis]:
        return [RegularAxis(length, chunk) for length, chunk in zip(self.shape, self.chunk_shape, strict=True)]

    def stored_shape(self, index: Sequence[int], /) -> tuple[int, ...]:
        return self.chunk_shape

    def encode(self) -> dict[str, Any]:
        return {"name": "regular", "configuration": {"chunk_shape": self.chunk_shape}}


def whole_grid(shape: tuple[int, ...], covered: tuple[int, ...] | None = None) -> RegularGrid:
    """Return the grid of an array with one stored chunk, which has the shape of the array or of the `covered` part."""
    return RegularGrid(shape, tuple([max(1, extent) for extent in (shape if covered is None else covered)]))


def decode_grid(shape: Any, name: str, configuration: dict[str, Any]) -> RegularGrid:
    """Return the grid that `shape` and `chunk_grid` of Zarr version 3 describe."""
    if name != "regular":
        raise Unsupported(f'the chunk grid is "{name}", but h5zarr supports only "regular"')
    return decode_regular(shape, configuration.get("chunk_shape"))


def decode_regular(shape: Any, chunk_shape: Any) -> RegularGrid:
    """Return a regular grid. Along an axis of length 0, the length of chunks is at least 1."""
    extents, sizes = _decode_extents(shape, "shape"), _decode_extents(chunk_shape, "shape of chunks")
    if len(extents) != len(sizes):
        raise MalformedFile(f"the array has {len(extents)} dimensions, but its chunks have {len(sizes)}")
    # kerchunk writes chunks of length 0 for an axis of length 0.
    sizes = tuple(max(1, size) if extent == 0 else size for extent, size in zip(extents, sizes, strict=True))
    if 0 in sizes:
        raise MalformedFile("chunks have no elements")
    return RegularGrid(extents, sizes)


def decode_lengths(value: Any) -> tuple[int, ...] | None:
    """Return a JSON list of lengths as a tuple, or None if it is anything else."""
    if isinstance(value, list) and all(type(length) is int and 0 <= length <= _MOST for length in value):
        return tuple(value)
    return None


def _decode_extents(value: Any, what: str) -> tuple[int, ...]:
    lengths = decode_lengths(value)
    if lengths is None:
        raise MalformedFile(f"the {what} is not a list of lengths")
    if len(lengths) > _MOST_DIMENSIONS:
        raise Unsupported(f"the array has {len(lengths)} dimensions, but readers support at most {_MOST_DIMENSIONS}")
    return lengths


def unravel(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the coordinates of position `number` in row-major order, for a grid of any size."""
    index = []
    for extent in reversed(shape):
        number, at = divmod(number, extent)
        index.append(at)
    return tuple(reversed(index))


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
