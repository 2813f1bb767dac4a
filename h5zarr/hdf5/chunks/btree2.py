"""Chunks indexed by a version 2 B-tree. Spec: VII.E and III.A.2, record types 10 and 11."""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.chunks.table import ChunkGrid, allocate_table
from h5zarr.hdf5.columns import address_column, uint_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_UNFILTERED, _FILTERED = 10, 11
_MASK_NBYTES = 4


def read_btree2(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks, one round for the header and one for each level of the tree."""
    kind, records = yield from read_records(address, sizes, _UNFILTERED, _FILTERED)
    index_at = records.shape[1] - 8 * grid.rank
    size_width = index_at - sizes.offset_nbytes - (_MASK_NBYTES if kind == _FILTERED else 0)
    if size_width not in (range(1, 9) if kind == _FILTERED else (0,)):
        raise MalformedFile(f"chunk B-tree has records of {records.shape[1]} bytes", at=address)
    table = allocate_table(len(records), grid.rank)
    table.address[:] = address_column(records, 0, sizes)
    if kind == _FILTERED:
        table.nbytes[:] = uint_column(records, sizes.offset_nbytes, size_width)
        table.filter_mask[:] = uint_column(records, sizes.offset_nbytes + size_width, _MASK_NBYTES)
    else:
        table.nbytes[:] = grid.chunk_nbytes
        table.filter_mask[:] = 0
    for axis in range(grid.rank):
        np.copyto(table.index[:, axis], uint_column(records, index_at + 8 * axis, 8))
    return table
