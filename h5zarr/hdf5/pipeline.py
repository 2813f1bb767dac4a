"""The library's own filters undone, for metadata that is filtered: fractal heaps may be. Spec: IV.A.2.l.

Chunks are not decoded here: references leave that to Zarr's codecs.
"""

from __future__ import annotations

import zlib

import numpy as np

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.model import Filter

DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3


def undo_filters(content: bytes, filters: tuple[Filter, ...], mask: int, most: int) -> bytes:
    """Return `content` as it was before the filters, none of which may give more than `most` bytes and a checksum."""
    for number in reversed(range(len(filters))):
        if mask >> number & 1:
            continue
        content = _undo(content, filters[number], most)
    return content


def _undo(content: bytes, applied: Filter, most: int) -> bytes:
    if applied.number == DEFLATE:
        try:
            return zlib.decompressobj().decompress(content, most + 4)
        except zlib.error as error:
            raise MalformedFile(f"filtered metadata does not decompress: {error}") from error
    if applied.number == SHUFFLE:
        width = applied.values[0] if applied.values else 1
        count = len(content) // max(1, width)
        head = np.frombuffer(content, np.uint8, count * width).reshape(width, count).T.tobytes()
        return head + content[count * width :]
    if applied.number == FLETCHER32:
        return content[:-4]
    raise Unsupported(f"metadata is filtered with filter {applied.number} ({applied.name or 'unnamed'})")
