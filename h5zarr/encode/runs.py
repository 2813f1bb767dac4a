"""Cut contiguous runs of values into chunks.

A classic netCDF variable or a contiguous HDF5 dataset has no chunks of its own. h5zarr cuts it along one axis into
pieces of about the requested size. Chunks have length 1 along earlier axes and span later axes completely, so every
chunk is one range of bytes. Zarr requires full chunks, even at the end of an axis. The last chunk therefore extends
into the bytes that follow in the file, which readers never show. If the file ends there, h5zarr reads, pads and inlines
the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.encode.inlining import Budget
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.tree import StoredRun
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import Manifest

CHUNK_NBYTES = 8 << 20
_MOST_CHUNKS = 1_000_000  # per variable, however small the requested chunks are
_TINY_RECORD_NBYTES = 64
_SMALLEST_SHARE = 8  # chunks may be this many times smaller to avoid inlining one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutRun:
    """The chunks of a run that begin before the end of the file, in row-major order. Each has `nbytes` bytes."""

    run: StoredRun
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]
    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: int

    @property
    def first_cut(self) -> int:
        """The number of the first chunk that extends past the end of the file. All later chunks do, too."""
        return int(np.searchsorted(self.address, self.run.source_nbytes - self.nbytes, "right"))


def has_tiny_records(run: StoredRun, dtype: np.dtype[Any]) -> bool:
    """Return whether a reference to a record takes more space than the record."""
    return run.stride is not None and _rows(run, dtype)[1] <= _TINY_RECORD_NBYTES


def read_whole(run: StoredRun, dtype: np.dtype[Any], fill: bytes) -> Step[bytes]:
    """Return all values of a run, in order. Values after the end of the file are `fill`."""
    rows, row_nbytes = _rows(run, dtype)
    stride = row_nbytes if run.stride is None else run.stride
    begun = min(rows, max(0, -(-(run.source_nbytes - run.address) // stride)))
    places = range(run.address, run.address + begun * stride, stride)
    contents = yield [Span(place, min(row_nbytes, run.source_nbytes - place)) for place in places]
    return _padded(b"".join(contents), rows * row_nbytes, fill)


def read_cut(cut: CutRun, fill: bytes) -> Step[Manifest]:
    """Return the manifest. Chunks that extend past the end of the file are padded with `fill` and inlined."""
    first, end = cut.first_cut, cut.run.source_nbytes
    inline = {}
    if first < len(cut.address):
        contents = yield [Span(address, end - address) for address in cut.address[first:].tolist()]
        for index, content in zip(cut.index[first:].tolist(), contents, strict=True):
            inline[tuple(index)] = _padded(bytes(content), cut.nbytes, fill)
    return Manifest(
        index=cut.index[:first],
        address=cut.address[:first],
        nbytes=np.full(first, cut.nbytes, np.int64),
        source=cut.run.source,
        inline=inline,
    )


def cut_run(run: StoredRun, dtype: np.dtype[Any], chunk_nbytes: int, budget: Budget, *, may_reach_over: bool) -> CutRun:
    """Return a run in pieces of about `chunk_nbytes`. `choose_length` returns the length along the axis that is cut.

    Without `may_reach_over`, no chunk extends past the end of the values, because readers would show the bytes there.
    """
    rows, row_nbytes = _rows(run, dtype)
    total = rows * row_nbytes
    nbytes = max(1, chunk_nbytes, min(total, run.source_nbytes) // _MOST_CHUNKS)
    axis, part_nbytes = _find_axis(run, dtype, nbytes)
    if axis is None:
        return _allowed(_cut(run, dtype, (1,) * len(run.shape)), budget)

    def at(length: int) -> CutRun:
        return _cut(run, dtype, (1,) * axis + (length,) + run.shape[axis + 1 :])

    extent = run.shape[axis]
    wanted = max(1, nbytes // part_nbytes)
    length = choose_length(extent, wanted)
    if extent % length == 0:
        return _allowed(at(length), budget)
    end = run.address + (rows - 1) * (row_nbytes if run.stride is None else run.stride) + row_nbytes
    over_nbytes = -extent % length * part_nbytes
    if may_reach_over and end + over_nbytes <= run.source_nbytes:
        return at(length)
    smaller = _divisor_near(extent, wanted, wanted / _SMALLEST_SHARE, wanted)
    may_inline = may_reach_over and (budget.inlining.array_nbytes > 0 or end > run.source_nbytes)
    if smaller is None and may_inline:
        found = at(length)
        if budget.allows((len(found.address) - found.first_cut) * found.nbytes):
            return found
    return _allowed(at(smaller or extent), budget)


def _allowed(cut: CutRun, budget: Budget) -> CutRun:
    """Return `cut`. If the file is truncated, take the chunks that must be inlined from the budget."""
    count = len(cut.address) - cut.first_cut
    if count:
        budget.require(count * cut.nbytes, "the file ends inside a chunk, which must be inlined")
    return cut


def choose_length(extent: int, wanted: int) -> int:
    """Return the length of chunks along an axis: the divisor of its extent nearest to `wanted`, within a factor of two.

    If there is none, the extent is divided into pieces of nearly equal length, and the last one is the shortest.
    """
    if wanted >= extent:
        return extent
    divisor = _divisor_near(extent, wanted, wanted / 2, 2 * wanted)
    return divisor or -(-extent // -(-extent // wanted))


def _divisor_near(extent: int, wanted: int, least: float, most: float) -> int | None:
    """Return the divisor between `least` and `most` whose ratio to `wanted` is nearest to 1, or None."""
    found = [number for number in _divisors(extent) if least <= number <= most]
    return min(found, key=lambda number: (max(number / wanted, wanted / number), number), default=None)


@lru_cache(maxsize=256)
def _divisors(extent: int) -> frozenset[int]:
    """Return the divisors of an extent, or an empty set if finding them takes too long."""
    if extent > 1 << 32:
        return frozenset()
    numbers = np.arange(1, isqrt(extent) + 1)
    small: list[int] = numbers[extent % numbers == 0].tolist()
    return frozenset(small) | {extent // number for number in small}


def _rows(run: StoredRun, dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the number of contiguous pieces of a run and their size. There is one piece, or one per record."""
    if run.stride is None:
        return 1, dtype.itemsize * prod(run.shape)
    return run.shape[0], dtype.itemsize * prod(run.shape[1:])


def _find_axis(run: StoredRun, dtype: np.dtype[Any], nbytes: int) -> tuple[int | None, int]:
    """Return the first axis whose elements take at most `nbytes`, else the last axis, and the size of its elements.

    The axis is None if there is none to cut.
    """
    first = 0 if run.stride is None else 1
    for axis in range(first, len(run.shape)):
        part_nbytes = dtype.itemsize * prod(run.shape[axis + 1 :])
        if part_nbytes <= nbytes or axis == len(run.shape) - 1:
            return axis, part_nbytes
    return None, 0


def _cut(run: StoredRun, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> CutRun:
    """Return the chunks of this shape that begin before the end of the file."""
    if run.stride is not None:
        chunk_shape = (1, *chunk_shape[1:])
    counts = RegularGrid(run.shape, chunk_shape).grid_shape
    steps = [dtype.itemsize * prod(run.shape[axis + 1 :]) * chunk for axis, chunk in enumerate(chunk_shape)]
    if run.stride is not None:
        steps[0] = run.stride
    begun = _count_begun(counts, steps, run.source_nbytes - run.address)
    number = np.arange(begun, dtype=np.int64)
    index = np.empty((begun, len(counts)), np.int64)
    address = np.full(begun, run.address if begun else 0, np.int64)
    for axis in reversed(range(len(counts))):
        # If an axis has more chunks than the file contains, its numbers never wrap around.
        count = min(counts[axis], begun + 1)
        number, index[:, axis] = np.divmod(number, count) if axis else (number, number)
        if index[:, axis].any():
            address += index[:, axis] * steps[axis]
    return CutRun(
        run=run,
        dtype=dtype,
        chunk_shape=chunk_shape,
        index=index,
        address=address,
        nbytes=dtype.itemsize * prod(chunk_shape),
    )


def _count_begun(counts: Sequence[int], steps: Sequence[int], room: int) -> int:
    """Return how many chunks begin in the first `room` bytes. Addresses increase with chunk numbers."""
    if room <= 0 or 0 in counts:
        return 0
    last = 0
    for count, step in zip(counts, steps, strict=True):
        place = min(count - 1, (room - 1) // step)
        last, room = last * count + place, room - place * step
    return last + 1


def _padded(content: bytes, nbytes: int, fill: bytes) -> bytes:
    """Return the whole elements of `content`, padded with `fill` to `nbytes` bytes."""
    whole = len(content) // len(fill)
    return content[: whole * len(fill)] + fill * (nbytes // len(fill) - whole)
