"""Filter 307, bzip2: one bzip2 stream. Client data: the size of blocks, in units of 100,000 bytes."""

from __future__ import annotations

from h5zarr.errors import MalformedFile
from h5zarr.filters.bounds import most
from h5zarr.filters.settings import first

DEFAULT_LEVEL = 9


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return what was compressed."""
    import bz2  # as late as other libraries

    decompressing = bz2.BZ2Decompressor()
    try:
        decompressed = decompressing.decompress(content, most(nbytes))
    except (OSError, ValueError) as error:
        raise MalformedFile(f"bzip2 stream does not decompress: {error}") from error
    if not decompressing.eof:
        raise MalformedFile("bzip2 stream does not decompress to the size that it should have")
    return decompressed


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return one bzip2 stream."""
    import bz2

    return bz2.compress(content, first(values, default=DEFAULT_LEVEL))
