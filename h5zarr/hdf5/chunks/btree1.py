"""Chunks indexed by a version 1 B-tree. Spec: III.A.1, node type 1."""

from __future__ import annotations

from math import prod

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree1 import NodeType, Shape, read_leaf_entries
from h5zarr.hdf5.chunks.btree1_keys import KeyCheck
from h5zarr.hdf5.chunks.btree1_small import SmallTree
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, allocate_table
from h5zarr.hdf5.columns import address_column, stored_column, uint_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step


def read_btree1(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks. Each level of the tree takes one round.

    A key holds the chunk's size and filter mask, then its origin in elements. One more number, the byte position inside
    an element, is always zero.
    """
    key_nbytes = 8 + 8 * (grid.rank + 1)
    shape = Shape(node_type=NodeType.CHUNKS, capacity=2 * sizes.chunk_rank, key_nbytes=key_nbytes, sizes=sizes)
    element_nbytes = max(1, grid.chunk_nbytes // prod(grid.chunk_shape))
    units = (*grid.chunk_shape, element_nbytes)
    (root,) = yield [sizes.span(address, shape.node_nbytes, "B-tree node")]
    small = SmallTree(grid, shape, units)
    if small.is_root(root):
        return (yield from small.read(root, address))
    entries = yield from read_leaf_entries(address, shape, KeyCheck(units), root)
    table = allocate_table(entries.count, grid.rank)
    filled = 0
    for rows in entries.slabs():
        end = filled + len(rows)
        table.nbytes[filled:end] = stored_column(rows, 0, 4)
        table.filter_mask[filled:end] = stored_column(rows, 4, 4)
        table.address[filled:end] = address_column(rows, key_nbytes, sizes)
        if stored_column(rows, 8 + 8 * grid.rank, 8).any():
            raise MalformedFile("B-tree has a chunk that starts inside an element", at=address)
        for axis, chunk in enumerate(grid.chunk_shape):
            origin = uint_column(rows, 8 + 8 * axis, 8)
            number = origin // chunk
            if (number * chunk != origin).any():
                raise MalformedFile(f"B-tree has a chunk outside the grid of {grid.chunk_shape} chunks", at=address)
            table.index[filled:end, axis] = number
        filled = end
    return table
