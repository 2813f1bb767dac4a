"""Codecs of Zarr version 3 that readers know: by name, what they are given and what they give."""

from __future__ import annotations

from enum import Enum

from h5zarr.hierarchy import Json
from h5zarr.validating.members import named
from h5zarr.validating.raw import RawNode


class Kind(Enum):
    """What a codec makes of what, when chunks are written."""

    ARRAY_ARRAY = "array -> array"
    ARRAY_BYTES = "array -> bytes"
    BYTES_BYTES = "bytes -> bytes"


_OF_NUMCODECS = {
    Kind.ARRAY_ARRAY: ("astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize"),
    Kind.ARRAY_BYTES: ("pcodec", "zfpy"),
    Kind.BYTES_BYTES: (
        *("adler32", "blosc", "bz2", "crc32", "crc32c", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma"),
        *("shuffle", "zlib", "zstd"),
    ),
}
_OWN = ("bitshuffle", "blosc2", "elements", "lz4", "lzf", "nbit", "scaleoffset", "shuffle", "szip", "zfp")
OWN_PREFIX = "h5zarr."
KINDS = {
    **dict.fromkeys(("transpose", "bitround", "cast_value", "reshape", "scale_offset"), Kind.ARRAY_ARRAY),
    **dict.fromkeys(
        ("bytes", "sharding_indexed", "vlen-utf8", "vlen-bytes", "packbits", "zfp", "n5_default"), Kind.ARRAY_BYTES
    ),
    **dict.fromkeys(("blosc", "crc32c", "gzip", "zstd"), Kind.BYTES_BYTES),
    **{f"numcodecs.{name}": kind for kind, names in _OF_NUMCODECS.items() for name in names},
    **{f"{OWN_PREFIX}{name}": Kind.BYTES_BYTES for name in _OWN},
}

# Codecs of version 2, by their ids: those of numcodecs, and h5zarr's.
IDS_V2 = frozenset(
    {
        *(name for names in _OF_NUMCODECS.values() for name in names),
        *("base64", "categorize", "json2", "json", "msgpack2", "msgpack", "n5_wrapper", "pickle", "zlib"),
        *("vlen-array", "vlen-bytes", "vlen-utf8"),
        *(f"{OWN_PREFIX}{name}" for name in _OWN),
    }
)


def codecs_of(node: RawNode) -> list[tuple[str, dict[str, Json]]] | None:
    """Return the names and configurations of an array's codecs; None where there is no such list."""
    value = node.metadata.get("codecs")
    if not isinstance(value, list):
        return None
    told = [named(codec) for codec in value]
    found = [one for one in told if one is not None]
    return found if len(found) == len(told) else None
