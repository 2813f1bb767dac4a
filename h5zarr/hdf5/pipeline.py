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


def _fletcher32(content: bytes) -> int:
    """Return the checksum of the fletcher32 filter: two sums of big-endian words, folded to 16 bits each."""
    words = np.frombuffer(content + b"\0" * (len(content) % 2), ">u2").astype(np.uint64)
    weights = np.arange(len(words), 0, -1, dtype=np.uint64)
    plain = int(words.sum())
    weighted = int((words * weights % np.uint64(65535)).sum())
    return _folded(weighted, plain) << 16 | _folded(plain, plain)


def _folded(total: int, of: int) -> int:
    """Return a sum modulo 65535, for which 65535 stands where it is zero, unless nothing was summed."""
    return (total - 1) % 65535 + 1 if of else 0


def _undo(content: bytes, applied: Filter, most: int) -> bytes:
    if applied.number == DEFLATE:
        inflating = zlib.decompressobj()
        try:
            inflated = inflating.decompress(content, most + 4)
        except zlib.error as error:
            raise MalformedFile(f"filtered metadata does not decompress: {error}") from error
        if not inflating.eof:
            raise MalformedFile("filtered metadata does not decompress to the size that it should have")
        return inflated
    if applied.number == SHUFFLE:
        width = applied.values[0] if applied.values else 1
        count = len(content) // max(1, width)
        head = np.frombuffer(content, np.uint8, count * width).reshape(width, count).T.tobytes()
        return head + content[count * width :]
    if applied.number == FLETCHER32:
        if _fletcher32(content[:-4]) != int.from_bytes(content[-4:], "little"):
            raise MalformedFile("filtered metadata fails its checksum")
        return content[:-4]
    raise Unsupported(f"metadata is filtered with filter {applied.number} ({applied.name or 'unnamed'})")
