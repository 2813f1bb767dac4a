"""Build chunk tables: fill columns slab by slab, check them and sort the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes


@dataclass(frozen=True, kw_only=True)
class ChunkGrid:
    """The properties of a dataset that chunk index readers need. None in `max_shape` means an unlimited axis."""

    shape: tuple[int, ...]
    max_shape: tuple[int | None, ...]
    chunk_shape: tuple[int, ...]
    chunk_nbytes: int  # of a whole chunk before filters
    filter_count: int
    edge_chunks_unfiltered: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def grid_shape(self) -> tuple[int, ...]:
        """The number of chunks along each axis."""
        return tuple(-(-extent // chunk) for extent, chunk in zip(self.shape, self.chunk_shape, strict=True))

    @cached_property
    def max_grid_shape(self) -> tuple[int | None, ...]:
        """The number of chunks along each axis at the maximum size of the dataset."""
        return tuple(
            None if limit is None else -(-limit // chunk)
            for limit, chunk in zip(self.max_shape, self.chunk_shape, strict=True)
        )

    @cached_property
    def limits(self) -> npt.NDArray[np.uint64]:
        """The number of chunks along each axis, as an array.

        Values beyond int64, which no index can reach, are clipped.
        """
        return np.array([min(count, _MOST) for count in self.grid_shape], np.uint64)

    @cached_property
    def chunk_column(self) -> npt.NDArray[np.int64]:
        """The shape of a chunk, as an array."""
        return np.array(self.chunk_shape, np.int64)

    @cached_property
    def numbered_axes(self) -> tuple[int, ...]:
        """The axes in the order in which array-like indexes number chunks: the unlimited axis first. Spec: VII.B."""
        return tuple(sorted(range(self.rank), key=lambda axis: self.max_grid_shape[axis] is not None))


_MOST = np.iinfo(np.int64).max
_FEW = 16  # number of chunks up to which Python is faster than numpy
_ASTRAY = "the chunks in the index are not sorted, so its keys do not lead to all of them"


@lru_cache(maxsize=1024)
def chunk_grid(
    shape: tuple[int, ...],
    max_shape: tuple[int | None, ...],
    chunk_shape: tuple[int, ...],
    *,
    element_nbytes: int,
    filter_count: int,
    edge_chunks_unfiltered: bool,
) -> ChunkGrid:
    """Return the grid of a dataset. Cached with its derived properties, because many datasets of a file are alike."""
    return ChunkGrid(
        shape=shape,
        max_shape=max_shape,
        chunk_shape=chunk_shape,
        chunk_nbytes=element_nbytes * prod(chunk_shape),
        filter_count=filter_count,
        edge_chunks_unfiltered=edge_chunks_unfiltered,
    )


def empty_table(rank: int) -> ChunkTable:
    """Return a table without chunks."""
    return allocate_table(0, rank)


def allocate_table(count: int, rank: int) -> ChunkTable:
    """Return an uninitialised table with `count` rows."""
    return ChunkTable(
        index=np.empty((count, rank), np.int64, order="F"),  # columns are processed one at a time
        address=np.empty(count, np.int64),
        nbytes=np.empty(count, np.int64),
        filter_mask=np.empty(count, np.uint32),
    )


def finish_table(table: ChunkTable, grid: ChunkGrid, sizes: Sizes, *, is_searched: bool = False) -> ChunkTable:
    """Return the table in row-major order, without chunks outside the dataset's extent.

    Such chunks remain after a dataset was shrunk, and no reader shows them. Raises MalformedFile if a chunk lies
    outside the file or occurs twice. `is_searched` marks an index that readers search by key; it must also be sorted.
    """
    if len(table) <= _FEW and _is_finished(table, grid, sizes):
        return table
    whole, table = table, _inside_extent(table, grid)
    if is_searched and table is not whole and not _is_ascending(whole.index):
        raise MalformedFile(_ASTRAY)
    if grid.edge_chunks_unfiltered and grid.filter_count:
        _mask_edges(table, grid)
    if not grid.filter_count:
        _size_unfiltered(table, grid)
    _check_addresses(table, sizes)
    return _in_order(table, grid, is_searched)


def _is_finished(table: ChunkTable, grid: ChunkGrid, sizes: Sizes) -> bool:
    """Return whether a table of a few chunks is already valid, sorted and complete, as nearly all are.

    In a file with thousands of small datasets, the numpy calls for all checks would take a tenth of the time.
    """
    if grid.edge_chunks_unfiltered:
        return False
    base, end, grid_shape = sizes.base, sizes.end, grid.grid_shape
    expected = None if grid.filter_count else grid.chunk_nbytes
    before: list[int] = []
    rows = zip(table.index.tolist(), table.address.tolist(), table.nbytes.tolist(), strict=True)
    for index, address, nbytes in rows:
        if index <= before or not 0 <= nbytes <= end - address or address < base or (expected or nbytes) != nbytes:
            return False
        for number, count in zip(index, grid_shape, strict=True):
            if not 0 <= number < count:
                return False
        before = index
    return True


def _select(table: ChunkTable, rows: npt.NDArray[np.bool_]) -> ChunkTable:
    return ChunkTable(
        index=np.stack([column[rows] for column in table.index.T]).T,
        address=table.address[rows],
        nbytes=table.nbytes[rows],
        filter_mask=table.filter_mask[rows],
    )


def _reorder(table: ChunkTable, order: npt.NDArray[np.intp]) -> None:
    """Reorder the rows in place. A second table would double the memory."""
    for column in (*table.index.T, table.address, table.nbytes, table.filter_mask):
        column[:] = column.take(order)


def _inside_extent(table: ChunkTable, grid: ChunkGrid) -> ChunkTable:
    inside = table.index.view(np.uint64) < grid.limits  # as unsigned numbers, negative ones are too large
    return table if inside.all() else _select(table, np.logical_and.reduce(inside, axis=1))


def _size_unfiltered(table: ChunkTable, grid: ChunkGrid) -> None:
    """Set the size of chunks without filters to the full chunk size, as the HDF5 library does."""
    if (table.nbytes < grid.chunk_nbytes).any():
        raise MalformedFile(f"an unfiltered chunk takes fewer than {grid.chunk_nbytes} bytes in the file")
    table.nbytes[:] = grid.chunk_nbytes


def _check_addresses(table: ChunkTable, sizes: Sizes) -> None:
    outside = table.address > sizes.end - table.nbytes
    outside |= (table.address < sizes.base) | (table.nbytes < 0)
    if outside.any():
        row = int(outside.argmax())
        where = tuple(int(number) for number in table.index[row])
        raise MalformedFile(
            f"chunk {where} of {int(table.nbytes[row])} bytes reaches outside the file", at=int(table.address[row])
        )


def _in_order(table: ChunkTable, grid: ChunkGrid, is_searched: bool) -> ChunkTable:
    if len(table) < 2:
        return table
    position = _row_major(table.index, grid.grid_shape)
    if position is None:
        _reorder(table, np.lexsort(table.index.T[::-1]))
        twice = (table.index[1:] == table.index[:-1]).all(axis=1)
    else:
        if (position[1:] > position[:-1]).all():
            return table
        order = np.argsort(position, kind="stable")
        _reorder(table, order)
        position = position[order]
        twice = position[1:] == position[:-1]
        if is_searched and not twice.any():
            raise MalformedFile(_ASTRAY)
    if twice.any():
        where = tuple(int(number) for number in table.index[int(twice.argmax())])
        raise MalformedFile(f"chunk {where} occurs twice in its index")
    return table


def _is_ascending(index: npt.NDArray[np.int64]) -> bool:
    """Return whether the rows are strictly ascending, compared axis by axis."""
    numbers = index.view(np.uint64)
    behind = np.zeros(len(index) - 1, np.bool_)
    same = np.ones(len(index) - 1, np.bool_)
    for column in numbers.T:
        behind |= same & (column[1:] > column[:-1])
        same &= column[1:] == column[:-1]
    return bool(behind.all())


def _row_major(index: npt.NDArray[np.int64], grid_shape: tuple[int, ...]) -> npt.NDArray[np.int64] | None:
    """Return the row-major number of each chunk, or None if the grid is too large for int64."""
    count = 1
    for extent in grid_shape:
        count *= extent
    if count >= 1 << 63:
        return None
    position = index[:, 0].copy()
    for axis in range(1, len(grid_shape)):
        position *= grid_shape[axis]
        position += index[:, axis]
    return position


def _mask_edges(table: ChunkTable, grid: ChunkGrid) -> None:
    """Mark the chunks that extend beyond the dataset as having skipped all filters. Spec: IV.A.2.i, flag bit 0."""
    edge = np.zeros(len(table), np.bool_)
    for axis, (extent, chunk) in enumerate(zip(grid.shape, grid.chunk_shape, strict=True)):
        if extent % chunk:
            edge |= table.index[:, axis] == extent // chunk
    table.filter_mask[edge] = (1 << grid.filter_count) - 1


def grid_indexes(numbers: npt.NDArray[np.int64], grid: ChunkGrid, index: npt.NDArray[np.int64]) -> None:
    """Write the grid coordinates of the chunks with these `numbers` to the rows of `index`. Spec: VII.B.

    Chunks are numbered over the maximum grid of the dataset, with the last axis varying fastest. An unlimited axis
    counts as the first axis, whatever its position.
    """
    limits, axes = grid.max_grid_shape, grid.numbered_axes
    rest = numbers
    for axis in axes[:0:-1]:
        extent = limits[axis]
        if extent is None:
            raise MalformedFile("a dataset with several unlimited axes has an array-like chunk index")
        rest, index[:, axis] = np.divmod(rest, max(1, min(extent, _MOST)))
    index[:, axes[0]] = rest
