"""Filter 32015, zstd: one Zstandard frame (RFC 8878). Client data: the level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h5zarr.errors import MalformedFile
from h5zarr.filters.fletcher32 import CHECKSUM_NBYTES
from h5zarr.filters.toolkit import Codec, Values, check_room, first, signed

DEFAULT_LEVEL = 3
GREATEST_LEVEL = 22
_MAGIC = b"\x28\xb5\x2f\xfd"


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content.

    A frame usually states its decompressed size. A frame that was written as a stream does not: try the sizes that a
    chunk can have, because numcodecs would otherwise allocate whatever the frame expands to.
    """
    given = _content_nbytes(content)
    if given is not None:
        check_room(given, nbytes, "zstd frame")
        return decode_exactly(content, given)
    try:
        return decode_exactly(content, nbytes)
    except MalformedFile:
        return decode_exactly(content, nbytes + CHECKSUM_NBYTES)


def encode(content: bytes, values: Values) -> bytes:
    """Return one frame that states its size."""
    from numcodecs import zstd

    return bytes(zstd.compress(content, _level(values)))


def decode_exactly(content: bytes, nbytes: int) -> bytes:
    """Return the `nbytes` bytes of one frame."""
    from numcodecs import zstd

    if nbytes == 0:
        return b""  # numcodecs refuses an empty frame
    decompressed = bytearray(nbytes)
    try:
        zstd.decompress(content, decompressed)
    except (RuntimeError, ValueError) as error:
        raise MalformedFile(f"zstd frame does not decompress: {error}") from error
    return bytes(decompressed)


def _content_nbytes(content: bytes) -> int | None:
    """Return the decompressed size that the frame states, or None. RFC 8878, section 3.1.1.1."""
    if content[:4] != _MAGIC or len(content) < 6:
        raise MalformedFile(f"zstd frame begins with {content[:4]!r}, expected {_MAGIC!r}")
    descriptor = content[4]
    is_single_segment = bool(descriptor & 0x20)
    dictionary_nbytes = (0, 1, 2, 4)[descriptor & 3]
    start = 5 + (not is_single_segment) + dictionary_nbytes
    width = (1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6]
    if width == 0:
        return None
    field = content[start : start + width]
    if len(field) < width:
        raise MalformedFile("zstd frame ends within its header")
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)


def _level(values: Values) -> int:
    return min(signed(first(values, default=DEFAULT_LEVEL)), GREATEST_LEVEL)


def to_codec(values: Values, nbytes: int | None) -> Codec:
    return {"name": "zstd", "configuration": {"level": _level(values), "checksum": False}}


def from_codec(configuration: Mapping[str, Any]) -> Values:
    return (configuration.get("level", 0) % 2**32,)


def label(values: Values) -> str:
    return str(signed(values[0])) if values else ""


def netcdf_encoding(values: Values) -> dict[str, Any]:
    return {"zstd": True, "complevel": signed(values[0])} if len(values) == 1 else {}
