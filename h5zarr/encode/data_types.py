"""Data types: numpy's as Zarr version 3 metadata, with the codec that reads their bytes, and fill values of each."""

from __future__ import annotations

import struct
from base64 import b64encode
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.hierarchy import Json

_PLAIN_NAMES = {
    np.dtype(name): name
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_TIMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}
_CANONICAL_NAN = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}


@lru_cache(maxsize=1024)
def encode_dtype(dtype: np.dtype[Any]) -> Json:
    """Return Zarr's name for a type; its byte order is told by the codec."""
    if (name := _PLAIN_NAMES.get(dtype.newbyteorder("="))) is not None:
        return name
    if dtype.kind == "O":
        return "string"
    if dtype.kind == "S":
        return {"name": "null_terminated_bytes", "configuration": {"length_bytes": dtype.itemsize}}
    if dtype.kind in _TIMES:
        unit, scale = np.datetime_data(dtype)
        return {"name": _TIMES[dtype.kind], "configuration": {"unit": unit, "scale_factor": scale}}
    if dtype.names is not None and dtype.fields is not None:
        fields = [[name, encode_dtype(dtype.fields[name][0])] for name in dtype.names]
        return {"name": "structured", "configuration": {"fields": fields}}
    if dtype.kind == "V":
        return {"name": "raw_bytes", "configuration": {"length_bytes": dtype.itemsize}}
    raise Unrepresentable(f"Zarr has no type for {dtype}")


@lru_cache(maxsize=1024)
def encode_serializer(dtype: np.dtype[Any]) -> Json:
    """Return the codec that turns an array of the type into bytes and back."""
    if dtype.kind == "O":
        return {"name": "vlen-utf8"}
    if dtype.names is None and (dtype.itemsize == 1 or dtype.kind in "SV"):
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "big" if dtype.byteorder == ">" else "little"}}


def encode_fill(dtype: np.dtype[Any], fill: npt.NDArray[Any] | None) -> Json:
    """Return the JSON form of one element; None stands for the type's zero. Floats keep every bit."""
    if dtype.kind == "O":
        return ""
    element = np.zeros((), dtype) if fill is None else np.asarray(fill, dtype)
    match dtype.kind:
        case "b":
            return bool(element)
        case "i" | "u":
            return int(element)
        case "f":
            return _encode_float(element)
        case "c":
            return [_encode_float(element.real), _encode_float(element.imag)]
        case "m" | "M":
            return int(element.astype(element.dtype.newbyteorder("=")).view(np.int64))
    return b64encode(element.tobytes()).decode()


def _encode_float(element: npt.NDArray[Any]) -> Json:
    """Return a number, a word for infinities and the usual NaN, or the bits of any other NaN."""
    if np.isfinite(element):
        return float(element)
    if np.isinf(element):
        return "Infinity" if element > 0 else "-Infinity"
    width = element.dtype.itemsize
    bits = int.from_bytes(element.astype(element.dtype.newbyteorder(">")).tobytes(), "big")
    return "NaN" if bits == _CANONICAL_NAN[width] else f"0x{bits:0{2 * width}x}"


def encode_double(value: float) -> str:
    """Return a float as xarray stores it in attributes: base64 of the eight bytes of a little-endian double."""
    return b64encode(struct.pack("<d", value)).decode()
