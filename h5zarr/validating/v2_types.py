"""Data types of Zarr version 2: which there are, how large an element is, and which fill values each permits."""

from __future__ import annotations

import re
from base64 import b64decode
from math import prod

import numpy as np

from h5zarr.hierarchy import Json
from h5zarr.validating.members import is_integer, is_number, lengths
from h5zarr.validating.raw import RawNode

_SIMPLE = re.compile(
    r"(?P<order>[<>|])(?:(?P<kind>[biufcSUV])(?P<size>[0-9]{1,9})|(?P<time>[mM])8"
    r"\[(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\])"
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8, 16), "c": (8, 16, 32)}
_OBJECT = "|O"
_DEEPEST = 16


def find_type_v2(value: Json, depth: int = 0) -> int | str | None:
    """Return the bytes of an element of a type, or what is wrong with it; None for objects, of any size."""
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
        member, shape = find_type_v2(field[1], depth + 1), lengths(field[2]) if len(field) == 3 else ()
        if not isinstance(member, int) or shape is None:
            return member if isinstance(member, str) else f'field "{field[0]}" of the dtype has no fixed size'
        nbytes += member * prod(shape)
        names.append(field[0])
    return nbytes if len(set(names)) == len(names) else "two fields of the dtype have the same name"


def _find_simple(value: str) -> int | str:
    match = _SIMPLE.fullmatch(value)
    if match is None:
        return f'"{value[:40]}" is no dtype: the order of bytes, a letter and a number of bytes'
    if match["time"]:
        return 8 if match["order"] != "|" else "the dtype does not state the order of bytes"
    kind, size = match["kind"], int(match["size"])
    nbytes = 4 * size if kind == "U" else size
    if kind in _SIZES and size not in _SIZES[kind]:
        return f'"{value}" is no dtype: there is none of so many bytes'
    if match["order"] == "|" and kind in "iufcU" and nbytes > 1:
        return "the dtype does not state the order of bytes"
    return nbytes


def nbytes_v2(node: RawNode) -> int | None:
    """Return the bytes of an element of an array, if they are known."""
    found = find_type_v2(node.metadata.get("dtype"))
    return found if isinstance(found, int) else None


def wrong_fill_v2(value: Json, dtype: Json) -> str:
    """Return what is wrong with a fill value for a type that is right; "" if nothing."""
    if value is None or dtype == _OBJECT:
        return ""
    if isinstance(dtype, list):
        return _wrong_base64(value, find_type_v2(dtype))
    kind = dtype[1]
    if kind in "SV":
        return _wrong_base64(value, find_type_v2(dtype), shorter=kind == "S")
    if kind == "b":
        return "" if isinstance(value, bool) or value in (0, 1) else "it is neither true nor false"
    if kind in "iu":
        return _wrong_integer(value, np.dtype(dtype))
    if kind == "f":
        return _wrong_float(value)
    if kind == "c":
        parts = value if isinstance(value, list) and len(value) == 2 else None
        return "it is no pair of numbers" if parts is None else _wrong_float(parts[0]) or _wrong_float(parts[1])
    if kind in "mM":
        return "" if value == "NaT" else _wrong_integer(value, np.dtype(np.int64))
    return "" if isinstance(value, str) else "it is no text"


def _wrong_float(value: Json) -> str:
    is_word = isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity")
    return "" if is_number(value) or is_word else 'it is neither a number, nor "NaN", "Infinity" or "-Infinity"'


def _wrong_integer(value: Json, dtype: np.dtype[np.generic]) -> str:
    limits = np.iinfo(np.dtype(f"{dtype.kind}{dtype.itemsize}"))
    if not is_integer(value):
        return "it is no integer"
    return "" if int(limits.min) <= value <= int(limits.max) else f"it is outside the range of {dtype.name}"


def _wrong_base64(value: Json, nbytes: int | str | None, shorter: bool = False) -> str:
    if not isinstance(value, str):
        return "it is no text in base64"
    try:
        length = len(b64decode(value, validate=True))
    except ValueError:
        return "it is no base64"
    is_right = length == nbytes or (shorter and isinstance(nbytes, int) and length < nbytes)
    return "" if is_right else f"it has {length} bytes, and an element has {nbytes}"
