"""Missing data: the CF attribute `_FillValue`, in the form that xarray reads from Zarr.

It says which values mean "no data", and is never mixed up with Zarr's `fill_value`: what unwritten chunks read as.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.encode.data_types import encode_double
from h5zarr.hierarchy import Json
from h5zarr.tree import AttributeValue


class NotAFillValue(Exception):
    """The attribute cannot stand for missing data in a variable of its type. Whoever asked leaves it out."""


def encode_missing(value: AttributeValue, dtype: np.dtype[Any], unsigned: AttributeValue | None = None) -> Json:
    """Return `_FillValue`, cast to the variable's type first, in xarray's form; raises NotAFillValue with the reason.

    `unsigned` is the attribute `_Unsigned`: with it the value may be given as the number that it stands for.
    """
    if dtype.kind not in "biufc":
        raise NotAFillValue(f"readers cannot mask values of type {describe(dtype)}")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
        raise NotAFillValue(f"it is no number, but the values are {describe(dtype)}")
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


def describe(dtype: np.dtype[Any]) -> str:
    """Return a name for a type that users know."""
    if dtype.kind == "O":
        return "text"
    if dtype.kind == "S":
        return f"text of {dtype.itemsize} bytes"
    if dtype.kind == "U":
        return f"text of {dtype.itemsize // 4} characters"
    return "records" if dtype.names is not None else dtype.name


def _encode_integer(element: Any, dtype: np.dtype[Any], unsigned: AttributeValue | None) -> int:
    if element.dtype.kind == "c" or not math.isfinite(element) or int(element) != element:
        raise NotAFillValue(f"it is no integer, but the values are {describe(dtype)}")
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
    """Return the element in the variable's type: a double 1e20 would mask no float32 1e20."""
    if element.dtype.type is dtype.type:
        return element
    with np.errstate(over="ignore"):
        cast = element.astype(dtype.newbyteorder("="))
    if np.isfinite(element) and not np.isfinite(cast):
        raise NotAFillValue(f"it is outside the range of {describe(dtype)}")
    return cast
