"""Data types of Zarr version 3: which there are, how large an element is, and which fill values each permits."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TypeAlias

import numpy as np

from h5zarr.hierarchy import Json
from h5zarr.validating.members import is_integer, is_number, named

CheckValue: TypeAlias = Callable[[Json], str]
"""Returns what is wrong with a value of the type; "" if nothing."""

INTEGERS = {f"{sign}int{8 * width}": width for sign in ("", "u") for width in (1, 2, 4, 8)}
FLOATS = {"float16": 2, "float32": 4, "float64": 8}
COMPLEX = {"complex64": 8, "complex128": 16}
TIMES = ("numpy.datetime64", "numpy.timedelta64")
FIXED_TEXT = ("null_terminated_bytes", "fixed_length_utf32")
UNREGISTERED = {
    "structured": 'the registry has it as a legacy alias of "struct", not to be written any more',
    "null_terminated_bytes": "it is zarr-python's, and is not registered",
    "raw_bytes": "it is zarr-python's, and is not registered",
    "variable_length_bytes": "it is zarr-python's, and is not registered",
}
_SMALL = ("e2m1fn", "e2m3fn", "e3m2fn", "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_WIDTHS = {"e2m1fn": 4, "e2m3fn": 6, "e3m2fn": 6}
_SMALL_FLOATS = {f"float{_WIDTHS.get(kind, 8)}_{kind}" for kind in _SMALL}
# Registered, but nobody has a form for their fill values that could be told wrong here.
OTHERS = {
    *("int2", "int4", "uint2", "uint4", "bfloat16", "complex_bfloat16"),
    *("complex_float16", "complex_float32", "complex_float64"),
    *_SMALL_FLOATS,
    *(f"complex_{name}" for name in _SMALL_FLOATS),
}
_UNITS = {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic"}
_RAW_BITS = re.compile(r"r([1-9][0-9]{0,8})")
_WORDS = ("NaN", "Infinity", "-Infinity")
_DEEPEST = 16
_MOST_NBYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DataType:
    """A type: its name, the bytes of an element (None where they vary, or nobody knows), and what its values are.

    `is_ordered` says that the order of bytes matters.
    """

    name: str
    nbytes: int | None
    is_ordered: bool
    wrong: CheckValue


def find_type(value: Json, depth: int = 0) -> DataType | str:
    """Return the type that metadata name, or what is wrong with it."""
    told = named(value)
    if told is None:
        return "the data type is neither a name, nor an object with a name"
    name, configuration = told
    if (found := _PLAIN.get(name)) is not None:
        return found
    if match := _RAW_BITS.fullmatch(name):
        bits = int(match[1])
        return (
            "a raw type has a multiple of 8 bits"
            if bits % 8
            else DataType(name, bits // 8, False, partial(_bytes_listed, bits // 8))
        )
    if name in ("raw_bytes", "null_terminated_bytes", "fixed_length_utf32"):
        return _sized(name, configuration)
    if name in TIMES:
        return _time(name, configuration)
    if name in ("structured", "struct"):
        return _record(name, configuration, depth)
    return f'no data type is known by the name "{name[:60]}"'


def _sized(name: str, configuration: dict[str, Json]) -> DataType | str:
    nbytes = configuration.get("length_bytes")
    least = 0 if name == "raw_bytes" else 1
    if not is_integer(nbytes) or not least <= nbytes <= _MOST_NBYTES:
        return f"the data type {name} needs a number of bytes, length_bytes"
    if name != "fixed_length_utf32":
        return DataType(name, nbytes, False, partial(_base64, nbytes, exact=name == "raw_bytes"))
    if nbytes % 4:
        return f"the length of {name} is no multiple of 4 bytes"
    return DataType(name, nbytes, True, partial(_text, nbytes // 4))


def _time(name: str, configuration: dict[str, Json]) -> DataType | str:
    unit, scale = configuration.get("unit"), configuration.get("scale_factor")
    if not isinstance(unit, str) or unit not in _UNITS:
        return f"the data type {name} needs a unit of time"
    if not is_integer(scale) or not 1 <= scale < 2**31:
        return f"the data type {name} needs a scale_factor, an integer from 1 to {2**31 - 1}"
    return DataType(name, 8, True, _moment)


def _record(name: str, configuration: dict[str, Json], depth: int) -> DataType | str:
    fields = configuration.get("fields")
    if not isinstance(fields, list) or not fields or depth > _DEEPEST:
        return f"the data type {name} needs a list of fields"
    names, nbytes, is_ordered = [], 0, False
    for field in fields:
        match field:
            case {"name": str(label), "data_type": kind} if name == "struct":
                pass
            case [str(label), kind] if name == "structured":
                pass
            case _:
                return f"a field of the data type {name} has no name and type, as this type wants them"
        member = find_type(kind, depth + 1)
        if isinstance(member, str):
            return f'field "{label}": {member}'
        if member.nbytes is None:
            return f'field "{label}" of the data type {name} has no fixed size'
        names.append(label)
        nbytes, is_ordered = nbytes + member.nbytes, is_ordered or member.is_ordered
    if "" in names or len(set(names)) < len(names):
        return f"two fields of the data type {name} have the same name, or one has none"
    return DataType(name, nbytes, is_ordered, partial(_record_value, nbytes, tuple(names)))


# --- values: each returns what is wrong


def _boolean(value: Json) -> str:
    return "" if isinstance(value, bool) else "it is neither true nor false"


def _integer(name: str, value: Json) -> str:
    if not is_integer(value):
        return "it is no integer"
    limits = np.iinfo(name)
    inside = int(limits.min) <= value <= int(limits.max)
    return "" if inside else f"it is outside the range of {name}, which is {limits.min} to {limits.max}"


def _float(nbytes: int, value: Json) -> str:
    if is_number(value):
        return "" if isfinite(_to_float(value)) else "it is no JSON number"
    if not isinstance(value, str):
        return "it is neither a number nor a text that stands for one"
    if value in _WORDS or re.fullmatch(f"0x[0-9a-fA-F]{{{2 * nbytes}}}", value):
        return ""
    return f'a text must be "NaN", "Infinity", "-Infinity" or the {2 * nbytes} hexadecimal digits of its bits after 0x'


def _to_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _complex(nbytes: int, value: Json) -> str:
    if not isinstance(value, list) or len(value) != 2:
        return "it is no list of a real and an imaginary part"
    return next((wrong for part in value if (wrong := _float(nbytes // 2, part))), "")


def _string(value: Json) -> str:
    return "" if isinstance(value, str) else "it is no text"


def _text(length: int, value: Json) -> str:
    return _string(value) or ("" if len(value) <= length else f"it has more than {length} letters")


def _moment(value: Json) -> str:
    return "" if value == "NaT" else _integer("int64", value)


def _base64(nbytes: int, value: Json, exact: bool = True) -> str:
    if not isinstance(value, str):
        return "it is no text in base64"
    try:
        length = len(b64decode(value, validate=True))
    except ValueError:
        return "it is no base64"
    if length > nbytes or (exact and length < nbytes):
        return f"it has {length} bytes, and an element has {nbytes}"
    return ""


def _bytes_listed(nbytes: int, value: Json) -> str:
    if not isinstance(value, list) or not all(is_integer(one) and 0 <= one <= 255 for one in value):
        return "it is no list of integers from 0 to 255"
    return "" if len(value) == nbytes else f"it has {len(value)} bytes, and an element has {nbytes}"


def _any_bytes(value: Json) -> str:
    if isinstance(value, list):
        return _bytes_listed(len(value), value)
    return _base64(_MOST_NBYTES, value, exact=False)


def _record_value(nbytes: int, names: tuple[str, ...], value: Json) -> str:
    if isinstance(value, dict):
        return "" if sorted(value) == sorted(names) else "it does not have the fields of the type"
    return _base64(nbytes, value)


def _present(value: Json) -> str:
    return "it is null" if value is None else ""


_PLAIN = {
    "bool": DataType("bool", 1, False, _boolean),
    **{name: DataType(name, width, width > 1, partial(_integer, name)) for name, width in INTEGERS.items()},
    **{name: DataType(name, width, True, partial(_float, width)) for name, width in FLOATS.items()},
    **{name: DataType(name, width, True, partial(_complex, width)) for name, width in COMPLEX.items()},
    "string": DataType("string", None, False, _string),
    "bytes": DataType("bytes", None, False, _any_bytes),
    "variable_length_bytes": DataType("variable_length_bytes", None, False, _any_bytes),
    **{name: DataType(name, None, False, _present) for name in OTHERS},
}
