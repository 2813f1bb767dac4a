"""Zarr codecs: the mapping from HDF5 filters to codecs and back, and the codecs that readers know.

A filter becomes a codec of Zarr or numcodecs if that reads the same bytes, so references need h5zarr only for the other
filters. `filters/table.py` has the mapping of each filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from h5zarr.errors import MalformedFile, Unrepresentable
from h5zarr.filters.pipeline import Applied, unknown_filter
from h5zarr.filters.table import FilterKind, find_kind, find_kind_by_codec, find_kind_by_name
from h5zarr.filters.toolkit import OWN_CODEC, Codec
from h5zarr.zarr_model.data_types import ByteOrder
from h5zarr.zarr_model.grid import decode_lengths
from h5zarr.zarr_model.hierarchy import Json

ELEMENTS_CODEC = "h5zarr.elements"
CROP_CODEC = "h5zarr.crop"
TRANSPOSE_CODEC = "transpose"
NUMCODECS_PREFIX = "numcodecs."


def byte_order(codecs: Sequence[Json]) -> ByteOrder:
    """Return the byte order of the `bytes` codec, as numpy writes it; "=" if there is no such codec."""
    for codec in codecs:
        if codec["name"] == "bytes":
            return ">" if codec.get("configuration", {}).get("endian") == "big" else "<"
    return "="


def encode_crop(stored_shape: Sequence[int]) -> Json:
    """Return the codec for chunks that are stored with a larger shape than the grid gives them. It is the first one.

    HDF5 stores every chunk in full, also the last one of a file. Joined with those of other files, that chunk is in the
    middle of an array, where the grid leaves no room for elements past the end of the file.
    """
    return {"name": CROP_CODEC, "configuration": {"stored_shape": list(stored_shape)}}


def split_crop(codecs: Sequence[Json], rank: int) -> tuple[tuple[int, ...] | None, Sequence[Json]]:
    """Return the shape in which all chunks are stored, and the codecs that follow. None: chunks are as in the grid."""
    if not codecs or codecs[0]["name"] != CROP_CODEC:
        return None, codecs
    stored_shape = decode_lengths(codecs[0].get("configuration", {}).get("stored_shape"))
    if stored_shape is None or len(stored_shape) != rank or 0 in stored_shape:
        raise MalformedFile(f"stored_shape of codec {CROP_CODEC} does not have {rank} positive lengths")
    return stored_shape, codecs[1:]


def split_transpose(codecs: Sequence[Json], rank: int) -> tuple[tuple[int, ...], Sequence[Json]]:
    """Return the order in which the dimensions of chunks are stored, and the codecs after `transpose`, if there is one.

    Dimension i of a stored chunk is dimension `order[i]` of the array.
    """
    if not codecs or codecs[0]["name"] != TRANSPOSE_CODEC:
        return tuple(range(rank)), codecs
    order = decode_lengths(codecs[0].get("configuration", {}).get("order"))
    if order is None or sorted(order) != list(range(rank)):
        raise MalformedFile(f"order of codec {TRANSPOSE_CODEC} does not name each of {rank} dimensions once")
    return order, codecs[1:]


def add_dimensions(codecs: Sequence[Json], rank: int, count: int) -> tuple[Json, ...]:
    """Return the codecs of an array of this rank after it got `count` leading dimensions, with chunks of length 1."""
    stored_shape, rest = split_crop(codecs, rank)
    order, rest = split_transpose(rest, rank)
    made = transpose_codecs((*range(count), *[count + axis for axis in order]), rest)
    return made if stored_shape is None else (encode_crop((1,) * count + stored_shape), *made)


def transpose_codecs(order: Sequence[int], codecs: Sequence[Json]) -> tuple[Json, ...]:
    """Return the codecs of chunks whose dimensions are stored in this order; see `split_transpose`."""
    if list(order) == sorted(order):
        return tuple(codecs)
    return ({"name": TRANSPOSE_CODEC, "configuration": {"order": list(order)}}, *codecs)


# --- from filters to codecs


def encode_filters(filters: Sequence[Applied], *, nbytes: int) -> tuple[Codec, ...]:
    """Return the codecs for a whole pipeline, in the order of writing, which is also Zarr's order.

    `nbytes` is the size of an unfiltered chunk. Raises `Unsupported` if one of the filters has no codec.
    """
    codecs = []
    known_nbytes: int | None = nbytes
    for one in filters:
        codec = encode_filter(one, nbytes=known_nbytes)
        if codec is not None:
            codecs.append(codec)
        kind = find_kind(one.number)
        added = None if kind is None else kind.added_nbytes
        known_nbytes = None if known_nbytes is None or added is None else known_nbytes + added
    return tuple(codecs)


def encode_filter(filter: Applied, *, nbytes: int | None) -> Codec | None:
    """Return the codec of one filter as Zarr v3 metadata has it, or None if reading needs no codec.

    `nbytes` is the size of the filter's input: that of a chunk for the first filter, None after a compressor.
    """
    kind = find_kind(filter.number)
    if kind is None:
        raise unknown_filter(filter)
    return kind.to_codec(filter.values, nbytes)


# --- from codecs to filters


@dataclass(frozen=True, slots=True)
class CodecFilter:
    """The HDF5 filter that is equivalent to a codec: its number, the name of the codec, and client data."""

    number: int
    name: str
    values: tuple[int, ...]


def find_filter(codec: Json) -> CodecFilter:
    """Return the HDF5 filter that decodes the bytes of `codec`. Raises Unrepresentable if there is none."""
    name, configuration, kind = codec["name"], codec.get("configuration", {}), _kind_of(codec)
    if kind is None:
        raise Unrepresentable(f"codec {own_codec_label(codec) or name} is not the codec of an HDF5 filter")
    if name == OWN_CODEC:
        settings = {key: value for key, value in configuration.items() if key != "filter"}
        return CodecFilter(kind.number, name, kind.settings(**settings).to_values())
    return CodecFilter(kind.number, name, kind.from_codec(configuration))


def _kind_of(codec: Json) -> FilterKind | None:
    """Return the filter that reads the bytes of a codec."""
    name = codec["name"]
    if name == OWN_CODEC:
        return find_kind_by_name(str(codec.get("configuration", {}).get("filter")))
    return find_kind_by_codec(name)


def find_similar_filter(codec: Json) -> CodecFilter | None:
    """Return the HDF5 filter with the same method and level as `codec`, which may differ in framing; None if unknown.

    Use it to describe how data are compressed, not to decode them.
    """
    if not isinstance(codec, Mapping):
        return None
    name = str(codec.get("name", ""))
    name = _SIMILAR.get(name.removeprefix(NUMCODECS_PREFIX), name)
    try:
        return find_filter({**codec, "name": name})
    except (Unrepresentable, AttributeError, KeyError, TypeError, ValueError):
        return None


_SIMILAR = {"gzip": "numcodecs.zlib", "zstd": "zstd", "blosc": "blosc"}


# --- known codecs


class CodecKind(Enum):
    """The input and output of a codec when chunks are written."""

    ARRAY_ARRAY = "array -> array"
    ARRAY_BYTES = "array -> bytes"
    BYTES_BYTES = "bytes -> bytes"


NUMCODECS = {
    **dict.fromkeys(("astype", "bitround", "delta", "fixedscaleoffset", "packbits", "quantize"), CodecKind.ARRAY_ARRAY),
    **dict.fromkeys(("pcodec", "zfpy"), CodecKind.ARRAY_BYTES),
    **dict.fromkeys(
        (
            *("adler32", "blosc", "bz2", "crc32", "crc32c", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma"),
            *("shuffle", "zlib", "zstd"),
        ),
        CodecKind.BYTES_BYTES,
    ),
}
_CORE = {
    **dict.fromkeys((TRANSPOSE_CODEC, "bitround", "cast_value", "reshape", "scale_offset"), CodecKind.ARRAY_ARRAY),
    **dict.fromkeys(
        ("bytes", "sharding_indexed", "vlen-utf8", "vlen-bytes", "packbits", "zfp", "n5_default"), CodecKind.ARRAY_BYTES
    ),
    **dict.fromkeys(("blosc", "crc32c", "gzip", "zstd"), CodecKind.BYTES_BYTES),
}
_OWN = (OWN_CODEC, ELEMENTS_CODEC, CROP_CODEC)
_OWN_IN_V2 = (OWN_CODEC, ELEMENTS_CODEC)  # version 2 has regular grids only
_IDS_V2 = frozenset(
    {
        *NUMCODECS,
        *("base64", "categorize", "json2", "json", "msgpack2", "msgpack", "n5_wrapper", "pickle", "zlib"),
        *("vlen-array", "vlen-bytes", "vlen-utf8"),
    }
)


def codec_kind(name: str) -> CodecKind | None:
    """Return the kind of a Zarr v3 codec; None if neither Zarr, numcodecs, h5zarr nor an installed filter has it."""
    if name in _CORE:
        return _CORE[name]
    if name.startswith(NUMCODECS_PREFIX):
        return NUMCODECS.get(name.removeprefix(NUMCODECS_PREFIX))
    if name == CROP_CODEC:
        return CodecKind.ARRAY_ARRAY
    return CodecKind.BYTES_BYTES if name in _OWN or find_kind_by_codec(name) is not None else None


def is_known_v2(codec_id: str) -> bool:
    """Return whether numcodecs, h5zarr or an installed filter has a Zarr v2 codec with this id."""
    return codec_id in _IDS_V2 or is_same_in_v2(codec_id)


def is_same_in_v2(name: str) -> bool:
    """Return whether a codec has the same name and configuration in Zarr v2 and v3: one of h5zarr or its plugins."""
    if name in _OWN_IN_V2:
        return True
    if name == CROP_CODEC or name in _CORE or name in _IDS_V2 or name.startswith(NUMCODECS_PREFIX):
        return False
    return find_kind_by_codec(name) is not None


def unknown_filter_of(name: str, configuration: Mapping[str, Any]) -> str | None:
    """Return the filter that a codec `h5zarr.filter` needs, if no installed package has it; else None."""
    if name != OWN_CODEC:
        return None
    filter_name = str(configuration.get("filter"))
    return None if find_kind_by_name(filter_name) is not None else filter_name


# --- h5zarr's own codecs


def is_own(name: str) -> bool:
    """Return whether a codec comes with h5zarr."""
    return name in _OWN


def own_codec_label(codec: Codec) -> str | None:
    """Return the codec's name, with the filter if it has one: `h5zarr.filter (szip)`; None for codecs of others."""
    if codec["name"] not in _OWN:
        return None
    filter_name = codec.get("configuration", {}).get("filter")
    return codec["name"] if filter_name is None else f"{codec['name']} ({filter_name})"


def needed_package(codec: Codec) -> str:
    """Return the optional package that decoding needs; "" if none."""
    kind = _kind_of(codec)
    return "" if kind is None else kind.package


def is_compressing(codec: Codec) -> bool:
    """Return whether a codec may change the size of a chunk, checksums aside."""
    if codec["name"] in ("bytes", "vlen-utf8", ELEMENTS_CODEC, CROP_CODEC, TRANSPOSE_CODEC):
        return False
    kind = _kind_of(codec)
    return kind is None or kind.added_nbytes is None
