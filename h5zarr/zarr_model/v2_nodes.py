"""Encode and decode the metadata documents of Zarr version 2, with xarray's conventions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from h5zarr.errors import H5ZarrError, MalformedFile, Problem, Unsupported
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import BYTES, OBJECT, decode_data_type, encode_dtype, encode_serializer
from h5zarr.zarr_model.grid import decode_regular
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.zarr_model.metadata import ArrayMetadata, EncodedNode, decode_attributes, decode_names
from h5zarr.zarr_model.record import encode_group
from h5zarr.zarr_model.v2_codecs import codec_ids, decode_codecs_v2, encode_codecs_v2
from h5zarr.zarr_model.v2_fill import decode_fill_v2, encode_fill_v2
from h5zarr.zarr_model.v2_types import decode_dtype_v2, encode_dtype_v2
from h5zarr.zarr_model.vlen_text import encode_texts

_DIMENSIONS = "_ARRAY_DIMENSIONS"
_OBJECT_TYPES = {"vlen-utf8": "string", "vlen-bytes": BYTES}
_MASK = "Mask these values yourself, if the data need it."
_WRITE_V3 = "Write Zarr version 3 references, which can hold it."
_JSON = "json2"


def encode_v2(hierarchy: Hierarchy, *, joinable: bool = False) -> tuple[Mapping[str, EncodedNode], tuple[Problem, ...]]:
    """Return the nodes of `hierarchy` by path, and a problem for each node that version 2 cannot represent."""
    nodes: dict[str, EncodedNode] = {}
    problems: tuple[Problem, ...] = ()
    for path, node in hierarchy.nodes.items():
        try:
            nodes[path] = _encode_group(node) if isinstance(node, GroupNode) else _encode_array(node, joinable)
        except H5ZarrError as error:
            problems += (Problem(path, error.kind, str(error), error.remedy or _WRITE_V3),)
    return nodes, problems


def _encode_group(node: GroupNode) -> EncodedNode:
    return EncodedNode({".zgroup": {"zarr_format": 2}, ".zattrs": encode_group(node)})


def _encode_array(node: ArrayNode, joinable: bool) -> EncodedNode:
    filters = encode_codecs_v2(node.codecs)
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    filled = encode_fill_v2(node, dtype, joinable=joinable)
    metadata = {
        "zarr_format": 2,
        "shape": node.shape,
        "chunks": node.chunk_shape,
        "dtype": encode_dtype_v2(dtype),
        "compressor": None,
        "fill_value": filled.fill_value,
        "order": "C",
        "filters": filters,
        "dimension_separator": ".",
    }
    attributes = {**filled.attributes, _DIMENSIONS: node.dimension_names}
    return EncodedNode({".zarray": metadata, ".zattrs": attributes}, filled.manifest)


def decode_array_v2(path: str, metadata: Mapping[str, Json], attributes: Json) -> ArrayMetadata:
    """Return the array at `path` from .zarray and .zattrs. Raises MalformedFile or Unsupported."""
    grid = decode_regular(metadata.get("shape"), metadata.get("chunks"))
    rank = len(grid.shape)
    if metadata.get("order", "C") not in ("C", "F"):
        raise MalformedFile("the order of elements is neither C nor F")
    dtype = decode_dtype_v2(metadata.get("dtype"))
    is_json = dtype == OBJECT and codec_ids(metadata) == [_JSON]
    codecs = (encode_serializer(dtype),) if is_json else decode_codecs_v2(metadata, dtype, rank)
    own = decode_attributes(attributes)
    fill = decode_fill_v2(metadata.get("fill_value"), dtype, own, is_mask=_DIMENSIONS in own)
    return ArrayMetadata(
        grid=grid,
        data_type=_encode_type(dtype, codecs),
        codecs=codecs,
        fill_value=fill.fill_value,
        dimension_names=decode_names(own.get(_DIMENSIONS), rank),
        attributes={name: value for name, value in fill.attributes.items() if name != _DIMENSIONS},
        is_unfilled=metadata.get("fill_value") is None,
        keys=KeyLayout(path, "", _decode_separator(metadata), rank),
        convert=partial(_convert_texts, chunk_shape=grid.chunk_shape) if is_json else None,
        warnings=() if fill.left_out is None else (Problem(path, "fill value", fill.left_out, _MASK),),
    )


def _encode_type(dtype: np.dtype[Any], codecs: tuple[Json, ...]) -> Json:
    """Return the data type of version 3. In version 2, the codec implies the type of variable-length elements."""
    if dtype == OBJECT:
        return next(_OBJECT_TYPES[codec["name"]] for codec in codecs if codec["name"] in _OBJECT_TYPES)
    if dtype.kind == "U":  # only other tools write these
        return {"name": "fixed_length_utf32", "configuration": {"length_bytes": dtype.itemsize}}
    return encode_dtype(dtype)


def _decode_separator(metadata: Mapping[str, Json]) -> str:
    separator = metadata.get("dimension_separator") or "."
    if separator not in ("/", "."):
        raise MalformedFile("the separator in chunk keys is neither a slash nor a dot")
    return str(separator)


def _convert_texts(content: bytes, chunk_shape: tuple[int, ...]) -> bytes:
    """Convert a chunk from the codec `json2` to `vlen-utf8`.

    kerchunk inlines variable-length text with the numcodecs codec `json2`, which version 3 lacks. Such a chunk is a
    list of the values, the type and the shape.

    Raises Unsupported unless every element is text.
    """
    try:
        items = json.loads(content.decode())
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list) or len(items) < 2 or items[-1] != list(chunk_shape):
        raise Unsupported(f'a chunk in the codec "{_JSON}" does not have the chunk shape')
    texts = list(_leaves(items[:-2], chunk_shape or (1,)))
    if not all(isinstance(text, str) for text in texts):
        raise Unsupported(f'some values in the codec "{_JSON}" are not text; Zarr version 3 has no type for them')
    array = np.empty(len(texts), object)
    array[:] = texts
    try:
        return encode_texts(array)
    except UnicodeEncodeError:
        raise Unsupported(f'the text in the codec "{_JSON}" is not valid Unicode') from None


def _leaves(items: Json, shape: tuple[int, ...]) -> Iterator[Json]:
    """Yield the elements of nested lists, in order. Raises Unsupported unless the lists have this shape."""
    if not isinstance(items, list) or len(items) != shape[0]:
        raise Unsupported(f'a chunk in the codec "{_JSON}" does not have the chunk shape')
    if len(shape) == 1:
        yield from items
        return
    for item in items:
        yield from _leaves(item, shape[1:])
