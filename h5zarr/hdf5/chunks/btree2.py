"""Chunks indexed by a version 2 B-tree. Spec: VII.E and III.A.2, record types 10 and 11."""

from __future__ import annotations

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree2 import Rows, read_btree2_header, walk_records
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, allocate_table
from h5zarr.hdf5.columns import address_column, stored_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_UNFILTERED, _FILTERED = 10, 11
_MASK_NBYTES = 4


def read_btree2(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks. The header takes one round, and so does each level of the tree."""
    header = yield from read_btree2_header(address, sizes, _UNFILTERED, _FILTERED)
    is_filtered = header.type == _FILTERED
    index_at = header.record_nbytes - 8 * grid.rank
    size_width = index_at - sizes.offset_nbytes - (_MASK_NBYTES if is_filtered else 0)
    if size_width not in (range(1, 9) if is_filtered else (0,)):
        raise MalformedFile(f"chunk B-tree has records of {header.record_nbytes} bytes", at=address)
    table = allocate_table(header.total_count, grid.rank)
    filled = 0

    def take(rows: Rows) -> None:
        nonlocal filled
        start, filled = filled, filled + len(rows)
        table.address[start:filled] = address_column(rows, 0, sizes)
        for axis in range(grid.rank):
            table.index[start:filled, axis] = stored_column(rows, index_at + 8 * axis, 8)
        if is_filtered:
            table.nbytes[start:filled] = stored_column(rows, sizes.offset_nbytes, size_width)
            table.filter_mask[start:filled] = stored_column(rows, index_at - _MASK_NBYTES, _MASK_NBYTES)
        else:
            table.nbytes[start:filled] = grid.chunk_nbytes
            table.filter_mask[start:filled] = 0

    yield from walk_records(header, sizes, take)
    if filled != header.total_count:
        raise MalformedFile(f"chunk B-tree has {filled} records, but its header says {header.total_count}", at=address)
    return table
