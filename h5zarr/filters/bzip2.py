"""Filter 307, bzip2: one bzip2 stream. Client data: the block size, in units of 100,000 bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Codec, Values, first, most, signed

DEFAULT_LEVEL = 9


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content."""
    import bz2  # late, like other libraries

    decompressing = bz2.BZ2Decompressor()
    try:
        decompressed = decompressing.decompress(content, most(nbytes))
    except (OSError, ValueError) as error:
        raise MalformedFile(f"bzip2 stream does not decompress: {error}") from error
    if not decompressing.eof:
        raise MalformedFile("bzip2 stream does not decompress to the expected size")
    return decompressed


def encode(content: bytes, values: Values) -> bytes:
    """Return one bzip2 stream."""
    import bz2

    return bz2.compress(content, first(values, default=DEFAULT_LEVEL))


def to_codec(values: Values, nbytes: int | None) -> Codec:
    level = min(max(first(values, default=DEFAULT_LEVEL), 1), 9)
    return {"name": "numcodecs.bz2", "configuration": {"level": level}}


def from_codec(configuration: Mapping[str, Any]) -> Values:
    return (configuration.get("level", 1),)


def label(values: Values) -> str:
    return str(signed(values[0])) if values else ""


def netcdf_encoding(values: Values) -> dict[str, Any]:
    return {"bzip2": True, "complevel": signed(values[0])} if len(values) == 1 else {}
