"""Data types of Zarr version 2: their names, numpy types, sizes, and valid fill values."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from h5zarr.errors import MalformedFile, Unrepresentable, Unsupported
from h5zarr.zarr_model.data_types import OBJECT, WORDS, wrong_base64, wrong_integer, wrong_moment, wrong_text
from h5zarr.zarr_model.grid import decode_lengths
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import is_number

_SIMPLE = re.compile(
    r"(?P<order>[<>|])(?:(?P<kind>[biufcSUV])(?P<size>0|[1-9][0-9]{0,8})|(?P<time>[mM])8"
    r"\[(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\])"
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8, 16), "c": (8, 16, 32)}
_NOT_IN_V3 = ("f16", "c32")
_OBJECT = "|O"
_DEEPEST = 16
_ELEMENT_NBYTES = 1 << 24  # metadata contain the fill value, which is one element


def find_type_v2(value: Json, depth: int = 0) -> int | str | None:
    """Return the size of an element of a type, or what is wrong with the type; None for objects, which vary in size."""
    if value == _OBJECT:
        return None
    if isinstance(value, str):
        return _find_simple(value)
    if not isinstance(value, list) or not value or depth > _DEEPEST:
        return "the dtype is neither a name, nor a list of fields"
    nbytes, names = 0, []
    for field in value:
        if not isinstance(field, list) or len(field) not in (2, 3) or not isinstance(field[0], str):
            return "a field of the dtype is not [name, type] or [name, type, shape]"
        member, shape = find_type_v2(field[1], depth + 1), decode_lengths(field[2]) if len(field) == 3 else ()
        if not isinstance(member, int) or shape is None:
            return member if isinstance(member, str) else f'field "{field[0]}" of the dtype has no fixed size'
        nbytes += member * prod(shape)
        names.append(field[0])
    return nbytes if len(set(names)) == len(names) else "two fields of the dtype have the same name"


def _find_simple(value: str) -> int | str:
    match = _SIMPLE.fullmatch(value)
    if match is None:
        return f'"{value[:40]}" is not a dtype: expected the byte order, a letter and a number of bytes'
    if match["time"]:
        return 8 if match["order"] != "|" else "the dtype does not state the byte order"
    kind, size = match["kind"], int(match["size"])
    nbytes = 4 * size if kind == "U" else size
    if kind in _SIZES and size not in _SIZES[kind]:
        return f'"{value}" is not a dtype: the size is not valid'
    if match["order"] == "|" and kind in "iufcU" and nbytes > 1:
        return "the dtype does not state the byte order"
    return nbytes


def encode_dtype_v2(dtype: np.dtype[Any]) -> Json:
    """Return the dtype of version 2: numpy's short name, or a list of fields with theirs."""
    if dtype.names is None:
        return dtype.str
    assert dtype.fields is not None
    members = {name: dtype.fields[name][0] for name in dtype.names}
    if any(member.names is not None for member in members.values()):
        raise Unrepresentable("zarr does not read records inside records from Zarr version 2")
    return [[name, member.str] for name, member in members.items()]


def decode_dtype_v2(value: Json) -> np.dtype[Any]:
    """Return the numpy type of a version 2 dtype; `OBJECT` if the codec implies the type.

    Raises Unsupported if Zarr version 3, or its readers, cannot express it.
    """
    if value == _OBJECT:
        return OBJECT
    dtype = _decode_member(value)
    if dtype.names is not None and _has_big_endian(dtype):
        # zarr 3.1 silently reads them as little-endian.
        raise Unsupported("readers of Zarr version 3 misread records of big-endian numbers")
    if dtype.itemsize > _ELEMENT_NBYTES:
        raise Unsupported(f"its elements have {dtype.itemsize} bytes each")
    return dtype


def _has_big_endian(dtype: np.dtype[Any]) -> bool:
    if dtype.fields is None:
        return dtype.byteorder == ">"
    return any(_has_big_endian(field[0]) for field in dtype.fields.values())


def _decode_member(value: Json) -> np.dtype[Any]:
    if isinstance(value, str):
        nbytes = _find_simple(value)
        if isinstance(nbytes, str) or not nbytes or value[1:] in _NOT_IN_V3:
            raise Unsupported(f'the data type "{value[:40]}" has no counterpart in Zarr version 3')
        if nbytes > _ELEMENT_NBYTES:
            raise Unsupported(f"its elements have {nbytes} bytes each")
        return np.dtype(value)
    if not isinstance(value, list) or not value:
        raise MalformedFile("the data type is neither a name nor a list of fields")
    members = []
    for field in value:
        match field:
            case [str(name), str() | list() as member]:
                members.append((name, _decode_member(member)))
            case [str(name), _, list()]:
                raise Unsupported(f'field "{name}" is an array, which Zarr version 3 does not support')
            case _:
                raise MalformedFile("a field of the data type is not a pair of a name and a type")
    names = [name for name, _ in members]
    if "" in names or len(set(names)) < len(names):
        raise MalformedFile("two fields of the data type have the same name, or one has none")
    return np.dtype(members)


def wrong_fill_v2(value: Json, dtype: Json) -> str:
    """Return what is wrong with a fill value; "" if nothing. The dtype must be valid."""
    if value is None or dtype == _OBJECT:
        return ""
    if isinstance(dtype, list):
        return wrong_base64(_nbytes(dtype), value)
    kind = dtype[1]
    if kind in "SV":
        return wrong_base64(_nbytes(dtype), value, exact=kind == "V")
    if kind == "b":
        return "" if isinstance(value, bool) or value in (0, 1) else "it is neither true nor false"
    if kind in "iu":
        return wrong_integer(np.dtype(dtype).name, value)
    if kind == "f":
        return _wrong_float(value)
    if kind == "c":
        parts = value if isinstance(value, list) and len(value) == 2 else None
        return "it is not a pair of numbers" if parts is None else _wrong_float(parts[0]) or _wrong_float(parts[1])
    if kind in "mM":
        return wrong_moment(value)
    return wrong_text(value)


def _wrong_float(value: Json) -> str:
    is_word = isinstance(value, str) and value in WORDS
    return "" if is_number(value) or is_word else 'it is neither a number, nor "NaN", "Infinity" or "-Infinity"'


def _nbytes(dtype: Json) -> int:
    nbytes = find_type_v2(dtype)
    assert isinstance(nbytes, int), "the dtype is valid"
    return nbytes
