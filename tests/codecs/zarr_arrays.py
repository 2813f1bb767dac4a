"""Open a stored chunk with zarr, as the only chunk of a v3 or v2 array."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

DATA_TYPES = {
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "i4": "int32",
    "f4": "float32",
    "f8": "float64",
}


def read_v3(content: bytes, codecs: Sequence[dict[str, Any]], dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return what zarr reads from the chunk: the bytes of the array, in the byte order of the chunk."""
    endian = "big" if dtype.str[0] == ">" else "little"
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type(dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0 if dtype.names is None else base64.b64encode(bytes(dtype.itemsize)).decode(),
        "codecs": [{"name": "bytes", "configuration": {"endian": endian}}, *codecs],
        "attributes": {},
        "dimension_names": None,
    }
    return _read({"zarr.json": metadata}, "/".join(("c", *"0" * len(shape))), content, dtype)


def read_v2(content: bytes, codecs: Sequence[dict[str, Any]], dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return what zarr reads from the chunk of a v2 array."""
    metadata = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": shape,
        "dtype": dtype.str,
        "fill_value": 0,
        "order": "C",
        "compressor": None,
        "filters": list(codecs),
    }
    return _read({".zarray": metadata, ".zattrs": {}}, ".".join("0" * len(shape)), content, dtype)


def v2_of(codec: dict[str, Any]) -> dict[str, Any]:
    """Return the numcodecs form of a codec."""
    return {"id": codec["name"].removeprefix("numcodecs."), **codec["configuration"]}


def data_type(dtype: np.dtype) -> Any:
    if dtype.names is None:
        return DATA_TYPES[dtype.str[1:]]
    fields = [[name, DATA_TYPES[dtype[name].str[1:]]] for name in dtype.names]
    return {"name": "structured", "configuration": {"fields": fields}}


def _read(documents: dict[str, Any], key: str, content: bytes, dtype: np.dtype) -> bytes:
    buffer = default_buffer_prototype().buffer
    stored = {name: buffer.from_bytes(json.dumps(document).encode()) for name, document in documents.items()}
    store = MemoryStore(store_dict={**stored, key: buffer.from_bytes(content)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about numcodecs' names and structured types, which are not ours
        return np.asarray(zarr.open_array(store, mode="r")[...]).astype(dtype).tobytes()
