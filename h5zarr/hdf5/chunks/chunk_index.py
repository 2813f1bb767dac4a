"""Read the chunk index of a dataset, whatever its kind. Spec: IV.A.2.i and VII."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.btree1 import read_btree1
from h5zarr.hdf5.chunks.btree2 import read_btree2
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, chunk_grid, empty_table
from h5zarr.hdf5.chunks.extensible_array import read_extensible_array
from h5zarr.hdf5.chunks.fixed_array import read_fixed_array
from h5zarr.hdf5.chunks.single import implicit_chunks, single_chunk
from h5zarr.hdf5.messages.layout import ChunkIndexMessage
from h5zarr.hdf5.model import ChunkTable, Dataspace, IndexKind
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_READERS: dict[IndexKind, Callable[[int, ChunkGrid, Sizes], Step[ChunkTable]]] = {
    IndexKind.BTREE_V1: read_btree1,
    IndexKind.FIXED_ARRAY: read_fixed_array,
    IndexKind.EXTENSIBLE_ARRAY: read_extensible_array,
    IndexKind.BTREE_V2: read_btree2,
}


@dataclass(frozen=True, slots=True, eq=False)
class EarlyIndex:
    """The content of a chunk index that was read before the rest of its dataset was known.

    `layout` is the layout message as stored, and `message` is its decoded form. `table` holds the chunks in the order
    of the index, decoded for a dataset with `grid`.
    """

    layout: bytes
    message: ChunkIndexMessage
    grid: ChunkGrid
    table: ChunkTable

    def fits(self, layout: bytes, grid: ChunkGrid) -> bool:
        """Return whether reading the index again, for this layout and grid, would give the same chunks."""
        if layout != self.layout:
            return False
        if grid is self.grid or grid == self.grid:
            return True
        # A version 1 B-tree stores the size of each chunk, filtered or not.
        return self.message.kind is IndexKind.BTREE_V1 and grid.shape == self.grid.shape


def find_grid(message: ChunkIndexMessage, dataspace: Dataspace, filter_count: int, sizes: Sizes, at: int) -> ChunkGrid:
    """Return the chunk grid of a dataset. `at` is the address of its layout message."""
    if len(message.chunk_shape) != dataspace.rank:
        raise MalformedFile(f"a dataset of rank {dataspace.rank} has chunks of shape {message.chunk_shape}", at=at)
    max_shape = dataspace.max_shape
    if message.kind is IndexKind.EXTENSIBLE_ARRAY:
        # Such a dataset has an unlimited axis. If lengths take fewer than 8 bytes, the largest length means unlimited.
        largest = (1 << 8 * sizes.length_nbytes) - 1
        max_shape = tuple(None if limit == largest else limit for limit in max_shape)
    grid = chunk_grid(
        dataspace.shape,
        max_shape,
        message.chunk_shape,
        element_nbytes=message.element_nbytes,
        filter_count=filter_count,
        edge_chunks_unfiltered=message.edge_chunks_unfiltered,
    )
    if grid.chunk_nbytes >= 1 << 62:
        raise MalformedFile(f"a dataset has chunks of {grid.chunk_nbytes} bytes", at=at)
    return grid


def read_index(message: ChunkIndexMessage, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks in the order of the index. Some may lie outside the grid."""
    if message.address is None or 0 in grid.shape:
        return empty_table(grid.rank)
    if message.kind is IndexKind.SINGLE:
        return single_chunk(message.address, grid, message.single_nbytes, message.single_mask, sizes)
    if message.kind is IndexKind.IMPLICIT:
        return implicit_chunks(message.address, grid, sizes)
    return (yield from _READERS[message.kind](message.address, grid, sizes))
