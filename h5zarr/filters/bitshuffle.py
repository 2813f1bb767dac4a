"""Filter 32008, bitshuffle: first bits of all elements, then second bits, …, compressed or not.

Client data: major and minor version, size of an element, elements of a block (0 for the default), compressor, level.
The compressed form has lz4's framing (see `lz4`), but each block is bit-shuffled, and up to seven elements that fill
no byte of bits stand at the end as they are. Source: bshuf_h5filter.c and bitshuffle_core.c of bitshuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters import zstd
from h5zarr.filters.arrays import Bytes
from h5zarr.filters.bounds import check_room
from h5zarr.filters.lz4 import HEADER, compress_block, decompress_block, take_block
from h5zarr.filters.settings import check, check_choice, described, settings_of
from h5zarr.filters.transposing import bits_from_elements, elements_from_bits

COMPRESSORS = {0: "none", 2: "lz4", 3: "zstd"}
_TARGET_NBYTES, _LEAST_DEFAULT = 8192, 128
_VERSION = (0, 4)  # of bitshuffle, the first whose compressor may be zstd


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How bits are shuffled: elements of a block (a multiple of 8, 0 for the default), and the compressor."""

    filter_name: ClassVar = "bitshuffle"

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
    def from_values(cls, values: tuple[int, ...]) -> Self:
        _, _, element_nbytes, block_count, compressor, level = described(values, "bitshuffle", 3, (0, 0, 0))
        if compressor not in COMPRESSORS:
            raise ValueError(f"bitshuffle has no compressor {compressor}")
        return cls(
            element_nbytes=element_nbytes,
            block_count=block_count,
            compressor=COMPRESSORS[compressor],
            level=min(level or zstd.DEFAULT_LEVEL, zstd.GREATEST_LEVEL),
        )

    def to_values(self) -> tuple[int, ...]:
        code = next(code for code, name in COMPRESSORS.items() if name == self.compressor)
        return (*_VERSION, self.element_nbytes, self.block_count, code, self.level)

    def block_nbytes(self) -> int:
        """Return the size of a block."""
        default = max(_TARGET_NBYTES // self.element_nbytes // 8 * 8, _LEAST_DEFAULT)
        return (self.block_count or default) * self.element_nbytes


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the elements one after the other."""
    settings = settings_of(Settings, values)
    if settings.compressor == "none":
        return _each_block(content, settings, settings.block_nbytes(), elements_from_bits)
    shuffled, block_nbytes = _decompressed(content, settings, nbytes)
    return _each_block(shuffled, settings, block_nbytes, elements_from_bits)


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the blocks of bits, compressed if so wished."""
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
    """Return start and size of each block, the last of which is shorter, and where what is not shuffled begins."""
    count = nbytes // element_nbytes
    end = (count - count % 8) * element_nbytes
    return [(start, min(block_nbytes, end - start)) for start in range(0, end, block_nbytes)], end


def _decompressed(content: bytes, settings: Settings, nbytes: int) -> tuple[bytes, int]:
    """Return the shuffled blocks, and their size, which the content says itself."""
    if len(content) < HEADER.size:
        raise MalformedFile(f"bitshuffle content of {len(content)} bytes is shorter than its header")
    given, block_nbytes = HEADER.unpack_from(content)
    check_room(given, nbytes, "bitshuffle content")
    block_nbytes = block_nbytes // settings.element_nbytes * settings.element_nbytes
    if not block_nbytes or block_nbytes // settings.element_nbytes % 8 or given % settings.element_nbytes:
        raise MalformedFile(f"bitshuffle content of {given} bytes has blocks of {block_nbytes} bytes")
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
    """Return the content with all blocks transposed: those of full size together, then the shorter one."""
    width = settings.element_nbytes
    if len(content) % width:
        raise MalformedFile(f"bitshuffle content has {len(content)} bytes, no multiple of {width}")
    stored = np.frombuffer(content, np.uint8)
    whole = stored.size // block_nbytes * block_nbytes
    end = stored.size // (8 * width) * 8 * width
    parts = [
        transpose(stored[start:stop].reshape(-1, size), width).tobytes()
        for start, stop, size in ((0, whole, block_nbytes), (whole, end, end - whole))
        if stop > start
    ]
    return b"".join((*parts, content[end:]))
