"""The data layout message, versions 1 to 5. Spec: IV.A.2.i. Version 5 is new in HDF5 2.0."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.model import CompactLayout, ContiguousLayout, IndexKind
from h5zarr.hdf5.sizes import Sizes

_COMPACT, _CONTIGUOUS, _CHUNKED, _VIRTUAL = range(4)
_MAX_CHUNK_RANK = 33  # one more than a dataspace: the last number is the element size
_EDGES_UNFILTERED, _SINGLE_FILTERED = 1, 2
_INDEX_KINDS = {
    1: IndexKind.SINGLE,
    2: IndexKind.IMPLICIT,
    3: IndexKind.FIXED_ARRAY,
    4: IndexKind.EXTENSIBLE_ARRAY,
    5: IndexKind.BTREE_V2,
}
_PARAMETER_NBYTES = {IndexKind.FIXED_ARRAY: 1, IndexKind.EXTENSIBLE_ARRAY: 5, IndexKind.BTREE_V2: 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkIndexMessage:
    """The location of a chunk index. `address` is None if no chunk was ever stored.

    `single_nbytes` and `single_mask` describe the chunk of a filtered single chunk index.
    """

    chunk_shape: tuple[int, ...]
    element_nbytes: int
    kind: IndexKind
    address: int | None
    edge_chunks_unfiltered: bool = False
    single_nbytes: int | None = None
    single_mask: int = 0


@dataclass(frozen=True, slots=True)
class VirtualMessage:
    """The global heap object that holds the mappings of a virtual dataset."""

    heap: int | None
    index: int


LayoutMessage: TypeAlias = CompactLayout | ContiguousLayout | ChunkIndexMessage | VirtualMessage


def decode_layout(content: bytes, sizes: Sizes) -> LayoutMessage:
    """Return the layout. The size of a contiguous layout is -1 if the message does not state it."""
    cursor = Cursor(content, "layout message", sizes)
    version = cursor.u8()
    if version in (1, 2):
        return _old(cursor)
    if version not in (3, 4, 5):
        raise MalformedFile(f"layout message has unknown version {version}")
    code = cursor.u8()
    if code == _COMPACT:
        return CompactLayout(cursor.take(cursor.u16()))
    if code == _CONTIGUOUS:
        return ContiguousLayout(cursor.address(), cursor.length())
    if code == _CHUNKED:
        return _chunked_v3(cursor) if version == 3 else _chunked_v4(cursor)
    if code == _VIRTUAL and version >= 4:
        return VirtualMessage(cursor.address(), cursor.u32())
    raise Unsupported(f"layout class {code} in a layout message of version {version}")


def _old(cursor: Cursor) -> LayoutMessage:
    """Decode version 1 or 2, written by HDF5 before 1.6.3."""
    rank, code = cursor.u8(), cursor.u8()
    cursor.skip(5)
    if code > _CHUNKED:
        raise MalformedFile(f"layout message has unknown class {code}")
    address = None if code == _COMPACT else cursor.address()
    shape = _shape(cursor, rank, 4)
    if code == _COMPACT:
        return CompactLayout(cursor.take(cursor.u32()))
    if code == _CONTIGUOUS:
        return ContiguousLayout(address, -1)  # the extents were cut to 32 bits; the dataspace has the correct ones
    return _index(shape, IndexKind.BTREE_V1, address)


def _chunked_v3(cursor: Cursor) -> ChunkIndexMessage:
    rank, address = cursor.u8(), cursor.address()
    return _index(_shape(cursor, rank, 4), IndexKind.BTREE_V1, address)


def _chunked_v4(cursor: Cursor) -> ChunkIndexMessage:
    flags, rank, width = cursor.u8(), cursor.u8(), cursor.u8()
    if flags & ~(_EDGES_UNFILTERED | _SINGLE_FILTERED):
        raise Unsupported(f"chunked layout has unknown flags {flags:#x}")
    if not 1 <= width <= 8:
        raise MalformedFile(f"chunked layout has extents of {width} bytes, expected 1 to 8")
    shape = _shape(cursor, rank, width)
    if (kind := _INDEX_KINDS.get(code := cursor.u8())) is None:
        raise Unsupported(f"chunk index type {code} does not exist in HDF5 2.0")
    single_nbytes, single_mask = None, 0
    if kind is IndexKind.SINGLE and flags & _SINGLE_FILTERED:
        single_nbytes, single_mask = cursor.length(), cursor.u32()
    cursor.skip(_PARAMETER_NBYTES.get(kind, 0))  # creation parameters, which the index repeats
    return _index(shape, kind, cursor.address(), bool(flags & _EDGES_UNFILTERED), single_nbytes, single_mask)


def _shape(cursor: Cursor, rank: int, width: int) -> tuple[int, ...]:
    if rank > _MAX_CHUNK_RANK:
        raise MalformedFile(f"layout message has rank {rank}, but at most {_MAX_CHUNK_RANK} is allowed")
    if width == 4:  # all but the newest files
        return struct.unpack(f"<{rank}I", cursor.take(4 * rank))
    return tuple([cursor.uint(width) for _ in range(rank)])


def _index(
    shape: tuple[int, ...],
    kind: IndexKind,
    address: int | None,
    edge_chunks_unfiltered: bool = False,
    single_nbytes: int | None = None,
    single_mask: int = 0,
) -> ChunkIndexMessage:
    if len(shape) < 2 or 0 in shape:
        raise MalformedFile(f"layout message has chunks of shape {shape}")
    return ChunkIndexMessage(
        chunk_shape=shape[:-1],
        element_nbytes=shape[-1],
        kind=kind,
        address=address,
        edge_chunks_unfiltered=edge_chunks_unfiltered,
        single_nbytes=single_nbytes,
        single_mask=single_mask,
    )
