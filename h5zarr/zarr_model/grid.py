"""Chunk grids: how an array is divided into chunks, and which chunks a selection touches. Pure.

A chunk has an *index*, its coordinates in the grid, and a *number*, its position in row-major order. A chunk that
extends past the end of the array is stored in full, but only part of it is inside the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.zarr_model.chunk_selection import AxisSelection, ChunkAxis, Column, Key, select_axis

_MOST_DIMENSIONS = 64  # numpy's limit
_MOST = 2**63 - 1


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
    def largest_shape(self) -> tuple[int, ...]:
        """The length of the longest stored chunk along each axis: a bound for all chunks."""
        return tuple(axis.longest for axis in self.axes)

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

    @property
    def longest(self) -> int:
        return self.chunk

    @property
    def count(self) -> int:
        return -(-self.length // self.chunk)

    def find(self, positions: Column, /) -> Column:
        return positions // self.chunk

    def bounds(self, numbers: Column, /) -> tuple[Column, Column]:
        starts = numbers * self.chunk
        return starts, starts + np.minimum(self.length - starts, self.chunk)  # `starts + chunk` may overflow

    def stored_lengths(self, numbers: Column, /) -> Column:
        return np.full(len(numbers), self.chunk, np.int64)


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


@dataclass(frozen=True, slots=True, eq=False)
class UnevenAxis:
    """An axis with chunks of different lengths, in runs of equal ones: `runs` has rows of chunk length and count.

    Runs keep the memory proportional to the metadata, which are untrusted: `[1, 1000000000]` is one row.
    """

    length: int
    runs: Column
    _starts: Column = field(init=False, repr=False)
    _numbers: Column = field(init=False, repr=False)

    def __post_init__(self) -> None:
        chunks, counts = self.runs[:, 0], self.runs[:, 1]
        object.__setattr__(self, "_starts", np.cumsum(chunks * counts) - chunks * counts)
        object.__setattr__(self, "_numbers", np.cumsum(counts) - counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UnevenAxis):
            return NotImplemented
        return self.length == other.length and np.array_equal(self.runs, other.runs)

    @property
    def shortest(self) -> int:
        return int(self.runs[:, 0].min())

    @property
    def longest(self) -> int:
        return int(self.runs[:, 0].max())

    @property
    def count(self) -> int:
        return 0 if not self.length else int(self.find(np.array([self.length - 1]))[0]) + 1

    def find(self, positions: Column, /) -> Column:
        run = np.searchsorted(self._starts, positions, "right") - 1
        numbers: Column = self._numbers[run] + (positions - self._starts[run]) // self.runs[run, 0]
        return numbers

    def bounds(self, numbers: Column, /) -> tuple[Column, Column]:
        run = np.searchsorted(self._numbers, numbers, "right") - 1
        starts = self._starts[run] + (numbers - self._numbers[run]) * self.runs[run, 0]
        return starts, starts + np.minimum(self.length - starts, self.runs[run, 0])

    def stored_lengths(self, numbers: Column, /) -> Column:
        lengths: Column = self.runs[np.searchsorted(self._numbers, numbers, "right") - 1, 0]
        return lengths


@dataclass(frozen=True, slots=True)
class RectilinearGrid(ChunkGrid):
    """A grid whose chunks differ in length along some axes. Spec: zarr-extensions, chunk-grids/rectilinear."""

    shape: tuple[int, ...]
    divisions: tuple[ChunkAxis, ...]

    @property
    def axes(self) -> Sequence[ChunkAxis]:
        return self.divisions

    @property
    def grid_shape(self) -> tuple[int, ...]:
        return tuple([axis.count for axis in self.divisions])

    def stored_shape(self, index: Sequence[int], /) -> tuple[int, ...]:
        at = zip(self.axes, index, strict=True)
        return tuple([int(axis.stored_lengths(np.array([number], np.int64))[0]) for axis, number in at])

    def encode(self) -> dict[str, Any]:
        # Icechunk does not accept the shorthand of a single integer for an axis of equal chunks.
        lengths = [_encode_axis(axis) for axis in self.axes]
        return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": lengths}}


def _encode_axis(axis: ChunkAxis) -> list[int | list[int]]:
    if isinstance(axis, UnevenAxis):
        return [chunk if count == 1 else [chunk, count] for chunk, count in axis.runs.tolist()]
    return [[axis.shortest, max(1, axis.count)]]


def make_axis(lengths: Sequence[int] | Column, length: int) -> ChunkAxis:
    """Return an axis of `length` elements with chunks of these stored lengths. The last may extend past the end."""
    column = np.asarray(lengths, np.int64)
    return _axis_of_runs(length, np.column_stack((column, np.ones_like(column))))


def _axis_of_runs(length: int, runs: Column) -> ChunkAxis:
    """Return an axis with runs of chunks; neighbouring runs of equal chunks become one."""
    first = np.flatnonzero(np.diff(runs[:, 0], prepend=-1))
    runs = np.column_stack((runs[first, 0], np.add.reduceat(runs[:, 1], first)))
    return RegularAxis(length, int(runs[0, 0])) if len(runs) == 1 else UnevenAxis(length, runs)


def make_grid(axes: Sequence[ChunkAxis]) -> RegularGrid | RectilinearGrid:
    """Return the grid with these axes: a regular one if possible, which every reader knows."""
    shape = tuple(axis.length for axis in axes)
    if all(isinstance(axis, RegularAxis) for axis in axes):
        return RegularGrid(shape, tuple(axis.longest for axis in axes))
    return RectilinearGrid(shape, tuple(axes))


def whole_grid(shape: tuple[int, ...], covered: tuple[int, ...] | None = None) -> RegularGrid:
    """Return the grid of an array with one stored chunk, which has the shape of the array or of the `covered` part."""
    return RegularGrid(shape, tuple([max(1, extent) for extent in (shape if covered is None else covered)]))


def decode_grid(shape: Any, name: str, configuration: dict[str, Any]) -> RegularGrid | RectilinearGrid:
    """Return the grid that `shape` and `chunk_grid` of Zarr version 3 describe."""
    if name == "rectilinear":
        return decode_rectilinear(shape, configuration)
    if name != "regular":
        raise Unsupported(f'the chunk grid is "{name}", but h5zarr supports only "regular" and "rectilinear"')
    return decode_regular(shape, configuration.get("chunk_shape"))


def decode_rectilinear(shape: Any, configuration: dict[str, Any]) -> RegularGrid | RectilinearGrid:
    """Return a rectilinear grid, or a regular one if all chunks are equal.

    Chunks past the end of the array are allowed, and are not part of the grid.
    """
    if configuration.get("kind") != "inline":
        raise Unsupported('a rectilinear chunk grid is read only if its kind is "inline"')
    extents, chunk_shapes = _decode_extents(shape, "shape"), configuration.get("chunk_shapes")
    if not isinstance(chunk_shapes, list) or len(chunk_shapes) != len(extents):
        raise MalformedFile(f"chunk_shapes of the grid is not a list with an entry for each of {len(extents)} axes")
    return make_grid(list(map(_decode_axis, extents, chunk_shapes)))


def _decode_axis(length: int, value: Any) -> ChunkAxis:
    """Return an axis: an integer is the length of all chunks, a list has lengths and pairs of length and count."""
    pairs = [_decode_run(one) for one in value] if isinstance(value, list) else []
    if type(value) is int and 0 < value <= _MOST:
        return RegularAxis(length, value)
    if not pairs or None in pairs:
        raise MalformedFile("the length of a chunk is not a positive integer, or a pair of length and count")
    total = sum(chunk * count for chunk, count in pairs)  # type: ignore[misc]
    if total > _MOST:
        raise Unsupported("the chunks of an axis have more than 2**63 elements")
    if total < length:
        raise MalformedFile(f"the chunks of an axis have {total} elements, but the axis has {length}")
    return _axis_of_runs(length, np.array(pairs, np.int64))


def _decode_run(value: Any) -> tuple[int, int] | None:
    """Return the length and the count of a run of chunks, or None if it is neither an integer nor a pair."""
    pair = value if isinstance(value, list) else [value, 1]
    lengths = decode_lengths(pair)
    return (lengths[0], lengths[1]) if lengths is not None and len(lengths) == 2 and all(lengths) else None


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
