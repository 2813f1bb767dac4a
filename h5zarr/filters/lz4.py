"""Filter 32004, lz4: LZ4 blocks in HDF5's own framing, which no library reads. Client data: the block size.

Content: the uncompressed size (8 bytes, big-endian), the block size (4 bytes, big-endian), then for each block its
compressed size (4 bytes, big-endian) and an LZ4 block. A block that does not get smaller is stored uncompressed.
Source: H5Zlz4.c.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Values, check, check_room, first, settings_of

DEFAULT_BLOCK_NBYTES = 1 << 30
HEADER = struct.Struct(">QI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The number of bytes per block, which only encoding needs."""

    block_nbytes: int = DEFAULT_BLOCK_NBYTES

    def __post_init__(self) -> None:
        check(self.block_nbytes, "block_nbytes", 1, 2**31 - 1)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        return cls(block_nbytes=first(values, default=0) or DEFAULT_BLOCK_NBYTES)

    def to_values(self) -> Values:
        return (self.block_nbytes,)


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content."""
    if len(content) < HEADER.size:
        raise MalformedFile(f"lz4 content of {len(content)} bytes is shorter than its header")
    given, block_nbytes = HEADER.unpack_from(content)
    check_room(given, nbytes, "lz4 content")
    if block_nbytes == 0 and given:
        raise MalformedFile("lz4 content has blocks of 0 bytes")
    blocks, start = [], HEADER.size
    for left in range(given, 0, -block_nbytes or -1):
        stored, start = take_block(content, start)
        expected = min(block_nbytes, left)
        blocks.append(stored if len(stored) == expected else decompress_block(stored, expected))
    return b"".join(blocks)


def encode(content: bytes, values: Values) -> bytes:
    """Return the header and the blocks."""
    block_nbytes = min(settings_of(Settings, values).block_nbytes, max(len(content), 1))
    parts = [HEADER.pack(len(content), block_nbytes)]
    for start in range(0, len(content), block_nbytes):
        plain = content[start : start + block_nbytes]
        packed = compress_block(plain)
        stored = packed if len(packed) < len(plain) else plain
        parts += [len(stored).to_bytes(4, "big"), stored]
    return b"".join(parts)


def take_block(content: bytes, start: int) -> tuple[bytes, int]:
    """Return the block whose size is at `start`, and the start of the next one."""
    stored_nbytes = int.from_bytes(content[start : start + 4], "big")
    end = start + 4 + stored_nbytes
    if len(content) < end or len(content) < start + 4:
        raise MalformedFile(f"compressed block needs the content up to byte {end}, which has {len(content)} bytes")
    return content[start + 4 : end], end


def decompress_block(stored: bytes, nbytes: int) -> bytes:
    """Return the `nbytes` bytes of one LZ4 block."""
    from numcodecs import lz4

    try:
        return bytes(lz4.decompress(nbytes.to_bytes(4, "little") + stored))  # the framing of numcodecs
    except (RuntimeError, ValueError) as error:
        raise MalformedFile(f"lz4 block does not decompress: {error}") from error


def compress_block(plain: bytes) -> bytes:
    """Return one LZ4 block."""
    from numcodecs import lz4

    return bytes(lz4.compress(plain)[4:])
