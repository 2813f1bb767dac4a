"""Boxes of a virtual dataset with their stored chunks, and how to fit them into one chunk grid."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from h5zarr.tree import StoredChunks, StoredFilter

_MOST_CELLS = 1 << 24  # chunks that the pieces of one dataset may cover
MOST_CUT = 1_000_000  # chunks that plain values may be cut into
_DEFLATE = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A box of a virtual dataset, and the box of stored chunks that supplies its values.

    `axes` maps each axis of the virtual dataset to an axis of the source, or to None if the source has no such axis.
    """

    start: tuple[int, ...]
    lengths: tuple[int, ...]
    axes: tuple[int | None, ...]
    source_start: tuple[int, ...]
    source_lengths: tuple[int, ...]
    source_shape: tuple[int, ...]
    stored: StoredChunks
    has_same_fill: bool

    @property
    def source_chunk(self) -> tuple[int, ...]:
        return self.stored.chunk_shape[: len(self.source_shape)]

    @property
    def chunk(self) -> tuple[int, ...]:
        """The shape of the source's chunks, along the axes of the virtual dataset."""
        return tuple(1 if axis is None else self.source_chunk[axis] for axis in self.axes)

    @property
    def is_plain(self) -> bool:
        """True if the values are one contiguous byte range, or unwritten. Such values can be cut into chunks freely."""
        return self.source_chunk == self.source_shape and not self.stored.filters


def match_axes(
    lengths: tuple[int, ...], source_lengths: tuple[int, ...], source_chunk: tuple[int, ...]
) -> tuple[int | None, ...] | None:
    """Return for each axis of a box the axis of another box with the same length. Axes of length 1 may be added.

    Returns None if the boxes do not match, or if the source's chunks are longer than 1 along a dropped axis.
    """
    axes: list[int | None] = []
    axis = len(source_lengths) - 1
    for length in reversed(lengths):
        while axis >= 0 and length != source_lengths[axis] == 1 == source_chunk[axis]:
            axis -= 1
        if axis >= 0 and length == source_lengths[axis]:
            axes.append(axis)
            axis -= 1
        elif length == 1:
            axes.append(None)
        else:
            return None
    if any(source_lengths[left] != 1 or source_chunk[left] != 1 for left in range(axis + 1)):
        return None
    return tuple(reversed(axes))


def common_chunk(pieces: list[Piece]) -> tuple[int, ...] | None:
    """Return a chunk shape that suits all pieces, or None."""
    stated = {piece.chunk for piece in pieces if not piece.is_plain}
    if stated:
        return stated.pop() if len(stated) == 1 else None
    columns = list(zip(*(piece.lengths for piece in pieces), strict=True))
    # Contiguous values are cut along the first axis longer than 1, so that each chunk is one byte range.
    split = next((axis for axis, lengths in enumerate(columns) if max(lengths) > 1), max(0, len(columns) - 1))
    chunk_shape = []
    for axis, lengths in enumerate(columns):
        if axis == split:
            chunk_shape.append(gcd(*lengths, *(piece.start[axis] for piece in pieces)))
        elif len(set(lengths)) == 1:
            chunk_shape.append(lengths[0])
        else:
            return None
    return tuple(chunk_shape)


def _source_cell(piece: Piece, chunk_shape: tuple[int, ...]) -> list[int]:
    """Return the shape of a chunk along the axes of the source."""
    cell = [1] * len(piece.source_shape)
    for chunk, axis in zip(chunk_shape, piece.axes, strict=True):
        if axis is not None:
            cell[axis] = chunk
    return cell


def is_run(piece: Piece, chunk_shape: tuple[int, ...]) -> bool:
    """Return whether a chunk of this shape is a contiguous run of the source's elements."""
    cell = _source_cell(piece, chunk_shape)
    longer = [axis for axis, extent in enumerate(cell) if extent > 1]
    if any(chunk > 1 and axis is None for chunk, axis in zip(chunk_shape, piece.axes, strict=True)):
        return False
    return not longer or all(cell[axis] == piece.source_shape[axis] for axis in range(longer[0] + 1, len(cell)))


def cut_chunks(piece: Piece, chunk_shape: tuple[int, ...]) -> StoredChunks:
    """Cut contiguous values into chunks. Unwritten values have none."""
    stored, rank = piece.stored, len(chunk_shape)
    counts = [n // chunk for n, chunk in zip(piece.lengths, chunk_shape, strict=True)]
    if not len(stored.address):
        counts = [0] * rank
    cells = np.indices(counts).reshape(rank, -1).T
    element_nbytes = int(stored.nbytes[0]) // prod(piece.source_shape) if len(stored.nbytes) else 0
    strides = [element_nbytes * prod(piece.source_shape[axis + 1 :]) for axis in range(len(piece.source_shape))]
    start = sum(at * stride for at, stride in zip(piece.source_start, strides, strict=True))
    steps = [0 if axis is None else strides[axis] * chunk for chunk, axis in zip(chunk_shape, piece.axes, strict=True)]
    first = int(stored.address[0]) if len(stored.address) else 0
    corner = [at // chunk for at, chunk in zip(piece.start, chunk_shape, strict=True)]
    return StoredChunks(
        chunk_shape=chunk_shape,
        index=(cells + np.array(corner, np.int64)).reshape(-1, rank),
        address=first + start + cells @ np.array(steps, np.int64),
        nbytes=np.full(len(cells), element_nbytes * prod(chunk_shape), np.int64),
        source=stored.source if isinstance(stored.source, int) else int(stored.source[0]),
        element_nbytes=stored.element_nbytes,
    )


def pick_chunks(piece: Piece) -> StoredChunks:
    """Return the source's chunks inside the box, with their position in the virtual dataset."""
    stored, chunk = piece.stored, piece.source_chunk
    first = [at // extent for at, extent in zip(piece.source_start, chunk, strict=True)]
    lasts = zip(piece.source_start, piece.source_lengths, chunk, strict=True)
    end = [-(-(at + n) // extent) for at, n, extent in lasts]
    # Chunks are in row-major order, so bisection finds the range along the first axis.
    low, high = (bisect_left(stored.index[:, 0], bound) for bound in (first[0], end[0])) if first else (0, 1)
    numbers = stored.index[low:high, : len(chunk)]
    rows = low + np.flatnonzero(((numbers >= first) & (numbers < end)).all(axis=1))
    index = np.empty((len(rows), len(piece.axes)), np.int64)
    for number, axis in enumerate(piece.axes):
        if axis is None:
            index[:, number] = piece.start[number]
        else:
            index[:, number] = stored.index[rows, axis] - first[axis] + piece.start[number] // chunk[axis]
    return StoredChunks(
        chunk_shape=piece.chunk,
        index=index,
        address=stored.address[rows],
        nbytes=stored.nbytes[rows],
        filter_mask=None if stored.filter_mask is None else stored.filter_mask[rows],
        filters=stored.filters,
        source=stored.source if isinstance(stored.source, int) else stored.source[rows],
        element_nbytes=stored.element_nbytes,
    )


def overlap(pieces: list[Piece], chunk_shape: tuple[int, ...], shape: tuple[int, ...], cells: int) -> bool:
    """Return whether two pieces cover the same chunk. Also True if there are too many chunks to check."""
    if len(pieces) < 2:
        return False
    if cells > _MOST_CELLS:
        return True
    grid = tuple(max(1, -(-extent // chunk)) for extent, chunk in zip(shape, chunk_shape, strict=True))
    numbers = []
    for piece in pieces:
        first = [at // chunk for at, chunk in zip(piece.start, chunk_shape, strict=True)]
        counts = [-(-n // chunk) for n, chunk in zip(piece.lengths, chunk_shape, strict=True)]
        ranges = [np.arange(at, at + n) for at, n in zip(first, counts, strict=True)]
        numbers.append(np.ravel_multi_index(np.ix_(*ranges), grid).reshape(-1))
    return len(np.unique(np.concatenate(numbers))) < cells


def are_alike(tables: list[StoredChunks]) -> bool:
    """Return whether all chunks have the same filters. The level of deflate does not matter to readers."""
    return len({_pipeline(table.filters) for table in tables if len(table.address)}) <= 1


def _pipeline(filters: tuple[StoredFilter, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple((one.number, () if one.number == _DEFLATE else one.values) for one in filters)


def join_chunks(tables: list[StoredChunks], chunk_shape: tuple[int, ...], tail: tuple[int, ...]) -> StoredChunks:
    """Join the chunks of several tables in row-major order. `tail` are the axes of an array type."""
    tables = [table for table in tables if len(table.address)]
    rank = len(chunk_shape) + len(tail)
    if not tables:
        none = np.empty(0, np.int64)
        return StoredChunks(
            chunk_shape=chunk_shape + tail, index=np.empty((0, rank), np.int64), address=none, nbytes=none
        )
    index = np.concatenate([table.index for table in tables])
    order = np.lexsort(index.T[::-1])
    counts = [len(table.address) for table in tables]
    sources = np.concatenate([np.broadcast_to(table.source, n) for table, n in zip(tables, counts, strict=True)])
    source: int | npt.NDArray[np.int32] = sources[order].astype(np.int32)
    masks = [
        np.zeros(n, np.uint32) if one.filter_mask is None else one.filter_mask
        for one, n in zip(tables, counts, strict=True)
    ]
    return StoredChunks(
        chunk_shape=chunk_shape + tail,
        index=np.hstack([index[order], np.zeros((len(order), len(tail)), np.int64)]),
        address=np.concatenate([table.address for table in tables])[order],
        nbytes=np.concatenate([table.nbytes for table in tables])[order],
        filter_mask=np.concatenate(masks)[order],
        filters=tables[0].filters,
        source=int(sources[0]) if (sources == sources[0]).all() else source,
        element_nbytes=tables[0].element_nbytes,
    )
