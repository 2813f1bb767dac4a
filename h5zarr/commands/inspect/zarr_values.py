"""Types, fill values and attributes of Zarr arrays, in the words for those of files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.inspect.inspected_references import InspectedArray
from h5zarr.commands.inspect.numpy_types import TEXT, datatype_of
from h5zarr.commands.inspect.types import type_name
from h5zarr.commands.inspect.values import as_array, value_text
from h5zarr.display import counted, quoted, readable, shortened
from h5zarr.errors import SURPRISES, H5ZarrError
from h5zarr.hdf5.datatype import Datatype, Enumeration
from h5zarr.hdf5.model import Attribute, Dataspace, SpaceKind
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.fill_values import decode_fill
from h5zarr.zarr_model.hierarchy import AttributeType, Json
from h5zarr.zarr_model.json_forms import named
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing_number

_FILL_LIMIT = 40


def dtype_of(array: InspectedArray) -> np.dtype[Any] | None:
    """Return the numpy type of the elements; None if h5zarr does not read the data type."""
    try:
        return decode_data_type(array.data_type, byte_order(array.codecs))
    except H5ZarrError:
        return None


def type_of(array: InspectedArray) -> Datatype | str:
    """Return the type of an array, or its name if HDF5 has no such type."""
    dtype = dtype_of(array)
    if dtype is None:
        found = named(array.data_type)
        return "unknown type" if found is None else readable(found[0])
    if dtype.kind == "O":
        return TEXT
    if dtype.kind == "S":
        return "char" if dtype.itemsize == 1 else f"string ({counted(dtype.itemsize, 'byte')})"
    if dtype.kind == "U":
        return f"string ({counted(dtype.itemsize // 4, 'character')})"
    datatype = datatype_of(dtype)
    if datatype is None or dtype.kind == "b":
        return readable(dtype.name)
    enumeration = array.record.form.enumeration
    if enumeration is not None and dtype.kind in "iu":
        return Enumeration(nbytes=dtype.itemsize, base=datatype, members=enumeration.members)
    return datatype


def type_text(array: InspectedArray) -> str:
    """Return the name of the type of an array."""
    found = type_of(array)
    return found if isinstance(found, str) else type_name(found)


def fill_element(array: InspectedArray) -> npt.NDArray[Any] | None:
    """Return the value of chunks that are missing; None if it cannot be decoded."""
    dtype = dtype_of(array)
    if dtype is None:
        return None
    try:
        return decode_fill(array.fill_value, dtype)
    except (H5ZarrError, *SURPRISES):
        return None


def fill_text(array: InspectedArray) -> str | None:
    """Return the value of missing chunks as text; None if it is zero or empty."""
    element = fill_element(array)
    if element is None:
        return shortened(readable(json.dumps(array.fill_value)), _FILL_LIMIT)
    kind = element.dtype.kind
    if kind == "O":
        return quoted(str(element)) if str(element) else None
    if not any(element.tobytes()):
        return None
    if kind == "f":
        return min(str(element), f"{float(element):.7g}", key=len)
    datatype = datatype_of(element.dtype)
    if kind == "S" or datatype is None:
        return quoted(str(element.astype(str))) if kind in "SU" else str(element)
    return value_text(element, datatype, limit=_FILL_LIMIT)


# --- attributes


def describe_attributes(
    attributes: Mapping[str, Json], types: Mapping[str, AttributeType], hidden: Collection[str] = ()
) -> dict[str, Attribute]:
    """Return the attributes of a group in the form used for HDF5. `types` are those that JSON does not show."""
    return {
        name: _attribute(name, *_decode(value, types.get(name)))
        for name, value in attributes.items()
        if name not in hidden
    }


def describe_array_attributes(array: InspectedArray, hidden: Collection[str] = ()) -> dict[str, Attribute]:
    """Return the attributes of an array in the form used for HDF5, with those that only the record holds."""
    record = array.record
    found = describe_attributes(array.attributes, record.types, hidden)
    for name, kept in record.withheld.items():
        found[name] = _attribute(name, *_decode(kept.value, kept.type))
    if (fill := record.fill_value) is not None:
        found[FILL_VALUE] = _attribute(FILL_VALUE, *_decode(fill.value, fill.type or record.types.get(FILL_VALUE)))
    elif FILL_VALUE in found:
        found[FILL_VALUE] = _attribute(FILL_VALUE, *_decode_missing(array))
    return found


def _attribute(name: str, value: npt.NDArray[Any], datatype: Datatype) -> Attribute:
    space = Dataspace(SpaceKind.SIMPLE if value.ndim else SpaceKind.SCALAR, value.shape)
    return Attribute(name=name, datatype=datatype, dataspace=space, value=value)


def _decode_missing(array: InspectedArray) -> tuple[npt.NDArray[Any], Datatype]:
    """Return `_FillValue`, which has the type of the array and may be in base64."""
    value, dtype = array.attributes[FILL_VALUE], dtype_of(array)
    try:
        if dtype is not None and dtype.kind in "biufc" and (datatype := datatype_of(dtype)) is not None:
            return np.asarray(decode_missing_number(value)).astype(dtype), datatype
    except (H5ZarrError, *SURPRISES):
        pass  # in references that others wrote; shown as it is
    return _decode(value, array.record.types.get(FILL_VALUE))


def _decode(value: Json, kind: AttributeType | None) -> tuple[npt.NDArray[Any], Datatype]:
    """Return a value as numpy array, and its type. What is neither text nor numbers is JSON text."""
    if isinstance(value, str) and kind is None:
        return as_array(_encode(value)), TEXT
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value) and kind is None:
        texts = np.empty(len(value), object)
        texts[:] = [_encode(one) for one in value]
        return texts, TEXT
    try:
        numbers = _decode_records(value, kind) if isinstance(kind, tuple) else _decode_numbers(value, kind)
        datatype = datatype_of(numbers.dtype)
        if datatype is not None:
            return numbers, datatype
    except SURPRISES:
        pass  # references are untrusted: the recorded type may not fit the value
    return as_array(_encode(value if isinstance(value, str) else json.dumps(value))), TEXT


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _decode_numbers(value: Json, kind: str | None) -> npt.NDArray[Any]:
    """Return numbers of a type. The innermost lists of complex numbers are their parts."""
    if kind is None or np.dtype(kind).kind != "c":
        return np.array(value, kind)
    parts = np.array(value, f"f{np.dtype(kind).itemsize // 2}")
    return parts.view(kind)[..., 0] if parts.size else parts.astype(kind)


def _decode_records(value: Json, kinds: tuple[tuple[str, str], ...]) -> npt.NDArray[Any]:
    records = value if isinstance(value, list) else [value]
    made = np.zeros(len(records), [(name, kind) for name, kind in kinds])
    for name, kind in kinds:
        made[name] = _decode_numbers([record[name] for record in records], kind)
    return made if isinstance(value, list) else made[0:1].reshape(())
