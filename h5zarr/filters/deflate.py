"""Filter 1, deflate: a zlib stream (RFC 1950). Client data: the level."""

from __future__ import annotations

import zlib

from h5zarr.errors import MalformedFile
from h5zarr.filters.bounds import most

DEFAULT_LEVEL = 6


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return what was compressed. Bytes behind the end of the stream are ignored, as libhdf5 does."""
    inflating = zlib.decompressobj()
    try:
        inflated = inflating.decompress(content, most(nbytes))
    except zlib.error as error:
        raise MalformedFile(f"deflated content does not decompress: {error}") from error
    if not inflating.eof:
        raise MalformedFile("deflated content does not decompress to the size that it should have")
    return inflated


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the zlib stream."""
    return zlib.compress(content, values[0] if values else DEFAULT_LEVEL)
