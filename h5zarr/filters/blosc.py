"""Filter 32001, blosc: one Blosc 1 buffer, which describes itself.

Client data: version of the filter, version of the format, size of an element, bytes of a chunk, level, shuffle,
compressor; the last three may be absent. Source: blosc_filter.c of hdf5-blosc, README_CHUNK_FORMAT.rst of c-blosc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.toolkit import Codec, Values, check_room

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")  # by code; the same in Blosc 2
NUMCODECS_COMPRESSORS = tuple(name for name in COMPRESSORS if name != "snappy")
SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
DEFAULT_LEVEL, DEFAULT_SHUFFLE, DEFAULT_COMPRESSOR = 5, 1, 0
_HEADER_NBYTES = 16
_SNAPPY_FORMAT = 2
_SNAPPY = "filter 32001 (blosc) was used with the compressor snappy"


class SnappyInBlosc(Unsupported):
    """The Blosc of numcodecs, and therefore of Zarr, is built without snappy."""

    remedy = "Copy the dataset with another compressor, for instance: h5repack -f GZIP=6"


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content. Check the sizes in the header first: the library trusts them."""
    from numcodecs import blosc

    if len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"blosc buffer of {len(content)} bytes is shorter than its header")
    given = int.from_bytes(content[4:8], "little")
    stored = int.from_bytes(content[12:16], "little")
    check_room(given, nbytes, "blosc buffer")
    if not _HEADER_NBYTES <= stored <= len(content):
        raise MalformedFile(f"blosc buffer claims to have {stored} bytes, but there are {len(content)}")
    if content[2] >> 5 == _SNAPPY_FORMAT:
        raise SnappyInBlosc(_SNAPPY)
    try:
        return bytes(blosc.decompress(content))
    except (RuntimeError, ValueError) as error:
        raise MalformedFile(f"blosc buffer does not decompress: {error}") from error


def encode(content: bytes, values: Values) -> bytes:
    """Return one Blosc buffer."""
    from numcodecs import blosc

    element_nbytes, level, shuffle, compressor = described(values)
    return bytes(blosc.compress(content, compressor.encode(), level, SHUFFLES.index(shuffle), 0, element_nbytes))


def described(values: Values) -> tuple[int, int, str, str]:
    """Return the size of an element, the level, and the names of shuffle and compressor."""
    element_nbytes = values[2] if len(values) > 2 else 1
    level = values[4] if len(values) > 4 else DEFAULT_LEVEL
    shuffle = values[5] if len(values) > 5 else DEFAULT_SHUFFLE
    compressor = values[6] if len(values) > 6 else DEFAULT_COMPRESSOR
    if shuffle >= len(SHUFFLES) or compressor >= len(COMPRESSORS) or level > 9:
        raise MalformedFile(
            f"filter 32001 (blosc) has impossible client data {values}: level {level}, shuffle {shuffle}, "
            f"compressor {compressor}"
        )
    # As in the filter: Blosc shuffles elements of up to 255 bytes, and treats larger ones as bytes.
    return element_nbytes if 0 < element_nbytes < 256 else 1, level, SHUFFLES[shuffle], COMPRESSORS[compressor]


def to_codec(values: Values, nbytes: int | None) -> Codec:
    """Return Zarr's `blosc`. Raises SnappyInBlosc if Zarr cannot decompress it."""
    element_nbytes, level, shuffle, compressor = described(values)
    if compressor not in NUMCODECS_COMPRESSORS:
        raise SnappyInBlosc(_SNAPPY)
    settings = {"typesize": element_nbytes, "cname": compressor, "clevel": level, "shuffle": shuffle, "blocksize": 0}
    return {"name": "blosc", "configuration": settings}


def from_codec(configuration: Mapping[str, Any]) -> Values:
    """Return the client data. `shuffle` is a name in Zarr v3, and a number in numcodecs."""
    shuffle = configuration.get("shuffle", DEFAULT_SHUFFLE)
    shuffle = SHUFFLES.index(shuffle) if isinstance(shuffle, str) else shuffle
    compressor = COMPRESSORS.index(configuration.get("cname", COMPRESSORS[DEFAULT_COMPRESSOR]))
    level = configuration.get("clevel", DEFAULT_LEVEL)
    return (2, 2, configuration.get("typesize", 1), 0, level, shuffle, compressor)


def label(values: Values) -> str:
    """Return compressor, level and shuffle, as far as the client data have them. Blosc 2 has the same."""
    parts = []
    if len(values) > 6 and values[6] < len(COMPRESSORS):
        parts.append(COMPRESSORS[values[6]])
    if len(values) > 4:
        parts.append(str(values[4]))
    if len(values) > 5 and 0 < values[5] < len(SHUFFLES):
        parts.append(SHUFFLES[values[5]])
    return ", ".join(parts)


def netcdf_encoding(values: Values) -> dict[str, Any]:
    """netCDF4-python calls the compressors `blosc_lz`, `blosc_lz4`, …"""
    if len(values) != 7 or values[6] >= len(COMPRESSORS):
        return {}
    compressor = f"blosc_{COMPRESSORS[values[6]].removeprefix('blosc')}"
    return {"blosc": {"compressor": compressor, "shuffle": values[5]}, "complevel": values[4]}
