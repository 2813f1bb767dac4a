"""Filter 32001, blosc: one Blosc 1 buffer, which says itself how it was made.

Client data: version of the filter, version of the format, size of an element, bytes of a chunk, level, shuffle,
compressor; the last three may be absent. Source: blosc_filter.c of hdf5-blosc, README_CHUNK_FORMAT.rst of c-blosc.
"""

from __future__ import annotations

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.bounds import check_room

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
DEFAULT_LEVEL, DEFAULT_SHUFFLE, DEFAULT_COMPRESSOR = 5, 1, 0
_HEADER_NBYTES = 16
_SNAPPY_FORMAT = 2


class SnappyInBlosc(Unsupported):
    """numcodecs, and with it Zarr, has a Blosc without snappy."""

    remedy = "Copy the dataset with another compressor, for instance: h5repack -f GZIP=6"


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return what was compressed. The sizes in the header are verified here, since the library trusts them."""
    from numcodecs import blosc

    if len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"blosc buffer of {len(content)} bytes is shorter than its header")
    given = int.from_bytes(content[4:8], "little")
    stored = int.from_bytes(content[12:16], "little")
    check_room(given, nbytes, "blosc buffer")
    if not _HEADER_NBYTES <= stored <= len(content):
        raise MalformedFile(f"blosc buffer says that it has {stored} bytes, but there are {len(content)}")
    if content[2] >> 5 == _SNAPPY_FORMAT:
        raise SnappyInBlosc("filter 32001 (blosc) was used with the compressor snappy")
    try:
        return bytes(blosc.decompress(content))
    except (RuntimeError, ValueError) as error:
        raise MalformedFile(f"blosc buffer does not decompress: {error}") from error


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return one Blosc buffer."""
    from numcodecs import blosc

    element_nbytes, level, shuffle, compressor = described(values)
    return bytes(blosc.compress(content, compressor.encode(), level, SHUFFLES.index(shuffle), 0, element_nbytes))


def described(values: tuple[int, ...]) -> tuple[int, int, str, str]:
    """Return the size of an element, the level, and the names of shuffle and compressor."""
    element_nbytes = values[2] if len(values) > 2 else 1
    level = values[4] if len(values) > 4 else DEFAULT_LEVEL
    shuffle = values[5] if len(values) > 5 else DEFAULT_SHUFFLE
    compressor = values[6] if len(values) > 6 else DEFAULT_COMPRESSOR
    if shuffle >= len(SHUFFLES) or compressor >= len(COMPRESSORS) or level > 9:
        raise MalformedFile(f"filter 32001 (blosc) has unknown client data {values}")
    # As in the filter: Blosc can shuffle elements of up to 255 bytes, larger ones are taken as bytes.
    return element_nbytes if 0 < element_nbytes < 256 else 1, level, SHUFFLES[shuffle], COMPRESSORS[compressor]
