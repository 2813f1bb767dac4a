"""Attribute and fill values as text, similar to CDL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.commands.inspect.selections import selection_text
from h5zarr.commands.inspect.types import fitting
from h5zarr.display import ELLIPSIS, counted, quoted, readable, shortened, text_of
from h5zarr.hdf5.datatype import (
    Array,
    Compound,
    Datatype,
    Enumeration,
    String,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference, RegionReference

PathOf: TypeAlias = Callable[[ObjectReference], str | None]


def unknown_path(reference: ObjectReference) -> str | None:
    """Return None: the path of an object when no file is available."""
    return None


def value_text(
    value: npt.NDArray[Any] | None, datatype: Datatype, path_of: PathOf = unknown_path, *, limit: int | None = None
) -> str:
    """Return a value as text of at most about `limit` characters, with the count of omitted values."""
    if value is None:
        return "(null)"
    elements = value.reshape(-1)
    if not len(elements):
        return "(empty)"
    base = element_type(datatype)
    if len(elements) == 1:
        return _one(elements[0], base, path_of, limit)
    if limit is None:
        return ", ".join(element_text(element, base, path_of) for element in elements)
    most = elements[: limit // 3 + 2]  # an element and its separator take at least three characters
    parts = [element_text(element, base, path_of, limit) for element in most]
    if len(parts) == len(elements) and len(", ".join(parts)) <= limit:
        return ", ".join(parts)
    note = f"{ELLIPSIS} ({counted(len(elements), 'value')})"
    return ", ".join([*parts[: fitting(parts, limit - len(note) - 2)], note])


def element_type(datatype: Datatype) -> Datatype:
    """Return the element type. The shape of an array type becomes further dimensions of the value."""
    while isinstance(datatype, Array):
        datatype = datatype.base
    return datatype


def element_text(element: Any, datatype: Datatype, path_of: PathOf, limit: int | None = None) -> str:
    """Return one element as text, in at most about `limit` characters."""
    match datatype:
        case Enumeration():
            return enum_name(element, datatype)
        case Compound():
            parts = [
                f"{readable(member.name)}={value_text(as_array(element[key]), member.datatype, path_of, limit=limit)}"
                for key, member in zip(element.dtype.names, datatype.members, strict=True)
            ]
            return shortened("{" + ", ".join(parts) + "}", limit)
        case VariableLengthSequence():
            return "{" + ("" if not len(element) else value_text(element, datatype.base, path_of, limit=limit)) + "}"
        case String() | VariableLengthString():
            return shortened(quoted(text_of(bytes(element or b""))), limit)
    if isinstance(element, np.void):
        return shortened("0x" + element.tobytes().hex(), limit)
    if isinstance(element, ObjectReference | RegionReference | AttributeReference):
        return reference_text(element, path_of)
    return readable(str(element))


def reference_text(reference: ObjectReference | RegionReference | AttributeReference, path_of: PathOf) -> str:
    """Return the target of a reference: a path, with the attribute or selection if there is one."""
    match reference:
        case RegionReference(target, selection):
            return reference_text(target, path_of) + (selection_text(selection) if selection is not None else "")
        case AttributeReference(target, name):
            return f"{reference_text(target, path_of)}@{readable(name)}"
        case ObjectReference(address, file):
            path = path_of(reference)
            place = readable(path) if path is not None else "nowhere" if address is None else f"byte {address:#x}"
            return f"{readable(file)}:{place}" if file else place


def as_array(element: Any) -> npt.NDArray[Any]:
    """Return an element as a 0-d array, unless it is an array already. An object stays one object."""
    if isinstance(element, np.ndarray):
        return element
    if isinstance(element, np.generic):
        return np.asarray(element)
    array = np.empty((), object)
    array[()] = element
    return array


def enum_name(element: Any, datatype: Enumeration) -> str:
    """Return the name of an enumeration value, or the number if it has none."""
    number = int(element)
    return next((readable(name) for name, value in datatype.members if value == number), str(number))


def _one(element: Any, datatype: Datatype, path_of: PathOf, limit: int | None) -> str:
    """Return the only element. A truncated string is followed by its length."""
    if not isinstance(datatype, String | VariableLengthString):
        return element_text(element, datatype, path_of, limit)
    text = text_of(bytes(element or b""))
    whole = quoted(text)
    if limit is None or len(whole) <= limit:
        return whole
    note = f" ({counted(len(text), 'character')})"
    return shortened(whole[:-1], max(limit - len(note) - 1, 8)) + '"' + note
