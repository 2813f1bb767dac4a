"""Encode attributes as JSON, which loses the types of numbers. `attribute_type` returns them for the group's record.

| value                        | JSON                                                              |
|------------------------------|-------------------------------------------------------------------|
| numbers                      | a number, also for an array of one; a list if there are several   |
| NaN, infinities              | NaN, Infinity, -Infinity, which readers of references understand  |
| complex numbers              | [real, imaginary]                                                 |
| text                         | text; a list if there are several                                 |
| opaque bytes                 | base64                                                            |
| records                      | objects whose keys are the members' names                         |
| variable-length sequences    | lists of lists                                                    |
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.tree import AttributeValue
from h5zarr.zarr_model.hierarchy import AttributeType, Json

_SELF_EVIDENT = frozenset({"int64", "float64", "bool"})
_DOUBLE_NBYTES = 8


def encode_attribute(value: AttributeValue) -> Json:
    """Return the JSON form of an attribute."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, Mapping):
        return {name: encode_attribute(part) for name, part in value.items()}
    return encode_attribute(value[0]) if len(value) == 1 else [_encode_part(part) for part in value]


def _encode_part(value: AttributeValue) -> Json:
    """Return one of several values as JSON. A sequence of length 1 stays a list, like longer ones next to it."""
    encoded = encode_attribute(value)
    return [encoded] if isinstance(value, np.ndarray) and value.shape == (1,) else encoded


def attribute_type(value: AttributeValue) -> AttributeType | None:
    """Return the numpy type of an attribute if its JSON form does not show it; else None."""
    if isinstance(value, str):
        return None
    if isinstance(value, np.ndarray):
        name = _type_name(value.dtype)
        return None if name in _SELF_EVIDENT and value.size else name
    if isinstance(value, Mapping):
        return _members(value)
    return _members(value[0]) if value and isinstance(value[0], Mapping) else None


def number_type(value: AttributeValue) -> str | None:
    """Return the numpy type of a numeric attribute; None for others."""
    return _type_name(value.dtype) if isinstance(value, np.ndarray) else None


def _members(record: Mapping[str, AttributeValue]) -> AttributeType | None:
    """Return the names and types of a record's members, if each is a number."""
    kinds = []
    for name, part in record.items():
        if not isinstance(part, np.ndarray) or part.ndim or (kind := _type_name(part.dtype)) is None:
            return None
        kinds.append((name, kind))
    return tuple(kinds)


@lru_cache(maxsize=256)
def _type_name(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a numeric type without its byte order. Cached, because numpy builds it each time."""
    return dtype.name if dtype.kind in "biufc" else None


def _encode_array(values: npt.NDArray[Any]) -> Json:
    dtype = values.dtype
    if dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= _DOUBLE_NBYTES):
        return values.item() if values.size == 1 else values.tolist()
    if values.size == 1:
        return _encode_element(values.reshape(-1)[0])
    return [_encode_array(part) if part.ndim else _encode_element(part[()]) for part in map(np.asarray, values)]


def _encode_element(element: Any) -> Json:
    if isinstance(element, np.void) and element.dtype.names is not None:
        return {name: _encode_array(np.asarray(element[name])) for name in element.dtype.names}
    if isinstance(element, np.void | bytes):
        return b64encode(np.asarray(element).tobytes()).decode()
    if isinstance(element, np.complexfloating):
        return [float(element.real), float(element.imag)]
    if isinstance(element, np.floating):
        return float(element)
    if isinstance(element, np.generic):
        return element.item()
    return element
