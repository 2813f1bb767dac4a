"""Matrices of bits transposed, as bitshuffle does it."""

from __future__ import annotations

import numpy as np

from h5zarr.filters.arrays import Bytes, Numbers

_SLAB_NBYTES = 1 << 18  # temporaries of this size stay in the processor's cache

# Hacker's Delight, section 7-3: swap ever smaller blocks on both sides of the diagonal of 8 x 8 matrices of bits.
_STEPS = ((4, 0x0F), (2, 0x33), (1, 0x55))


def elements_from_bits(blocks: Bytes, width: int) -> Bytes:
    """Return elements of `width` bytes; a row of `blocks` is a block: the first bits of its elements, the second, …"""
    count = blocks.shape[1] // width // 8
    result = np.empty_like(blocks)
    for part in _slabs(blocks):
        rows = blocks[part].reshape(-1, 8, count).copy()
        _transpose(rows)
        result[part].reshape(-1, count, 8, width)[...] = rows.reshape(-1, width, 8, count).transpose(0, 3, 2, 1)
    return result


def bits_from_elements(blocks: Bytes, width: int) -> Bytes:
    """Return the bits of all elements; a row of `blocks` is one block of elements of `width` bytes."""
    count = blocks.shape[1] // width // 8
    result = np.empty_like(blocks)
    for part in _slabs(blocks):
        rows = result[part].reshape(-1, 8, count)
        rows.reshape(-1, width, 8, count)[...] = blocks[part].reshape(-1, count, 8, width).transpose(0, 3, 2, 1)
        _transpose(rows)
    return result


def _slabs(blocks: Bytes) -> list[slice]:
    """Return slices of rows that are worth doing together."""
    step = max(1, _SLAB_NBYTES // max(1, blocks.shape[1]))
    return [slice(start, start + step) for start in range(0, len(blocks), step)]


def _transpose(rows: Bytes) -> None:
    """Transpose, in place, all matrices that consist of a byte of each of eight rows, lowest bit first.

    Rows are along the second axis. All matrices of a word of eight bytes are done at once, where rows consist of such.
    """
    words: Numbers = rows.view(np.uint64) if rows.shape[2] % 8 == 0 else rows
    for distance, pattern in _STEPS:
        mask = words.dtype.type(int.from_bytes(bytes((pattern,)) * words.itemsize, "little"))
        shift = words.dtype.type(distance)
        pairs = words.reshape(len(words), 4 // distance, 2, distance, -1)
        upper, lower = pairs[:, :, 0], pairs[:, :, 1]
        swapped = ((upper >> shift) ^ lower) & mask
        lower ^= swapped
        upper ^= swapped << shift
