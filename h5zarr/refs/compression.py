"""Compression of output by its suffix. The same input gives the same bytes: no times, no names, one thread."""

from __future__ import annotations

import sys
from typing import Protocol

from h5zarr.errors import OutputError

# A million references, 97 MB: gzip makes 11.8 MB of them in 0.4 s at level 1, 10.9 MB in 1.2 s at level 6; zstd makes
# 9.8 MB in 0.2 s at level 1; levels 3 and 6 are slower and larger.
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31  # zlib's way to ask for gzip: a window of 15 bits, and 16 for gzip's header, without time or name
_ZSTD_LEVEL = 1


class Compressor(Protocol):
    """What takes bytes piece by piece, and gives what is ready."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def find_compressor(name: str) -> Compressor | None:
    """Return the compressor that the suffix of `name` asks for, or None. Raises OutputError if a package is missing."""
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
        remedy = "Install it: pip install zstandard. Or write a name that ends in .gz."
        raise OutputError(name, "a package to write .zst is missing", remedy=remedy) from None
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True, threads=0).compressobj()
