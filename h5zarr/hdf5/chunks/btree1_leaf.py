"""A version 1 B-tree that is one leaf: the index of most small datasets, of which a file may have thousands.

The same as for any tree, with a tenth of numpy's calls. Spec: III.A.1, node type 1.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree1 import Shape
from h5zarr.hdf5.chunks.table import ChunkGrid, empty_table
from h5zarr.hdf5.model import ChunkTable

_PREFIX = b"TREE\x01\x00"
_ORIGIN_AT = 8  # in a key, behind the chunk's size and filter mask


@lru_cache(maxsize=64)
def _entry(rank: int) -> np.dtype[Any]:
    """Return the type of an entry, where addresses have 8 bytes: a key, whose last number is zero, and a child."""
    origin = ("origin", "<i8", (rank + 1,))
    return np.dtype([("nbytes", "<u4"), ("mask", "<u4"), origin, ("address", "<i8")])


@lru_cache(maxsize=64)
def _place(rank: int) -> struct.Struct:
    return struct.Struct(f"<{rank + 1}Q")


def decode_leaf(node: memoryview, grid: ChunkGrid, shape: Shape, units: tuple[int, ...], at: int) -> ChunkTable:
    """Return the chunks of a leaf that is the root of its tree; `units` are the chunk's shape in a key."""
    if node[:6] != _PREFIX:
        raise MalformedFile(f"B-tree node begins with {bytes(node[:6])!r}, expected {_PREFIX!r}", at=at)
    count = int.from_bytes(node[6:8], "little")
    if count > shape.capacity:
        raise MalformedFile(f"B-tree node has more than {shape.capacity} entries", at=at)
    if not count:
        return empty_table(grid.rank)
    rows = np.ndarray(count, _entry(grid.rank), node, shape.entries_at)
    _check_last_key(node, grid.rank, shape.entries_at + count * shape.entry_nbytes, shape.entry_nbytes, units, at)
    origin = rows["origin"]
    if np.count_nonzero(origin[:, -1]):  # in a third of the time of any()
        raise MalformedFile("B-tree has a chunk that begins inside an element", at=at)
    index, rest = np.divmod(origin[:, :-1], grid.chunk_column)
    if np.count_nonzero(rest):
        raise MalformedFile(f"B-tree has a chunk that is off the grid of {grid.chunk_shape}", at=at)
    return ChunkTable(
        index=np.asfortranarray(index),
        address=rows["address"].astype(np.int64),
        nbytes=rows["nbytes"].astype(np.int64),
        filter_mask=rows["mask"].astype(np.uint32),
    )


def _check_last_key(node: memoryview, rank: int, end: int, entry_nbytes: int, units: tuple[int, ...], at: int) -> None:
    """Raise unless the last chunk is before the key behind it: else the library does not find it."""
    place = _place(rank)
    last = place.unpack_from(node, end - entry_nbytes + _ORIGIN_AT)
    behind = place.unpack_from(node, end + _ORIGIN_AT)
    if [one // unit for one, unit in zip(last, units, strict=True)] >= [
        one // unit for one, unit in zip(behind, units, strict=True)
    ]:
        raise MalformedFile("B-tree has keys that do not lead to its chunks", at=at)
