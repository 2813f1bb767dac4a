"""Interpret attribute values as text, numbers, records, or sequences of these, as netCDF users see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.cursor import text
from h5zarr.hdf5.datatype import (
    Array,
    Compound,
    Datatype,
    FixedPoint,
    FloatingPoint,
    Reference,
    String,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.model import Attribute, H5File
from h5zarr.hdf5.numpy_values import plain_dtype
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference, RegionReference
from h5zarr.netcdf4.element_forms import interpret_element, is_boolean, is_complex
from h5zarr.tree import AttributeValue

_NUMBERS = (FixedPoint, FloatingPoint)
_TEXTS = (String, VariableLengthString)


def interpret_attribute(attribute: Attribute, file: H5File) -> AttributeValue:
    """Return the value of an attribute.

    For a null dataspace it is "", an empty list or an empty array, as in netCDF4.
    """
    datatype, values = attribute.datatype, attribute.value
    if isinstance(datatype, _TEXTS):
        if values is None:
            return "" if isinstance(datatype, String) else []
        if values.size == 1:
            return _text(values.item())
    elif values is None:
        return np.empty(0, plain_dtype(datatype) if isinstance(datatype, _NUMBERS) else None)
    elif isinstance(datatype, _NUMBERS):
        return values
    return _interpret(datatype, values, file)


def _interpret(datatype: Datatype, values: npt.NDArray[Any], file: H5File) -> AttributeValue:
    match datatype:
        case String() | VariableLengthString():
            return _each(values, _text)
        case Reference():
            return _each(values, lambda reference: path_of(reference, file))
        case VariableLengthSequence(base=base):
            return _each(values, lambda element: _interpret(base, element, file))
        case Array(base=base):
            return _interpret(base, values, file)
        case Compound(members=members):
            if is_complex(datatype):
                form = interpret_element(datatype).dtype
                return values.view(form) if values.dtype.itemsize == form.itemsize else values
            if values.ndim:
                return [_interpret(datatype, element, file) for element in values]
            record = values[()]
            return {
                member.name: _interpret(member.datatype, np.asarray(record[member.name]), file) for member in members
            }
    return values.astype(bool) if is_boolean(datatype) else values


def path_of(reference: ObjectReference | RegionReference | AttributeReference, file: H5File) -> str:
    """Return the path that a reference points to, or "" for a null reference."""
    if not isinstance(reference, ObjectReference):
        reference = reference.target
    return file.path_of(reference) or ""


def _text(content: Any) -> str:
    return text(bytes(content).rstrip(b"\0"))


def _each(values: npt.NDArray[Any], interpret: Callable[[Any], AttributeValue]) -> AttributeValue:
    """Apply `interpret` to each element. Returns one value, or nested lists in the shape of `values`."""
    if values.ndim == 0:
        return interpret(values[()])
    return [_each(part, interpret) if values.ndim > 1 else interpret(part) for part in values]
