"""Entries of the two array-like chunk indexes: an address, and for filtered chunks a size and a mask. Spec: VII.C."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.grid_numbers import grid_indexes
from h5zarr.hdf5.chunks.table import ChunkGrid, allocate_table, empty_table
from h5zarr.hdf5.columns import UNDEFINED, address_column, stored_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes

_UNFILTERED, _FILTERED = 0, 1
_MASK_NBYTES = 4


class EntryColumns:
    """Fills a table with entries, a run of chunk numbers at a time; entries without an address are left out.

    So are those from number `most` on, where there is such a number: the library does not look at them.
    """

    def __init__(
        self, client: int, entry_nbytes: int, grid: ChunkGrid, sizes: Sizes, *, at: int, most: int | None = None
    ) -> None:
        size_width = entry_nbytes - sizes.offset_nbytes - _MASK_NBYTES
        is_possible = 1 <= size_width <= 8 if client == _FILTERED else entry_nbytes == sizes.offset_nbytes
        if client not in (_UNFILTERED, _FILTERED) or not is_possible:
            raise MalformedFile(f"chunk index of client {client} has entries of {entry_nbytes} bytes", at=at)
        self.entry_nbytes = entry_nbytes
        self._size_width = size_width if client == _FILTERED else 0
        self._grid = grid
        self._sizes = sizes
        self._most = most
        self._table: ChunkTable | None = None
        self._filled = 0

    def expect(self, count: int) -> None:
        """Make room for `count` entries, which is how many will be added."""
        self._table = allocate_table(count, self._grid.rank)

    def add(self, rows: npt.NDArray[np.uint8], numbers: npt.NDArray[np.int64]) -> None:
        """Take the entries in `rows`, which belong to the chunks with the given `numbers`."""
        if self._table is None:
            raise ValueError("entries were added before they were expected")
        offset_nbytes, table = self._sizes.offset_nbytes, self._table
        address = address_column(rows, 0, self._sizes)
        if UNDEFINED in address:
            stored = address != UNDEFINED
            rows, numbers, address = rows[stored], numbers[stored], address[stored]
        if self._most is not None and len(numbers) and numbers.max() >= self._most:
            known = numbers < self._most
            rows, numbers, address = rows[known], numbers[known], address[known]
        start, end = self._filled, self._filled + len(rows)
        table.address[start:end] = address
        grid_indexes(numbers, self._grid, table.index[start:end])
        if self._size_width:
            table.nbytes[start:end] = stored_column(rows, offset_nbytes, self._size_width)
            table.filter_mask[start:end] = stored_column(rows, offset_nbytes + self._size_width, _MASK_NBYTES)
        else:
            table.nbytes[start:end] = self._grid.chunk_nbytes
            table.filter_mask[start:end] = 0
        self._filled = end

    def table(self) -> ChunkTable:
        """Return the chunks that were added."""
        table, filled = self._table, self._filled
        if table is None:
            return empty_table(self._grid.rank)
        if len(table) == filled:
            return table
        return ChunkTable(
            index=table.index[:filled],
            address=table.address[:filled],
            nbytes=table.nbytes[:filled],
            filter_mask=table.filter_mask[:filled],
        )
