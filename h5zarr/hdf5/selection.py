"""Dataspace selections in region references and virtual datasets. Spec: VIII.A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor

_NONE, _POINTS, _HYPERSLAB, _ALL = range(4)
_UNLIMITED_COUNTS = {2: 0xFFFF, 4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
_REGULAR = 1
_MAX_RANK = 32


@dataclass(frozen=True, slots=True)
class NoneSelection:
    """Nothing is selected."""


@dataclass(frozen=True, slots=True)
class AllSelection:
    """The whole extent is selected."""


@dataclass(frozen=True, slots=True, eq=False)
class PointSelection:
    """Single elements. `points` has shape (count, rank) and is in selection order."""

    points: npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularSelection:
    """Regularly spaced blocks: `count` blocks of `block` elements each, `stride` apart, beginning at `start`.

    None in `count` or `block` means unlimited.
    """

    start: tuple[int, ...]
    stride: tuple[int, ...]
    count: tuple[int | None, ...]
    block: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BlockSelection:
    """Arbitrary blocks. `first` and `last` are inclusive corners of shape (count, rank)."""

    first: npt.NDArray[np.uint64]
    last: npt.NDArray[np.uint64]


Selection: TypeAlias = NoneSelection | AllSelection | PointSelection | RegularSelection | BlockSelection


def decode_selection(cursor: Cursor) -> Selection:
    """Return the selection at the cursor, and advance the cursor past it."""
    code, version = cursor.u32(), cursor.u32()
    if code == _NONE:
        cursor.skip(8)
        return NoneSelection()
    if code == _ALL:
        cursor.skip(8)
        return AllSelection()
    if code == _POINTS:
        return _points(cursor, version)
    if code == _HYPERSLAB:
        return _hyperslab(cursor, version)
    raise MalformedFile(f"selection has unknown type {code}")


def _rank(cursor: Cursor) -> int:
    if not 0 < (rank := cursor.u32()) <= _MAX_RANK:
        raise MalformedFile(f"selection has rank {rank}, expected 1 to {_MAX_RANK}")
    return rank


def _width(cursor: Cursor) -> int:
    if (width := cursor.u8()) not in _UNLIMITED_COUNTS:
        raise MalformedFile(f"selection has numbers of {width} bytes, expected 2, 4 or 8")
    return width


def _numbers(cursor: Cursor, count: int, width: int) -> npt.NDArray[np.uint64]:
    return np.frombuffer(cursor.take(count * width), f"<u{width}").astype(np.uint64)


def _points(cursor: Cursor, version: int) -> PointSelection:
    if version == 1:
        cursor.skip(8)  # reserved, length
        width, rank = 4, _rank(cursor)
    elif version == 2:
        width, rank = _width(cursor), _rank(cursor)
    else:
        raise MalformedFile(f"point selection has unknown version {version}")
    count = cursor.uint(width)
    return PointSelection(_numbers(cursor, count * rank, width).reshape(count, rank))


def _hyperslab(cursor: Cursor, version: int) -> RegularSelection | BlockSelection:
    if version == 1:
        cursor.skip(8)  # reserved, length
        return _blocks(cursor, _rank(cursor), 4)
    if version == 2:
        flags, width = cursor.u8(), 8
        cursor.skip(4)  # length
    elif version == 3:
        flags, width = cursor.u8(), _width(cursor)
    else:
        raise MalformedFile(f"hyperslab selection has unknown version {version}")
    rank = _rank(cursor)
    if not flags & _REGULAR:
        return _blocks(cursor, rank, width)
    numbers = _numbers(cursor, 4 * rank, width).reshape(rank, 4)
    start, stride, count, block = (tuple(int(number) for number in column) for column in numbers.T)
    unlimited = _UNLIMITED_COUNTS[width]
    return RegularSelection(
        start=start,
        stride=stride,
        count=tuple(None if number == unlimited else number for number in count),
        block=tuple(None if number == unlimited else number for number in block),
    )


def _blocks(cursor: Cursor, rank: int, width: int) -> BlockSelection:
    count = cursor.uint(width)
    corners = _numbers(cursor, 2 * count * rank, width).reshape(count, 2, rank)
    return BlockSelection(corners[:, 0], corners[:, 1])
