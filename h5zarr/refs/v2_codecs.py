"""Codecs of Zarr version 3 metadata as filters of version 2 and back, and applied to a chunk without zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from h5zarr.encode.data_types import encode_serializer
from h5zarr.errors import H5ZarrError, MalformedFile, Unrepresentable, Unsupported
from h5zarr.hierarchy import Json
from h5zarr.refs.v2_types import ByteOrder, decode_dtype_v2

_OF_NUMCODECS = "numcodecs."
_OWN = "h5zarr."
_BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_BLOSC_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
_BLOSC_AUTOMATIC = -1

# What numcodecs has that is not from bytes to bytes. Of filters, where the type of what they give is named, if it is.
_ARRAY_FILTERS = {
    "astype": "encode_dtype",
    "bitround": None,
    "delta": "astype",
    "fixedscaleoffset": "astype",
    "quantize": "astype",
}
_SERIALIZERS = frozenset({"pcodec", "zfpy"})
_OBJECTS = frozenset({"vlen-utf8", "vlen-bytes"})
_NOT_IN_V3 = frozenset({"packbits", "categorize", "json2", "json", "msgpack", "msgpack2", "pickle", "vlen-array"})


def byte_order(codecs: Sequence[Json]) -> ByteOrder:
    """Return the byte order that the `bytes` codec states, as numpy writes it."""
    stated = [_configuration(codec).get("endian") for codec in codecs if codec["name"] == "bytes"]
    return ">" if stated == ["big"] else "<"


def encode_codecs_v2(codecs: Sequence[Json]) -> list[Json] | None:
    """Return the filters of version 2 that undo what `codecs` of version 3 do, or None if there is nothing to undo.

    All stand in `filters` and none is the `compressor`, which would come last: a checksum may be behind it, and readers
    take compressors for filters as well. Raises Unrepresentable for what has no counterpart.
    """
    if codecs[0]["name"] not in ("bytes", "vlen-utf8"):  # then the byte order is not that of the array's type
        raise Unrepresentable(f"codec {codecs[0]['name']} has no counterpart in Zarr version 2 where it stands")
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


def decode_codecs_v2(metadata: Mapping[str, Json], dtype: np.dtype[Any], rank: int) -> tuple[Json, ...]:
    """Return the codecs of version 3 that do what `order`, `filters` and `compressor` of version 2 do, in their order.

    Raises Unsupported for what version 3 has no codec for. Any other id is taken for one of numcodecs.
    """
    before: list[Json] = []
    behind: list[Json] = []
    serializer: Json = None
    if rank > 1 and metadata.get("order") == "F":
        before.append({"name": "transpose", "configuration": {"order": list(range(rank))[::-1]}})
    for name, settings in _decode_steps(metadata):
        if serializer is None and name in _ARRAY_FILTERS and dtype.kind != "O":
            before.append({"name": f"{_OF_NUMCODECS}{name}", "configuration": settings})
            dtype = _dtype_after(name, settings, dtype)
        elif serializer is None and name in _SERIALIZERS and dtype.kind != "O":
            serializer = {"name": f"{_OF_NUMCODECS}{name}", "configuration": settings}
        elif serializer is None and name in _OBJECTS and dtype.kind == "O":
            serializer = {"name": name}
        elif name in {*_ARRAY_FILTERS, *_SERIALIZERS, *_OBJECTS, *_NOT_IN_V3}:
            raise Unsupported(f'codec "{name}" has no counterpart in Zarr version 3 where it stands')
        else:
            serializer = serializer or _plain_serializer(dtype)
            behind.append(_decode_codec(name, settings, dtype))
    return (*before, serializer or _plain_serializer(dtype), *behind)


def codec_ids(metadata: Mapping[str, Json]) -> list[str]:
    """Return the ids of all filters and of the compressor of version 2, in the order of writing."""
    return [name for name, _ in _decode_steps(metadata)]


def _decode_steps(metadata: Mapping[str, Json]) -> list[tuple[str, dict[str, Any]]]:
    """Return the ids and settings of all filters and of the compressor."""
    filters, compressor = metadata.get("filters"), metadata.get("compressor")
    if not isinstance(filters, list | None):
        raise MalformedFile("the filters are no list")
    found = []
    for step in [*(filters or ()), *(() if compressor is None else (compressor,))]:
        if not isinstance(step, dict) or not isinstance(step.get("id"), str):
            raise MalformedFile("a filter or the compressor is no object with an id")
        found.append((step["id"], {name: value for name, value in step.items() if name != "id"}))
    return found


def _plain_serializer(dtype: np.dtype[Any]) -> Json:
    if dtype.kind == "O":
        raise Unsupported("the values are Python objects, and the codec for them has no counterpart in Zarr version 3")
    return encode_serializer(dtype)


def _dtype_after(name: str, settings: Mapping[str, Json], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of what a filter gives when it is given elements of `dtype`."""
    told = settings.get(_ARRAY_FILTERS[name] or "")
    after = dtype if told is None else decode_dtype_v2(told)
    if name == "quantize" and after != dtype:  # zarr does not notice, and reads the one for the other
        raise Unsupported(f'codec "{name}" has no counterpart in Zarr version 3 when it changes the type')
    return after


def _decode_codec(name: str, settings: dict[str, Any], dtype: np.dtype[Any]) -> Json:
    """Return the codec from bytes to bytes: Zarr's own where it does the same, else that of numcodecs or h5zarr."""
    match name, settings:
        case "gzip", {"level": int(level)} if len(settings) == 1 and 0 <= level <= 9:
            return {"name": "gzip", "configuration": {"level": level}}
        case "zstd", {"level": int(level), **rest} if level <= 22 and rest.get("checksum", False) in (False, True):
            if rest.keys() <= {"checksum"}:
                return {"name": "zstd", "configuration": {"level": level, "checksum": bool(rest.get("checksum"))}}
        case "blosc", {"cname": str(cname), "clevel": int(clevel), "shuffle": int(shuffle), "blocksize": int(size)}:
            if cname in _BLOSC_COMPRESSORS and -1 <= shuffle <= 2:
                return _decode_blosc(cname, clevel, shuffle, size, dtype)
    return {"name": name if name.startswith(_OWN) else f"{_OF_NUMCODECS}{name}", "configuration": settings}


def _decode_blosc(cname: str, clevel: int, shuffle: int, blocksize: int, dtype: np.dtype[Any]) -> Json:
    """Return Zarr's Blosc, which is told the size of an element, and does not choose how to shuffle."""
    typesize = dtype.itemsize if dtype.kind != "O" and 0 < dtype.itemsize < 256 else 1
    if shuffle == _BLOSC_AUTOMATIC:
        shuffle = 2 if typesize == 1 else 1
    settings = {"cname": cname, "clevel": clevel, "shuffle": _BLOSC_SHUFFLES[shuffle]}
    return {"name": "blosc", "configuration": {"typesize": typesize, **settings, "blocksize": blocksize}}


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
