"""Entries of fixed and extensible arrays: an address, and for filtered chunks a size and a mask. Spec: VII.C, VII.D."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, allocate_table, empty_table, grid_indexes
from h5zarr.hdf5.columns import UNDEFINED, address_column, stored_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes

_UNFILTERED, _FILTERED = 0, 1
_MASK_NBYTES = 4
_CHECKSUM_NBYTES = 4
_SLAB_COUNT = 1 << 15  # entries decoded at a time


class EntryColumns:
    """Decodes entries into a chunk table. Entries without an address are skipped.

    Entries numbered `most` or higher are skipped too, because the HDF5 library ignores them.
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
        """Allocate rows for the `count` entries that will be added."""
        self._table = allocate_table(count, self._grid.rank)

    def add(self, rows: npt.NDArray[np.uint8], numbers: npt.NDArray[np.int64]) -> None:
        """Add the entries in `rows`, which belong to the chunks with these `numbers`."""
        assert self._table is not None, "expect() comes first"
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


class EntryRun(NamedTuple):
    """Consecutive entries, and the chunk number of the first."""

    content: memoryview
    first_number: int


def add_runs(columns: EntryColumns, runs: list[EntryRun]) -> None:
    """Add the entries of all runs. Short runs are joined, so many of them cost no more than a long one."""
    counts = [len(run.content) // columns.entry_nbytes for run in runs]
    columns.expect(sum(counts))
    first, waiting = 0, 0
    for number, count in enumerate(counts, start=1):
        waiting += count
        if waiting >= _SLAB_COUNT or number == len(runs):
            _add_slab(columns, runs[first:number], counts[first:number])
            first, waiting = number, 0


def _add_slab(columns: EntryColumns, runs: list[EntryRun], counts: list[int]) -> None:
    content = b"".join([run.content for run in runs]) if len(runs) > 1 else runs[0].content
    numbers = [np.arange(run.first_number, run.first_number + count) for run, count in zip(runs, counts, strict=True)]
    rows = np.frombuffer(content, np.uint8).reshape(-1, columns.entry_nbytes)
    columns.add(rows, np.concatenate(numbers) if len(numbers) > 1 else numbers[0])


def page_runs(
    columns: EntryColumns,
    pages: memoryview,
    *,
    at: int,
    written: npt.NDArray[np.bool_],
    page_count: int,
    entry_count: int,
    first_number: int = 0,
) -> list[EntryRun]:
    """Return the pages that were ever written, with their checksums verified. Other pages have no content yet.

    A page holds `page_count` entries and a checksum. The last page may be shorter: there are `entry_count` entries in
    total.
    """
    runs = []
    page_nbytes = page_count * columns.entry_nbytes + _CHECKSUM_NBYTES
    for page in np.flatnonzero(written).tolist():
        count = min(page_count, entry_count - page * page_count)
        start = page * page_nbytes
        end = start + count * columns.entry_nbytes
        check_checksum(pages[start : end + _CHECKSUM_NBYTES], "chunk index page", at + start)
        runs.append(EntryRun(pages[start:end], first_number + page * page_count))
    return runs
