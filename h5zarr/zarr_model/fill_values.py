"""Fill values: one element of an array as JSON, and back. Floats keep every bit in version 3.

Unwritten chunks read as the fill value. It does not mark missing data; `missing.py` handles that.
"""

from __future__ import annotations

import math
import operator
from base64 import b64decode, b64encode
from collections.abc import Mapping
from types import UnionType
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.data_types import describe
from h5zarr.zarr_model.hierarchy import Json

_CANONICAL_NAN = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}
# The JSON types of `fill_value` in version 2, by numpy kind. Readers convert numbers to text for text arrays.
_FORMS: Mapping[str, type | UnionType] = {
    "b": int,
    "i": int | float,
    "u": int | float,
    "f": int | float | str,
    "c": list,
    "m": int | str,
    "M": int | str,
    "S": str,
    "V": str,
    "U": str,
    "O": str | int | float,
}


def encode_fill(dtype: np.dtype[Any], fill: npt.NDArray[Any] | None) -> Json:
    """Return the JSON form of one element; None means the type's zero. Floats keep every bit."""
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


def decode_element(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the element that a `fill_value` of version 3 represents."""
    if dtype.kind == "O":
        return np.array(value, object)
    if dtype.kind == "f":
        return _decode_float(value, dtype)
    if dtype.kind == "c":
        half = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
        return np.array([_decode_float(part, half) for part in value], half).view(dtype).reshape(())
    if dtype.kind in "mM":
        number = np.iinfo(np.int64).min if value == "NaT" else operator.index(value)
        return np.array(number, f"{dtype.str[0]}i8").view(dtype)
    if dtype.kind in "SV":
        return np.frombuffer(b64decode(value).ljust(dtype.itemsize, b"\0"), dtype, 1).reshape(())
    return np.array(value, dtype)


def decode_fill(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the element that a `fill_value` of either version represents.

    Raises MalformedFile if it does not fit the type.
    """
    is_of_kind = isinstance(value, _FORMS[dtype.kind])
    try:
        if not is_of_kind:
            raise TypeError("it has another type")
        if dtype.kind in "biu":
            if value != int(value) or (dtype.kind == "b" and value not in (0, 1)):
                raise ValueError("it is outside the range")
            value = int(value)
        if dtype.kind in "SV" and len(b64decode(value, validate=True)) > dtype.itemsize:
            raise ValueError("it is too long")
        if dtype.kind == "U" and len(value) > dtype.itemsize // 4:
            raise ValueError("it is too long")
        with np.errstate(over="ignore"):
            element = decode_element(str(value) if dtype.kind == "O" else value, dtype)
        if dtype.kind == "f" and np.isinf(element) and not isinstance(value, str) and np.isfinite(value):
            raise ValueError("it is outside the range")
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedFile(f"the fill value does not fit the type {describe(dtype)}: {error}") from None
    return element


def _decode_float(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a float from a number, a word such as "NaN", or its bits in hexadecimal."""
    if isinstance(value, str) and value.startswith("0x"):
        bits = bytes.fromhex(value[2:])
        if len(bits) != dtype.itemsize:
            raise ValueError(f"it has {len(bits)} bytes instead of {dtype.itemsize}")
        return np.frombuffer(bits, dtype.newbyteorder(">"), 1).astype(dtype).reshape(())
    return np.array(float(value), dtype)


def encode_element_v2(element: npt.NDArray[Any]) -> Json:
    """Return a number as `fill_value` of version 2."""
    if element.dtype.kind == "c":
        return [_encode_word(float(element.real)), _encode_word(float(element.imag))]
    return _encode_word(float(element)) if element.dtype.kind == "f" else element.item()


def _encode_word(number: float) -> Json:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
