"""Attributes as JSON. What JSON loses, the type of a number, is told in a record that rides along.

| value                        | JSON                                                              |
|------------------------------|-------------------------------------------------------------------|
| numbers                      | numbers, lists where there are several; one in an array is a number |
| NaN, infinities              | Python's words for them, which readers of references understand     |
| complex numbers              | [real, imaginary]                                                 |
| text                         | text, lists of text where there are several                       |
| opaque bytes                 | base64                                                            |
| records                      | objects, by the names of their members                            |
| sequences of any length      | lists of lists                                                    |
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.hierarchy import Json
from h5zarr.tree import AttributeValue

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
    """Return one of several values; of sequences that differ in length, one of length 1 is a list like the others."""
    encoded = encode_attribute(value)
    return [encoded] if isinstance(value, np.ndarray) and value.shape == (1,) else encoded


def attribute_type(value: AttributeValue) -> Json | None:
    """Return the numpy type of an attribute where its JSON form does not tell it; None where it does, or has none.

    That of records is a list of [name, type] for each member.
    """
    if isinstance(value, str):
        return None
    if isinstance(value, np.ndarray):
        name = _type_name(value.dtype)
        return None if name in _SELF_EVIDENT and value.size else name
    if isinstance(value, Mapping):
        return _members(value)
    return _members(value[0]) if value and isinstance(value[0], Mapping) else None


def number_type(value: AttributeValue) -> str | None:
    """Return the numpy type of an attribute that is numbers; None for any other."""
    return _type_name(value.dtype) if isinstance(value, np.ndarray) else None


def _members(record: Mapping[str, AttributeValue]) -> Json | None:
    """Return the types of a record's members, if each is a number."""
    kinds = [
        [name, number_type(part)] for name, part in record.items() if isinstance(part, np.ndarray) and not part.ndim
    ]
    return kinds if len(kinds) == len(record) and all(kind is not None for _, kind in kinds) else None


@lru_cache(maxsize=256)
def _type_name(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a type of numbers, whatever its byte order. Cached, because numpy makes it up each time."""
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
