"""Chunks indexed by a version 1 B-tree. Spec: III.A.1, node type 1."""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree1 import NodeType, Shape, read_leaf_entries
from h5zarr.hdf5.chunks.table import ChunkGrid, allocate_table
from h5zarr.hdf5.columns import address_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step


def read_btree1(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks, one round for each level of the tree.

    A key holds the chunk's size and filter mask, then the origin of the chunk in elements, with one more number, the
    place inside an element, which is zero.
    """
    key_nbytes = 8 + 8 * (grid.rank + 1)
    shape = Shape(node_type=NodeType.CHUNKS, capacity=2 * sizes.chunk_rank, key_nbytes=key_nbytes, sizes=sizes)
    entries = yield from read_leaf_entries(address, shape)
    table = allocate_table(entries.count, grid.rank)
    fields = np.dtype([("nbytes", "<u4"), ("mask", "<u4"), ("origin", "<i8", (grid.rank,)), ("element", "<i8")])
    filled = 0
    for rows in entries.slabs():
        end = filled + len(rows)
        keys = rows[:, :key_nbytes].copy().view(fields)[:, 0]
        table.nbytes[filled:end] = keys["nbytes"]
        table.filter_mask[filled:end] = keys["mask"]
        table.address[filled:end] = address_column(rows, key_nbytes, sizes)
        for axis, chunk in enumerate(grid.chunk_shape):
            origin = keys["origin"][:, axis]
            np.floor_divide(origin, chunk, out=table.index[filled:end, axis])
            if (table.index[filled:end, axis] * chunk != origin).any():
                raise MalformedFile(f"B-tree has a chunk that is off the grid of {grid.chunk_shape}", at=address)
        filled = end
    return table
