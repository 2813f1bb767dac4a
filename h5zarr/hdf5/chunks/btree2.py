"""Chunks indexed by a version 2 B-tree. Spec: VII.E and III.A.2, record types 10 and 11."""

from __future__ import annotations

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.chunks.table import ChunkGrid, allocate_table
from h5zarr.hdf5.columns import address_column, stored_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_UNFILTERED, _FILTERED = 10, 11
_MASK_NBYTES = 4


def read_btree2(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks, one round for the header and one for each level of the tree."""
    kind, slabs = yield from read_records(address, sizes, _UNFILTERED, _FILTERED)
    table = allocate_table(sum(len(rows) for rows in slabs), grid.rank)
    filled = 0
    slabs.reverse()  # the first is then taken first: each level of the tree is in order, and quickly sorted
    while slabs:
        rows = slabs.pop()  # what has been decoded need not be kept
        end = filled + len(rows)
        index_at = rows.shape[1] - 8 * grid.rank
        size_width = index_at - sizes.offset_nbytes - (_MASK_NBYTES if kind == _FILTERED else 0)
        if size_width not in (range(1, 9) if kind == _FILTERED else (0,)):
            raise MalformedFile(f"chunk B-tree has records of {rows.shape[1]} bytes", at=address)
        table.address[filled:end] = address_column(rows, 0, sizes)
        for axis in range(grid.rank):
            table.index[filled:end, axis] = stored_column(rows, index_at + 8 * axis, 8)
        if kind == _FILTERED:
            table.nbytes[filled:end] = stored_column(rows, sizes.offset_nbytes, size_width)
            table.filter_mask[filled:end] = stored_column(rows, index_at - _MASK_NBYTES, _MASK_NBYTES)
        else:
            table.nbytes[filled:end] = grid.chunk_nbytes
            table.filter_mask[filled:end] = 0
        filled = end
    return table
