"""Filter 32008, bitshuffle: the first bits of all elements, then the second bits, …, optionally compressed.

Client data: major and minor version, element size, elements per block (0 for the default), compressor, level. The
compressed form has the framing of `lz4`, but each block is bit-shuffled. Up to seven elements at the end, which do not
fill a byte of bits, are stored unchanged. Source: bshuf_h5filter.c and bitshuffle_core.c of bitshuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters import zstd
from h5zarr.filters.lz4 import HEADER, compress_block, decompress_block, take_block
from h5zarr.filters.toolkit import Bytes, Numbers, Values, check, check_choice, check_room, described, settings_of

COMPRESSORS = {0: "none", 2: "lz4", 3: "zstd"}
_TARGET_NBYTES, _LEAST_DEFAULT = 8192, 128
_VERSION = (0, 4)  # of bitshuffle: the first that supports zstd
_SLAB_NBYTES = 1 << 18  # temporaries of this size stay in the processor's cache

# Hacker's Delight, section 7-3: swap ever smaller blocks across the diagonal of 8 x 8 matrices of bits.
_STEPS = ((4, 0x0F), (2, 0x33), (1, 0x55))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Elements per block (a multiple of 8, 0 for the default), and the compressor."""

    element_nbytes: int
    block_count: int = 0
    compressor: str = "none"
    level: int = zstd.DEFAULT_LEVEL

    def __post_init__(self) -> None:
        check(self.element_nbytes, "element_nbytes", 1, 2**31 - 1)
        check(self.block_count, "block_count", 0, 2**31 - 1)
        check(self.level, "level", 0, zstd.GREATEST_LEVEL)
        check_choice(self.compressor, "compressor", tuple(COMPRESSORS.values()))
        if self.block_count % 8:
            raise ValueError(f"block_count must be a multiple of 8, not {self.block_count}")

    @classmethod
    def from_values(cls, values: Values) -> Self:
        _, _, element_nbytes, block_count, compressor, level = described(values, "bitshuffle", 3, (0, 0, 0))
        if compressor not in COMPRESSORS:
            raise ValueError(f"bitshuffle has no compressor {compressor}")
        return cls(
            element_nbytes=element_nbytes,
            block_count=block_count,
            compressor=COMPRESSORS[compressor],
            level=min(level or zstd.DEFAULT_LEVEL, zstd.GREATEST_LEVEL),
        )

    def to_values(self) -> Values:
        code = next(code for code, name in COMPRESSORS.items() if name == self.compressor)
        return (*_VERSION, self.element_nbytes, self.block_count, code, self.level)

    def block_nbytes(self) -> int:
        """Return the size of a block."""
        default = max(_TARGET_NBYTES // self.element_nbytes // 8 * 8, _LEAST_DEFAULT)
        return (self.block_count or default) * self.element_nbytes


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the elements in their original order."""
    settings = settings_of(Settings, values)
    if settings.compressor == "none":
        return _each_block(content, settings, settings.block_nbytes(), elements_from_bits)
    shuffled, block_nbytes = _decompressed(content, settings, nbytes)
    return _each_block(shuffled, settings, block_nbytes, elements_from_bits)


def encode(content: bytes, values: Values) -> bytes:
    """Return the blocks of bits, compressed if the settings say so."""
    settings = settings_of(Settings, values)
    block_nbytes = settings.block_nbytes()
    shuffled = _each_block(content, settings, block_nbytes, bits_from_elements)
    if settings.compressor == "none":
        return shuffled
    parts = [HEADER.pack(len(content), block_nbytes)]
    blocks, end = _blocks(len(content), settings.element_nbytes, block_nbytes)
    for start, length in blocks:
        plain = shuffled[start : start + length]
        stored = compress_block(plain) if settings.compressor == "lz4" else zstd.encode(plain, (settings.level,))
        parts += [len(stored).to_bytes(4, "big"), stored]
    return b"".join((*parts, shuffled[end:]))


def _blocks(nbytes: int, element_nbytes: int, block_nbytes: int) -> tuple[list[tuple[int, int]], int]:
    """Return the start and size of each block (the last may be shorter), and the start of the unshuffled elements."""
    count = nbytes // element_nbytes
    end = (count - count % 8) * element_nbytes
    return [(start, min(block_nbytes, end - start)) for start in range(0, end, block_nbytes)], end


def _decompressed(content: bytes, settings: Settings, nbytes: int) -> tuple[bytes, int]:
    """Return the shuffled blocks and the block size, which is in the content."""
    if len(content) < HEADER.size:
        raise MalformedFile(f"bitshuffle content of {len(content)} bytes is shorter than its header")
    given, block_nbytes = HEADER.unpack_from(content)
    check_room(given, nbytes, "bitshuffle content")
    block_nbytes = block_nbytes // settings.element_nbytes * settings.element_nbytes
    if not block_nbytes or block_nbytes // settings.element_nbytes % 8 or given % settings.element_nbytes:
        raise MalformedFile(
            f"bitshuffle content of {given} bytes has blocks of {block_nbytes} bytes, but a block has a multiple of 8 "
            f"elements, and an element has {settings.element_nbytes} bytes"
        )
    parts, at = [], HEADER.size
    blocks, end = _blocks(given, settings.element_nbytes, block_nbytes)
    for _, length in blocks:
        stored, at = take_block(content, at)
        if settings.compressor == "lz4":
            parts.append(decompress_block(stored, length))
        else:
            parts.append(zstd.decode_exactly(stored, length))
    plain = content[at : at + given - end]
    if len(plain) < given - end:
        raise MalformedFile("bitshuffle content ends within its last elements")
    return b"".join((*parts, plain)), block_nbytes


def _each_block(
    content: bytes, settings: Settings, block_nbytes: int, transpose: Callable[[Bytes, int], Bytes]
) -> bytes:
    """Return the content with all blocks transposed: first all full blocks together, then the shorter one."""
    width = settings.element_nbytes
    if len(content) % width:
        raise MalformedFile(f"bitshuffle content has {len(content)} bytes, which is not a multiple of {width}")
    stored = np.frombuffer(content, np.uint8)
    whole = stored.size // block_nbytes * block_nbytes
    end = stored.size // (8 * width) * 8 * width
    parts = [
        transpose(stored[start:stop].reshape(-1, size), width).tobytes()
        for start, stop, size in ((0, whole, block_nbytes), (whole, end, end - whole))
        if stop > start
    ]
    return b"".join((*parts, content[end:]))


def label(values: Values) -> str:
    """Return the compressor."""
    name = COMPRESSORS.get(values[4], "none") if len(values) > 4 else "none"
    return "" if name == "none" else name


# --- matrices of bits


def elements_from_bits(blocks: Bytes, width: int) -> Bytes:
    """Return elements of `width` bytes. Each row of `blocks` has the first bits of its elements, then the second, …"""
    count = blocks.shape[1] // width // 8
    result = np.empty_like(blocks)
    for part in _slabs(blocks):
        rows = blocks[part].reshape(-1, 8, count).copy()
        _transpose(rows)
        result[part].reshape(-1, count, 8, width)[...] = rows.reshape(-1, width, 8, count).transpose(0, 3, 2, 1)
    return result


def bits_from_elements(blocks: Bytes, width: int) -> Bytes:
    """Return the bits of all elements. Each row of `blocks` is one block of elements of `width` bytes."""
    count = blocks.shape[1] // width // 8
    result = np.empty_like(blocks)
    for part in _slabs(blocks):
        rows = result[part].reshape(-1, 8, count)
        rows.reshape(-1, width, 8, count)[...] = blocks[part].reshape(-1, count, 8, width).transpose(0, 3, 2, 1)
        _transpose(rows)
    return result


def _slabs(blocks: Bytes) -> list[slice]:
    """Return slices of rows to transpose together."""
    step = max(1, _SLAB_NBYTES // max(1, blocks.shape[1]))
    return [slice(start, start + step) for start in range(0, len(blocks), step)]


def _transpose(rows: Bytes) -> None:
    """Transpose, in place, the 8 x 8 matrices of bits that eight rows form byte by byte, lowest bit first.

    Rows are along the second axis. If they consist of whole words of eight bytes, eight matrices are done at once.
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
