"""Compress output by its suffix, and decompress input by its first bytes.

The same input gives the same bytes: no times, no names, one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO
from typing import BinaryIO, Protocol

from h5zarr.errors import MalformedFile
from h5zarr.limits import USUAL, Limits
from h5zarr.packages import missing

# A million references, 97 MB: gzip takes 0.4 s for 11.8 MB at level 1, and 1.2 s for 10.9 MB at level 6; zstd takes 0.2
# s for 9.8 MB at level 1; its levels 3 and 6 are slower and larger.
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31  # selects gzip in zlib: a window of 15 bits, plus 16 for a gzip header without time or name
_ZSTD_LEVEL = 1

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
# References shrink about tenfold. Input that grows a thousandfold is an attempt to exhaust the memory.
_GROWTH = 1000
_ALWAYS_NBYTES = 1 << 28
_PIECE_NBYTES = 1 << 24
_TEXT_NBYTES = 1 << 16


class Compressor(Protocol):
    """Compresses bytes piece by piece."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def find_compressor(name: str) -> Compressor | None:
    """Return the compressor for the suffix of `name`, or None. Raises PackageMissing if a package is missing."""
    if name.endswith(".gz"):
        import zlib

        return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return _zstd(name) if name.endswith(".zst") else None


def _zstd(name: str) -> Compressor:
    if sys.version_info >= (3, 14):
        from compression.zstd import CompressionParameter, ZstdCompressor

        return ZstdCompressor(
            options={CompressionParameter.compression_level: _ZSTD_LEVEL, CompressionParameter.checksum_flag: 1}
        )
    try:
        import zstandard
    except ImportError:
        raise missing("zstandard", ".zst compression", place=name) from None
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True, threads=0).compressobj()


def decompress(content: bytes, name: str, limits: Limits = USUAL) -> bytes:
    """Return the decompressed content, or `content` itself if its first bytes are not those of a compressed file.

    Raises MalformedFile with `name` if it is damaged or grows without bounds, LimitReached if it exceeds the limit, and
    PackageMissing if a package is missing.
    """
    most = min(max(_ALWAYS_NBYTES, _GROWTH * len(content)), limits.references_nbytes)
    if content.startswith(GZIP):
        found = _decompress_gzip(content, most, name)
    elif content.startswith(ZSTD):
        found = _decompress_zstd(content, most, name)
    else:
        found = content
    limits.check("references_nbytes", len(found), f"{name}: the references take {len(found):,} bytes or more")
    if found is not content and len(found) > most:
        raise MalformedFile(f"{name}: {len(content)} bytes decompress to more than {most}")
    return found


def decompress_each(contents: Sequence[bytes], dictionary: bytes, name: str) -> list[bytes]:
    """Return the texts that zstd compressed one by one with a dictionary.

    Raises MalformedFile with `name` if one is damaged or longer than a URL, and PackageMissing if a package is missing.
    """
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdDict, ZstdError

        try:
            known = ZstdDict(dictionary) if dictionary else None
            found = [ZstdDecompressor(known).decompress(content, _TEXT_NBYTES + 1) for content in contents]
        except (ZstdError, EOFError, ValueError) as error:
            raise MalformedFile(f"{name}: zstd cannot decompress it: {error}") from error
    else:
        try:
            import zstandard
        except ImportError:
            raise missing("zstandard", ".zst compression", place=name) from None
        try:
            known = zstandard.ZstdCompressionDict(dictionary)
            frames = zstandard.ZstdDecompressor(dict_data=known)
            # A stream: other functions allocate what the content claims to have.
            found = [frames.stream_reader(content).read(_TEXT_NBYTES + 1) for content in contents]
        except zstandard.ZstdError as error:
            raise MalformedFile(f"{name}: zstd cannot decompress it: {error}") from error
    if any(len(text) > _TEXT_NBYTES for text in found):
        raise MalformedFile(f"{name}: a compressed location has more than {_TEXT_NBYTES} bytes")
    return found


def peek(content: bytes, nbytes: int) -> bytes:
    """Return the first decompressed bytes, given the first bytes of a file; fewer if there are not enough."""
    try:
        if content.startswith(GZIP):
            import zlib

            return zlib.decompressobj(_GZIP_WINDOW).decompress(content, nbytes)
        if content.startswith(ZSTD):
            return _open_zstd(content, "")[0].read(nbytes)
    except Exception:  # any exception of the libraries: it is not compressed, or a package is missing
        return b""
    return content[:nbytes]


def _decompress_gzip(content: bytes, most: int, name: str) -> bytes:
    """Return the members of a gzip file, concatenated, but not much more than `most` bytes."""
    import zlib

    parts: list[bytes] = []
    room = most + 1
    while content and room > 0:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            parts.append(member.decompress(content, room))
        except zlib.error as error:
            raise MalformedFile(f"{name}: gzip cannot decompress it: {error}") from error
        room -= len(parts[-1])
        if not member.eof and room > 0:
            raise MalformedFile(f"{name}: the gzip file is truncated")
        content = member.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_zstd(content: bytes, most: int, name: str) -> bytes:
    """Return the frames of a zstd file, concatenated, but not much more than `most` bytes."""
    frames, failure = _open_zstd(content, name)
    parts: list[bytes] = []
    room = most + 1
    try:
        while room > 0 and (part := frames.read(min(room, _PIECE_NBYTES))):
            parts.append(part)
            room -= len(part)
    except (failure, EOFError) as error:
        raise MalformedFile(f"{name}: zstd cannot decompress it: {error}") from error
    return b"".join(parts)


def _open_zstd(content: bytes, name: str) -> tuple[BinaryIO, type[Exception]]:
    """Return a file object with the decompressed content, and the exceptions it raises for damage."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError, ZstdFile

        return ZstdFile(BytesIO(content)), ZstdError
    try:
        import zstandard
    except ImportError:
        raise missing("zstandard", ".zst compression", place=name) from None
    return zstandard.ZstdDecompressor().stream_reader(BytesIO(content), read_across_frames=True), zstandard.ZstdError
