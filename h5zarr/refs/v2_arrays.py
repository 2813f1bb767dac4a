"""An array as Zarr version 2 metadata describe it, in the terms of version 3."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from h5zarr.encode.data_types import encode_dtype, encode_serializer
from h5zarr.errors import MalformedFile, Problem
from h5zarr.hierarchy import Json
from h5zarr.refs.array_metadata import ArrayMetadata, decode_attributes, decode_names, decode_shapes
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.v2_codecs import codec_ids, decode_codecs_v2
from h5zarr.refs.v2_fill import decode_fill_v2
from h5zarr.refs.v2_objects import CODEC, convert_texts
from h5zarr.refs.v2_types import OBJECT, decode_dtype_v2

_DIMENSIONS = "_ARRAY_DIMENSIONS"
_OBJECT_TYPES = {"vlen-utf8": "string", "vlen-bytes": "variable_length_bytes"}
_REMEDY = "Mask these values yourself, if the data need it."


def decode_array_v2(path: str, metadata: Mapping[str, Json], attributes: Json) -> ArrayMetadata:
    """Return the array at `path`, of .zarray and .zattrs. Raises MalformedFile or Unsupported if they do not tell how
    to read it.
    """
    shape, chunk_shape = decode_shapes(metadata.get("shape"), metadata.get("chunks"))
    if metadata.get("order", "C") not in ("C", "F"):
        raise MalformedFile("the order of elements is neither C nor F")
    dtype = decode_dtype_v2(metadata.get("dtype"))
    is_json = dtype == OBJECT and codec_ids(metadata) == [CODEC]
    codecs = (encode_serializer(dtype),) if is_json else decode_codecs_v2(metadata, dtype, len(shape))
    told = decode_attributes(attributes)
    fill = decode_fill_v2(metadata.get("fill_value"), dtype, told, is_mask=_DIMENSIONS in told)
    return ArrayMetadata(
        shape=shape,
        data_type=_encode_type(dtype, codecs),
        chunk_shape=chunk_shape,
        codecs=codecs,
        fill_value=fill.fill_value,
        dimension_names=decode_names(told.get(_DIMENSIONS), len(shape)),
        attributes={name: value for name, value in fill.attributes.items() if name != _DIMENSIONS},
        is_unfilled=metadata.get("fill_value") is None,
        keys=KeyLayout(path, "", _decode_separator(metadata), len(shape)),
        convert=partial(convert_texts, chunk_shape=chunk_shape) if is_json else None,
        warnings=() if fill.left_out is None else (Problem(path, "fill value", fill.left_out, _REMEDY),),
    )


def _encode_type(dtype: np.dtype[Any], codecs: tuple[Json, ...]) -> Json:
    """Return the type as version 3 names it. That of elements of any length, version 2 leaves to the codec."""
    if dtype == OBJECT:
        return next(_OBJECT_TYPES[codec["name"]] for codec in codecs if codec["name"] in _OBJECT_TYPES)
    if dtype.kind == "U":  # of which h5zarr itself writes none
        return {"name": "fixed_length_utf32", "configuration": {"length_bytes": dtype.itemsize}}
    return encode_dtype(dtype)


def _decode_separator(metadata: Mapping[str, Json]) -> str:
    separator = metadata.get("dimension_separator") or "."
    if separator not in ("/", "."):
        raise MalformedFile("the separator in chunk keys is neither a slash nor a dot")
    return str(separator)
