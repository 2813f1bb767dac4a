"""Chunk indexes without a structure of their own: a single chunk, and consecutive chunks. Spec: VII.A and VII.B."""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, allocate_table, grid_indexes
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes


def single_chunk(address: int, grid: ChunkGrid, nbytes: int | None, filter_mask: int, sizes: Sizes) -> ChunkTable:
    """Return the only chunk. `nbytes` is None if it is not filtered."""
    span = sizes.span(address, grid.chunk_nbytes if nbytes is None else nbytes, "chunk")
    table = allocate_table(1, grid.rank)
    table.index[:] = 0
    table.address[:] = span.address
    table.nbytes[:] = span.nbytes
    table.filter_mask[:] = filter_mask
    return table


def implicit_chunks(address: int, grid: ChunkGrid, sizes: Sizes) -> ChunkTable:
    """Return the chunks of a dataset whose chunks are all allocated, in row-major order of the maximum grid."""
    count = 1
    for extent in grid.max_grid_shape:
        if extent is None:
            raise MalformedFile("a dataset with an unlimited axis has an implicit chunk index", at=address)
        count *= extent
    if count * grid.chunk_nbytes > sizes.end - address:
        raise MalformedFile(f"implicit chunk index of {count} chunks reaches outside the file", at=address)
    table = allocate_table(count, grid.rank)
    numbers = np.arange(count, dtype=np.int64)
    grid_indexes(numbers, grid, table.index)
    table.address[:] = address + numbers * grid.chunk_nbytes
    table.nbytes[:] = grid.chunk_nbytes
    table.filter_mask[:] = 0
    return table
