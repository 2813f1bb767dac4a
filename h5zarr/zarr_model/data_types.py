"""Data types of Zarr version 3: their names, numpy types, sizes, and valid fill values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import isfinite
from typing import Any, Literal, TypeAlias

import numpy as np

from h5zarr.display import counted
from h5zarr.errors import Unrepresentable, Unsupported
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import base64_nbytes, is_integer, is_number, named

ByteOrder: TypeAlias = Literal["<", ">", "="]
CheckValue: TypeAlias = Callable[[Json], str]
"""Returns what is wrong with a value of the type; "" if nothing."""

OBJECT = np.dtype(object)
BYTES = "variable_length_bytes"
INTEGERS = {f"{sign}int{8 * width}": width for sign in ("", "u") for width in (1, 2, 4, 8)}
FLOATS = {"float16": 2, "float32": 4, "float64": 8}
COMPLEX = {"complex64": 8, "complex128": 16}
WORDS = ("NaN", "Infinity", "-Infinity")
UNREGISTERED = {
    "structured": 'the registry lists it as a legacy alias of "struct", which should not be written',
    "null_terminated_bytes": "it belongs to zarr-python, and is not registered",
    "raw_bytes": "it belongs to zarr-python, and is not registered",
    BYTES: "it belongs to zarr-python, and is not registered",
}
_NAMES = {np.dtype(name): name for name in ("bool", *INTEGERS, *FLOATS, *COMPLEX)}
_TIMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}
_TIME_KINDS = {name: kind for kind, name in _TIMES.items()}
_SIZED = {"raw_bytes": "V", "null_terminated_bytes": "S", "fixed_length_utf32": "U"}
_SMALL = ("e2m1fn", "e2m3fn", "e3m2fn", "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_WIDTHS = {"e2m1fn": 4, "e2m3fn": 6, "e3m2fn": 6}
_SMALL_FLOATS = {f"float{_WIDTHS.get(kind, 8)}_{kind}" for kind in _SMALL}
# Registered, but without a defined form of fill values, so these are not checked.
_OTHERS = {
    *("int2", "int4", "uint2", "uint4", "bfloat16", "complex_bfloat16"),
    *("complex_float16", "complex_float32", "complex_float64"),
    *_SMALL_FLOATS,
    *(f"complex_{name}" for name in _SMALL_FLOATS),
}
_UNITS = {"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"}
_RAW_BITS = re.compile(r"r([1-9][0-9]{0,8})")
_DEEPEST = 16
_MOST_NBYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type. `nbytes` is the size of an element; None if it varies or is unknown.

    `is_ordered` is true if byte order matters. `wrong` checks a fill value. `dtype` is the numpy type, little-endian if
    byte order matters; None if h5zarr does not read the type itself.
    """

    name: str
    nbytes: int | None
    is_ordered: bool
    wrong: CheckValue
    dtype: np.dtype[Any] | None = None


def find_type(value: Json, depth: int = 0) -> DataType | str:
    """Return the type that metadata name, or what is wrong with it."""
    parsed = named(value)
    if parsed is None:
        return "the data type is neither a name, nor an object with a name"
    name, configuration = parsed
    if (found := _PLAIN.get(name)) is not None:
        return found
    if match := _RAW_BITS.fullmatch(name):
        nbytes, rest = divmod(int(match[1]), 8)
        if rest:
            return "a raw type has a multiple of 8 bits"
        return DataType(name, nbytes, False, partial(_wrong_bytes, nbytes))
    if name in _SIZED:
        return _find_sized(name, configuration)
    if name in _TIME_KINDS:
        return _find_time(name, configuration)
    if name in ("structured", "struct"):
        return _find_record(name, configuration, depth)
    return f'the data type "{name[:60]}" is unknown'


def _find_sized(name: str, configuration: dict[str, Json]) -> DataType | str:
    nbytes = configuration.get("length_bytes")
    least = 0 if name == "raw_bytes" else 1
    if not is_integer(nbytes) or not least <= nbytes <= _MOST_NBYTES:
        return f"the data type {name} needs a number of bytes, length_bytes"
    if name != "fixed_length_utf32":
        wrong = partial(wrong_base64, nbytes, exact=name == "raw_bytes")
        return DataType(name, nbytes, False, wrong, np.dtype(f"{_SIZED[name]}{nbytes}"))
    if nbytes % 4:
        return f"the length of {name} is not a multiple of 4 bytes"
    return DataType(name, nbytes, True, partial(_wrong_letters, nbytes // 4), np.dtype(f"<U{nbytes // 4}"))


def _find_time(name: str, configuration: dict[str, Json]) -> DataType | str:
    unit, scale = configuration.get("unit"), configuration.get("scale_factor")
    if not isinstance(unit, str) or unit not in _UNITS | {"generic"}:
        return f"the data type {name} needs a unit of time"
    if not is_integer(scale) or not 1 <= scale < 2**31:
        return f"the data type {name} needs a scale_factor, an integer from 1 to {2**31 - 1}"
    dtype = np.dtype(f"<{_TIME_KINDS[name]}8[{scale}{unit}]") if unit in _UNITS else None
    return DataType(name, 8, True, wrong_moment, dtype)


def _find_record(name: str, configuration: dict[str, Json], depth: int) -> DataType | str:
    fields = configuration.get("fields")
    if not isinstance(fields, list | tuple) or not fields or depth > _DEEPEST:
        return f"the data type {name} needs a list of fields"
    members: dict[str, DataType] = {}
    for field in fields:
        match field:
            case {"name": str(label), "data_type": kind} if name == "struct":
                pass
            case [str(label), kind] if name == "structured":
                pass
            case _:
                return f"a field of the data type {name} does not have a name and a type in the required form"
        member = find_type(kind, depth + 1)
        if isinstance(member, str):
            return f'field "{label}": {member}'
        if member.nbytes is None:
            return f'field "{label}" of the data type {name} has no fixed size'
        if not label or label in members:
            return f"two fields of the data type {name} have the same name, or one has none"
        members[label] = member
    nbytes = sum(member.nbytes or 0 for member in members.values())
    is_ordered = any(member.is_ordered for member in members.values())
    dtypes = [(label, member.dtype) for label, member in members.items() if member.dtype is not None]
    is_read = name == "structured" and len(dtypes) == len(members)
    wrong = partial(_wrong_record, nbytes, tuple(members))
    return DataType(name, nbytes, is_ordered, wrong, np.dtype(dtypes) if is_read else None)


def decode_data_type(data_type: Json, order: ByteOrder) -> np.dtype[Any]:
    """Return the numpy type of `data_type` in the given byte order; `object` for variable-length text.

    Raises Unrepresentable for a type that numpy or h5zarr lacks.
    """
    found = find_type(data_type)
    if isinstance(found, str):
        parsed = named(data_type)
        if parsed is not None and parsed[0] in (*_SIZED, *_TIME_KINDS, "structured"):
            raise Unsupported(found)
        raise Unrepresentable(f"h5zarr does not read the data type{'' if parsed is None else ' ' + parsed[0][:60]}")
    if found.dtype is None:
        raise Unrepresentable(f"h5zarr does not read the data type {found.name}")
    return found.dtype.newbyteorder(order)


@lru_cache(maxsize=1024)
def encode_dtype(dtype: np.dtype[Any]) -> Json:
    """Return the Zarr data type for a numpy type. The codec has the byte order."""
    if (name := _NAMES.get(dtype.newbyteorder("="))) is not None:
        return name
    if dtype.kind == "O":
        return "string"
    if dtype.kind in _TIMES:
        unit, scale = np.datetime_data(dtype)
        return {"name": _TIMES[dtype.kind], "configuration": {"unit": unit, "scale_factor": scale}}
    if dtype.names is not None and dtype.fields is not None:
        fields = [[name, encode_dtype(dtype.fields[name][0])] for name in dtype.names]
        return {"name": "structured", "configuration": {"fields": fields}}
    for name, kind in _SIZED.items():
        if dtype.kind == kind and kind != "U":  # h5zarr never writes text with four bytes per character
            return {"name": name, "configuration": {"length_bytes": dtype.itemsize}}
    raise Unrepresentable(f"Zarr has no type for {dtype}")


@lru_cache(maxsize=1024)
def encode_serializer(dtype: np.dtype[Any]) -> Json:
    """Return the codec that turns an array of the type into bytes and back."""
    if dtype.kind == "O":
        return {"name": "vlen-utf8"}
    if dtype.names is None and (dtype.itemsize == 1 or dtype.kind in "SV"):
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "big" if dtype.byteorder == ">" else "little"}}


def describe(dtype: np.dtype[Any]) -> str:
    """Return a readable name for a type."""
    if dtype.kind == "O":
        return "text"
    if dtype.kind == "S":
        return f"text of {counted(dtype.itemsize, 'byte')}"
    if dtype.kind == "U":
        return f"text of {counted(dtype.itemsize // 4, 'character')}"
    return "records" if dtype.names is not None else dtype.name


# --- checks of fill values: each function returns what is wrong, or ""


def wrong_integer(name: str, value: Json) -> str:
    if not is_integer(value):
        return "it is not an integer"
    limits = np.iinfo(name)
    inside = int(limits.min) <= value <= int(limits.max)
    return "" if inside else f"it is outside the range of {name}, which is {limits.min} to {limits.max}"


def wrong_moment(value: Json) -> str:
    return "" if value == "NaT" else wrong_integer("int64", value)


def wrong_text(value: Json) -> str:
    return "" if isinstance(value, str) else "it is not text"


def wrong_base64(nbytes: int, value: Json, exact: bool = True) -> str:
    if not isinstance(value, str):
        return "it is not text in base64"
    length = base64_nbytes(value)
    if length is None:
        return "it is not valid base64"
    if length > nbytes or (exact and length < nbytes):
        return f"it has {length} bytes, and an element has {nbytes}"
    return ""


def _wrong_boolean(value: Json) -> str:
    return "" if isinstance(value, bool) else "it is neither true nor false"


def _wrong_float(nbytes: int, value: Json) -> str:
    if is_number(value):
        return "" if isfinite(_to_float(value)) else "it is not a JSON number"
    if not isinstance(value, str):
        return "it is neither a number nor text for one"
    if value in WORDS or re.fullmatch(f"0x[0-9a-fA-F]{{{2 * nbytes}}}", value):
        return ""
    return f'text must be "NaN", "Infinity", "-Infinity", or 0x and the {2 * nbytes} hexadecimal digits of the bits'


def _to_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _wrong_complex(nbytes: int, value: Json) -> str:
    if not isinstance(value, list) or len(value) != 2:
        return "it is not a list of a real and an imaginary part"
    return next((wrong for part in value if (wrong := _wrong_float(nbytes // 2, part))), "")


def _wrong_letters(length: int, value: Json) -> str:
    return wrong_text(value) or ("" if len(value) <= length else f"it has more than {length} characters")


def _wrong_bytes(nbytes: int, value: Json) -> str:
    if not isinstance(value, list) or not all(is_integer(one) and 0 <= one <= 255 for one in value):
        return "it is not a list of integers from 0 to 255"
    return "" if len(value) == nbytes else f"it has {len(value)} bytes, and an element has {nbytes}"


def _wrong_any_bytes(value: Json) -> str:
    if isinstance(value, list):
        return _wrong_bytes(len(value), value)
    return wrong_base64(_MOST_NBYTES, value, exact=False)


def _wrong_record(nbytes: int, names: tuple[str, ...], value: Json) -> str:
    if isinstance(value, dict):
        return "" if sorted(value) == sorted(names) else "it does not have the fields of the type"
    return wrong_base64(nbytes, value)


def _wrong_null(value: Json) -> str:
    return "it is null" if value is None else ""


def _plain(name: str, width: int, wrong: CheckValue) -> DataType:
    return DataType(name, width, width > 1, wrong, np.dtype(name).newbyteorder("<"))


_PLAIN = {
    "bool": _plain("bool", 1, _wrong_boolean),
    **{name: _plain(name, width, partial(wrong_integer, name)) for name, width in INTEGERS.items()},
    **{name: _plain(name, width, partial(_wrong_float, width)) for name, width in FLOATS.items()},
    **{name: _plain(name, width, partial(_wrong_complex, width)) for name, width in COMPLEX.items()},
    "string": DataType("string", None, False, wrong_text, OBJECT),
    "bytes": DataType("bytes", None, False, _wrong_any_bytes),
    BYTES: DataType(BYTES, None, False, _wrong_any_bytes),
    **{name: DataType(name, None, False, _wrong_null) for name in _OTHERS},
}
