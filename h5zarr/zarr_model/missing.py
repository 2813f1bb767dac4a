"""Missing data: the CF attribute `_FillValue`, in the form that xarray reads from Zarr.

It says which values mean "no data". Zarr's `fill_value` is something else: the value of unwritten chunks.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.tree import AttributeValue
from h5zarr.zarr_model.data_types import COMPLEX, FLOATS, INTEGERS, DataType, describe
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import base64_nbytes

FILL_VALUE = "_FillValue"
_COVERED = {"bool", *INTEGERS, *FLOATS, "bytes", "string"}  # types in the `_FillValue` extension of Zarr version 3
_DOUBLE_NBYTES = 8


class NotAFillValue(Exception):
    """The attribute cannot mark missing data in a variable of this type. Callers leave it out."""


def encode_missing(value: AttributeValue, dtype: np.dtype[Any], unsigned: AttributeValue | None = None) -> Json:
    """Return `_FillValue`, cast to the variable's type, in xarray's form. Raises NotAFillValue with the reason.

    `unsigned` is the attribute `_Unsigned`. If it is set, the value may be given with the other signedness.
    """
    if dtype.kind not in "biufc":
        raise NotAFillValue(f"readers cannot mask values of type {describe(dtype)}")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
        raise NotAFillValue(f"it is not a number, but the values are {describe(dtype)}")
    if value.size != 1:
        raise NotAFillValue(f"it has {value.size} elements instead of one")
    element = value.reshape(-1)[0]
    if dtype.kind in "iu":
        return _encode_integer(element, dtype, unsigned)
    if element.dtype.kind == "c" and dtype.kind != "c":
        raise NotAFillValue(f"it is a complex number, but the values are {describe(dtype)}")
    if dtype.kind == "b":
        if element not in (0, 1):
            raise NotAFillValue(f"it is outside the range of {describe(dtype)}")
        return bool(element)
    cast = _cast_float(element, dtype)
    return [encode_double(cast.real), encode_double(cast.imag)] if dtype.kind == "c" else encode_double(float(cast))


def _encode_integer(element: Any, dtype: np.dtype[Any], unsigned: AttributeValue | None) -> int:
    if element.dtype.kind == "c" or not math.isfinite(element) or int(element) != element:
        raise NotAFillValue(f"it is not an integer, but the values are {describe(dtype)}")
    number, limits = int(element), np.iinfo(dtype)
    if isinstance(unsigned, str) and not limits.min <= number <= limits.max:
        nbits = 8 * dtype.itemsize
        if unsigned.lower() == "true" and dtype.kind == "i" and 0 <= number < 1 << nbits:
            number -= 1 << nbits
        elif unsigned.lower() == "false" and dtype.kind == "u" and -(1 << nbits - 1) <= number < 0:
            number += 1 << nbits
    if not limits.min <= number <= limits.max:
        raise NotAFillValue(f"it is outside the range of {describe(dtype)}, which is {limits.min} to {limits.max}")
    return number


def _cast_float(element: npt.NDArray[Any], dtype: np.dtype[Any]) -> Any:
    """Return the element in the variable's type, because the double 1e20 does not equal the float32 1e20."""
    if element.dtype.type is dtype.type:
        return element
    with np.errstate(over="ignore"):
        cast = element.astype(dtype.newbyteorder("="))
    if np.isfinite(element) and not np.isfinite(cast):
        raise NotAFillValue(f"it is outside the range of {describe(dtype)}")
    return cast


def decode_missing(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Return the element that `_FillValue` of version 3 represents, or None if its form is unknown."""
    if value is None:
        return None
    try:
        if dtype.kind == "f":
            return np.array(_decode_double(value), dtype)
        if dtype.kind == "c":
            real, imaginary = map(_decode_double, value)
            return np.array(complex(real, imaginary), dtype)
        return np.array(value, dtype) if dtype.kind in "biu" else None
    except (ValueError, TypeError, OverflowError, struct.error):
        return None


def decode_missing_number(value: Json) -> Any:
    """Return the number that xarray stores as base64 of a double, as a list of two of those, or as a number."""
    if isinstance(value, str):
        return _decode_double(value)
    if isinstance(value, Sequence):
        real, imaginary = map(decode_missing_number, value)
        return complex(real, imaginary)
    return value


def is_covered(kind: DataType) -> bool:
    """Return whether `_FillValue` is defined for arrays of a type. xarray adds complex numbers to the extension."""
    return kind.name in _COVERED or kind.name in COMPLEX


def wrong_missing(value: Json, kind: DataType) -> str:
    """Return what is wrong with `_FillValue` for a data type; "" if nothing, or if the type is not covered."""
    if kind.name in FLOATS:
        return _wrong_double(value)
    if kind.name in COMPLEX:
        is_pair = isinstance(value, list) and len(value) == 2
        return _wrong_double(value[0]) or _wrong_double(value[1]) if is_pair else "it is not a list of two numbers"
    if kind.name == "bytes":
        return "" if base64_nbytes(value) is not None else "it is not text in base64"
    return kind.wrong(value) if kind.name in _COVERED else ""


def encode_double(value: float) -> str:
    """Return a float as xarray stores it in attributes: base64 of the eight bytes of a little-endian double."""
    return b64encode(struct.pack("<d", value)).decode()


def _decode_double(value: str) -> float:
    (number,) = struct.unpack("<d", b64decode(value, validate=True))
    return float(number)


def _wrong_double(value: Json) -> str:
    if base64_nbytes(value) == _DOUBLE_NBYTES:
        return ""
    return "it is not the base64 of the 8 bytes of a little-endian double, and xarray fails on it"
