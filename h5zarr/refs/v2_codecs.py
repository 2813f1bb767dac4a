"""Codecs of Zarr version 3 metadata as filters of version 2, and applied to a chunk without zarr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from h5zarr.errors import H5ZarrError, Unrepresentable
from h5zarr.hierarchy import Json
from h5zarr.refs.v2_types import ByteOrder

_OF_NUMCODECS = "numcodecs."
_OWN = "h5zarr."
_BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


def byte_order(codecs: Sequence[Json]) -> ByteOrder:
    """Return the byte order that the `bytes` codec states, as numpy writes it."""
    return ">" if _configuration(codecs[0]).get("endian") == "big" else "<"


def encode_codecs_v2(codecs: Sequence[Json]) -> list[Json] | None:
    """Return the filters of version 2 that undo what `codecs` of version 3 do, or None if there is nothing to undo.

    All stand in `filters` and none is the `compressor`, which would come last: a checksum may be behind it, and readers
    take compressors for filters as well.
    """
    filters = [_encode_codec(codec) for codec in codecs if codec["name"] != "bytes"]
    return filters or None


def _encode_codec(codec: Json) -> Json:
    name, configuration = codec["name"], _configuration(codec)
    if name.startswith(_OF_NUMCODECS):
        return {"id": name.removeprefix(_OF_NUMCODECS), **configuration}
    if name.startswith(_OWN):
        return {"id": name, **configuration}
    match name:
        case "vlen-utf8":
            return {"id": "vlen-utf8"}
        case "zstd" | "gzip":
            return {"id": name, "level": configuration["level"]}
        case "blosc":
            kept = {key: configuration[key] for key in ("cname", "clevel", "blocksize")}
            return {"id": "blosc", **kept, "shuffle": _BLOSC_SHUFFLES.index(configuration["shuffle"])}
    raise Unrepresentable(f"codec {name} has no counterpart in Zarr version 2")


def encode_chunk(content: bytes, codecs: Sequence[Json]) -> bytes | None:
    """Return `content` as the codecs behind the first leave it, or None if that cannot be done without a loss."""
    from h5zarr.encode.codec_filters import find_filter
    from h5zarr.filters.pipeline import undo_filters
    from h5zarr.filters.redo import redo_filters

    try:
        filters = [find_filter(codec) for codec in codecs[1:]]
        encoded = redo_filters(content, filters)
        restored = undo_filters(encoded, filters, 0, len(content))
    except (H5ZarrError, ImportError, ValueError, RuntimeError):
        return None
    return encoded if restored == content else None


def _configuration(codec: Json) -> dict[str, Any]:
    return dict(codec.get("configuration", {}))
