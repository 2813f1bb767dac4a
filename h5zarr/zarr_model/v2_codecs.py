"""Convert codecs between Zarr v3 and v2, where they are filters and a compressor, and encode chunks without zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from h5zarr.errors import H5ZarrError, MalformedFile, Unrepresentable, Unsupported
from h5zarr.filters.blosc import NUMCODECS_COMPRESSORS, SHUFFLES
from h5zarr.filters.pipeline import redo_filters, undo_filters
from h5zarr.zarr_model.codecs import NUMCODECS, NUMCODECS_PREFIX, CodecKind, find_filter, is_same_in_v2
from h5zarr.zarr_model.data_types import encode_serializer
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.v2_types import decode_dtype_v2

_BLOSC_AUTOMATIC = -1

# The array-to-array codecs of numcodecs, and the setting that has the type of the result, if there is one.
_ARRAY_FILTERS = {
    "astype": "encode_dtype",
    "bitround": None,
    "delta": "astype",
    "fixedscaleoffset": "astype",
    "quantize": "astype",
}
_SERIALIZERS = frozenset(name for name, kind in NUMCODECS.items() if kind is CodecKind.ARRAY_BYTES)
_OBJECTS = frozenset({"vlen-utf8", "vlen-bytes"})
_NOT_IN_V3 = frozenset({"packbits", "categorize", "json2", "json", "msgpack", "msgpack2", "pickle", "vlen-array"})


def encode_codecs_v2(codecs: Sequence[Json]) -> list[Json] | None:
    """Return the v2 filters for v3 codecs, or None if there are none.

    All of them become `filters`, even compressors, which readers accept there. A `compressor` would have to be last,
    but a checksum may follow. Raises Unrepresentable for a codec without a counterpart.
    """
    if codecs[0]["name"] not in ("bytes", "vlen-utf8"):  # it may change the byte order
        raise Unrepresentable(f"codec {codecs[0]['name']} has no counterpart in Zarr v2 at this position")
    filters = [_encode_codec(codec) for codec in codecs if codec["name"] != "bytes"]
    return filters or None


def _encode_codec(codec: Json) -> Json:
    name, configuration = codec["name"], _configuration(codec)
    if name.startswith(NUMCODECS_PREFIX):
        return {"id": name.removeprefix(NUMCODECS_PREFIX), **configuration}
    if is_same_in_v2(name):
        return {"id": name, **configuration}
    match name:
        case "vlen-utf8":
            return {"id": "vlen-utf8"}
        case "zstd" | "gzip":
            return {"id": name, "level": configuration["level"]}
        case "blosc":
            kept = {key: configuration[key] for key in ("cname", "clevel", "blocksize")}
            return {"id": "blosc", **kept, "shuffle": SHUFFLES.index(configuration["shuffle"])}
    raise Unrepresentable(f"codec {name} has no counterpart in Zarr v2")


def decode_codecs_v2(metadata: Mapping[str, Json], dtype: np.dtype[Any], rank: int) -> tuple[Json, ...]:
    """Return the v3 codecs for `order`, `filters` and `compressor` of v2 metadata.

    Raises Unsupported for a codec without a counterpart. Unknown ids become codecs of numcodecs.
    """
    before: list[Json] = []
    behind: list[Json] = []
    serializer: Json = None
    if rank > 1 and metadata.get("order") == "F":
        before.append({"name": "transpose", "configuration": {"order": list(range(rank))[::-1]}})
    for name, settings in _decode_steps(metadata):
        if serializer is None and name in _ARRAY_FILTERS and dtype.kind != "O":
            before.append({"name": f"{NUMCODECS_PREFIX}{name}", "configuration": settings})
            dtype = _dtype_after(name, settings, dtype)
        elif serializer is None and name in _SERIALIZERS and dtype.kind != "O":
            serializer = {"name": f"{NUMCODECS_PREFIX}{name}", "configuration": settings}
        elif serializer is None and name in _OBJECTS and dtype.kind == "O":
            serializer = {"name": name}
        elif name in {*_ARRAY_FILTERS, *_SERIALIZERS, *_OBJECTS, *_NOT_IN_V3}:
            raise Unsupported(f'codec "{name}" has no counterpart in Zarr v3 at this position')
        else:
            serializer = serializer or _plain_serializer(dtype)
            behind.append(_decode_codec(name, settings, dtype))
    return (*before, serializer or _plain_serializer(dtype), *behind)


def codec_ids(metadata: Mapping[str, Json]) -> list[str]:
    """Return the ids of all filters and of the compressor of v2 metadata, in the order of writing."""
    return [name for name, _ in _decode_steps(metadata)]


def _decode_steps(metadata: Mapping[str, Json]) -> list[tuple[str, dict[str, Any]]]:
    """Return the ids and settings of all filters and of the compressor."""
    filters, compressor = metadata.get("filters"), metadata.get("compressor")
    if not isinstance(filters, list | None):
        raise MalformedFile("filters is not a list")
    found = []
    for step in [*(filters or ()), *(() if compressor is None else (compressor,))]:
        if not isinstance(step, dict) or not isinstance(step.get("id"), str):
            raise MalformedFile("a filter or the compressor is not an object with an id")
        found.append((step["id"], {name: value for name, value in step.items() if name != "id"}))
    return found


def _plain_serializer(dtype: np.dtype[Any]) -> Json:
    if dtype.kind == "O":
        raise Unsupported("the values are Python objects, whose codec has no counterpart in Zarr v3")
    return encode_serializer(dtype)


def _dtype_after(name: str, settings: Mapping[str, Json], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a filter's result for elements of `dtype`."""
    stated = settings.get(_ARRAY_FILTERS[name] or "")
    after = dtype if stated is None else decode_dtype_v2(stated)
    if name == "quantize" and after != dtype:  # zarr would silently read one type as the other
        raise Unsupported(f'codec "{name}" has no counterpart in Zarr v3 if it changes the type')
    return after


def _decode_codec(name: str, settings: dict[str, Any], dtype: np.dtype[Any]) -> Json:
    """Return a codec from bytes to bytes: Zarr's own if it is equivalent, else that of numcodecs or h5zarr."""
    match name, settings:
        case "gzip", {"level": int(level)} if len(settings) == 1 and 0 <= level <= 9:
            return {"name": "gzip", "configuration": {"level": level}}
        case "zstd", {"level": int(level), **rest} if level <= 22 and rest.get("checksum", False) in (False, True):
            if rest.keys() <= {"checksum"}:
                return {"name": "zstd", "configuration": {"level": level, "checksum": bool(rest.get("checksum"))}}
        case "blosc", {"cname": str(cname), "clevel": int(clevel), "shuffle": int(shuffle), "blocksize": int(size)}:
            if cname in NUMCODECS_COMPRESSORS and -1 <= shuffle <= 2:
                return _decode_blosc(cname, clevel, shuffle, size, dtype)
    return {"name": name if is_same_in_v2(name) else f"{NUMCODECS_PREFIX}{name}", "configuration": settings}


def _decode_blosc(cname: str, clevel: int, shuffle: int, blocksize: int, dtype: np.dtype[Any]) -> Json:
    """Return Zarr's Blosc codec. Its configuration has the element size, and cannot have an automatic shuffle."""
    typesize = dtype.itemsize if dtype.kind != "O" and 0 < dtype.itemsize < 256 else 1
    if shuffle == _BLOSC_AUTOMATIC:
        shuffle = 2 if typesize == 1 else 1
    settings = {"cname": cname, "clevel": clevel, "shuffle": SHUFFLES[shuffle]}
    return {"name": "blosc", "configuration": {"typesize": typesize, **settings, "blocksize": blocksize}}


def encode_chunk(content: bytes, codecs: Sequence[Json]) -> bytes | None:
    """Return `content` encoded by all codecs but the first; None if that fails or loses information."""
    try:
        filters = [find_filter(codec) for codec in codecs[1:]]
        encoded = redo_filters(content, filters)
        restored = undo_filters(encoded, filters, 0, len(content))
    except (H5ZarrError, ImportError, ValueError, RuntimeError):
        return None
    return encoded if restored == content else None


def _configuration(codec: Json) -> dict[str, Any]:
    return dict(codec.get("configuration", {}))
