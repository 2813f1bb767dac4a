"""Elements packed into fields of a few bits, without gaps, as the filters nbit and scaleoffset store them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Bytes

_SLAB_NBITS = 1 << 20
_MANY_RUNS = 64  # beyond this, one gather is faster than many slices

Places = NDArray[np.int64]


def number_places(nbytes: int, byte_order: str, precision: int, bit_offset: int) -> Places:
    """Return the positions of a number's bits, from the most to the least significant.

    Positions count from the first byte of an element, and within a byte from the highest bit, as in numpy.
    """
    significance = np.arange(bit_offset + precision - 1, bit_offset - 1, -1, dtype=np.int64)
    byte = significance // 8 if byte_order == "little" else nbytes - 1 - significance // 8
    return byte * 8 + 7 - significance % 8


def packed_nbytes(count: int, nbits: int) -> int:
    """Return the number of bytes that `count` elements of `nbits` bits take."""
    return -(-count * nbits // 8)


def unpack(content: bytes, count: int, places: Places, element_nbytes: int) -> Bytes:
    """Return `count` elements, one per row. `content` has their bits at `places`; other bits are zero."""
    nbits = len(places)
    if len(content) < packed_nbytes(count, nbits):
        raise MalformedFile(f"{len(content)} bytes do not hold {count} elements of {nbits} bits")
    stored = np.frombuffer(content, np.uint8)
    result = np.empty((count, element_nbytes), np.uint8)
    pieces = _pieces(places)
    for start, many in _slabs(count, max(nbits, element_nbytes * 8)):
        first = start * nbits // 8
        part = stored[first : first + packed_nbytes(many, nbits)]
        bits = np.unpackbits(part, count=many * nbits).reshape(many, nbits)
        spread = np.zeros((many, element_nbytes * 8), np.uint8)
        for packed, spaced in pieces:
            spread[:, spaced] = bits[:, packed]
        result[start : start + many] = np.packbits(spread).reshape(many, element_nbytes)
    return result


def pack(elements: Bytes, places: Places) -> bytes:
    """Return the bits at `places` of all elements. `elements` has one element per row."""
    nbits = len(places)
    parts = []
    pieces = _pieces(places)
    for start, many in _slabs(len(elements), max(nbits, elements.shape[1] * 8)):
        spread = np.unpackbits(elements[start : start + many], axis=1)
        bits = np.empty((many, nbits), np.uint8)
        for packed, spaced in pieces:
            bits[:, packed] = spread[:, spaced]
        parts.append(np.packbits(bits).tobytes())
    return b"".join(parts)


def _slabs(count: int, nbits: int) -> list[tuple[int, int]]:
    """Return starts and counts of elements to handle together: few enough for the cache, whole bytes when packed."""
    step = max(8, _SLAB_NBITS // max(1, nbits) // 8 * 8)
    return [(start, min(step, count - start)) for start in range(0, count, step)]


def _pieces(places: Places) -> list[tuple[slice | Places, slice | Places]]:
    """Return which packed bits go to which places: as slices, or as one index array if there are too many slices."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    if len(breaks) >= _MANY_RUNS:
        return [(np.arange(len(places)), places)]
    edges = [0, *breaks.tolist(), len(places)]
    return [(slice(a, b), slice(int(places[a]), int(places[a]) + b - a)) for a, b in pairwise(edges) if b > a]
