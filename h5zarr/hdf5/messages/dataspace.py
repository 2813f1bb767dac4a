"""The dataspace message. Spec: IV.A.2.b."""

from __future__ import annotations

from functools import lru_cache

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.model import Dataspace, SpaceKind

MAX_RANK = 32
_HAS_MAX_SHAPE = 0x01
_UNLIMITED = (1 << 64) - 1  # in files with shorter lengths, all ones is an ordinary number, as in the HDF5 library


@lru_cache(maxsize=4096)
def decode_dataspace(content: bytes, length_nbytes: int) -> Dataspace:
    """Return the dataspace of a message of version 1 or 2.

    Cached, because attributes have few different dataspaces.
    """
    cursor = Cursor(content, "dataspace message")
    version, rank, flags = cursor.u8(), cursor.u8(), cursor.u8()
    if version == 1:
        cursor.skip(5)
        kind = SpaceKind.SIMPLE if rank else SpaceKind.SCALAR
    elif version == 2:
        code = cursor.u8()
        if code > SpaceKind.NULL:
            raise MalformedFile(f"dataspace message has unknown type {code}")
        kind = SpaceKind(code)
    else:
        raise MalformedFile(f"dataspace message has unknown version {version}")
    if rank > MAX_RANK or (rank and kind is not SpaceKind.SIMPLE):
        raise MalformedFile(f"dataspace message of type {kind.name} has rank {rank}")
    shape = tuple(cursor.uint(length_nbytes) for _ in range(rank))
    if not flags & _HAS_MAX_SHAPE:
        return Dataspace(kind, shape, shape)
    limits = (cursor.uint(length_nbytes) for _ in range(rank))
    max_shape = tuple(None if limit == _UNLIMITED else limit for limit in limits)
    if any(limit is not None and limit < extent for extent, limit in zip(shape, max_shape, strict=True)):
        raise MalformedFile(f"dataspace message has shape {shape}, larger than its maximum {max_shape}")
    return Dataspace(kind, shape, max_shape)
