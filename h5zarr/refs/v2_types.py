"""Data types and elements of Zarr version 3 metadata, as numpy's and as version 2 has them."""

from __future__ import annotations

import math
import operator
import re
import struct
from base64 import b64decode
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unrepresentable, Unsupported
from h5zarr.hierarchy import Json

ByteOrder: TypeAlias = Literal["<", ">"]

_NUMBERS = {
    np.dtype(kind + width).name: np.dtype(kind + width)
    for kind, widths in {"b": "1", "i": "1248", "u": "1248", "f": "248", "c": ("8", "16")}.items()
    for width in widths
}
_TIMES = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
_NAMES_V2 = re.compile(
    r"[<>|](?:b1|[iu]1|[SV][1-9][0-9]{0,6})|[<>](?:[iu][248]|f[248]|c8|c16|U[1-9][0-9]{0,6})"
    r"|[<>][mM]8\[(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as)\]"
)
_ELEMENT_NBYTES = 1 << 24  # a fill value is one element, and is written out

OBJECT = np.dtype(object)


def decode_data_type(data_type: Json, order: ByteOrder) -> np.dtype[Any]:
    """Return the numpy type of `data_type` in the given byte order; text of any length is `object`."""
    name = data_type if isinstance(data_type, str) else data_type["name"]
    if name in _NUMBERS:
        return _NUMBERS[name].newbyteorder(order)
    if name == "string":
        return np.dtype(object)
    configuration = {} if isinstance(data_type, str) else data_type["configuration"]
    if name == "null_terminated_bytes":
        return np.dtype(f"S{configuration['length_bytes']}")
    if name == "fixed_length_utf32":
        return np.dtype(f"{order}U{configuration['length_bytes'] // 4}")
    if name == "raw_bytes":
        return np.dtype(f"V{configuration['length_bytes']}")
    if name in _TIMES:
        return np.dtype(f"{order}{_TIMES[name]}[{configuration['scale_factor']}{configuration['unit']}]")
    if name == "structured":
        return np.dtype([(field, decode_data_type(member, order)) for field, member in configuration["fields"]])
    raise Unrepresentable(f"Zarr version 2 has no type for {name}")


def encode_dtype_v2(dtype: np.dtype[Any]) -> Json:
    """Return the type as version 2 names it: numpy's short name, or a list of fields and theirs."""
    if dtype.names is None:
        return dtype.str
    assert dtype.fields is not None
    members = {name: dtype.fields[name][0] for name in dtype.names}
    if any(member.names is not None for member in members.values()):
        raise Unrepresentable("zarr does not read records inside records from Zarr version 2")
    return [[name, member.str] for name, member in members.items()]


def decode_dtype_v2(value: Json) -> np.dtype[Any]:
    """Return the numpy type that version 2 names; `OBJECT` where a codec says what it is.

    Raises Unsupported if Zarr version 3, or its readers, cannot express it.
    """
    if value == "|O":
        return OBJECT
    dtype = _decode_member(value)
    if dtype.names is not None and _has_big_endian(dtype):
        # zarr 3.1 reads them as if they were little-endian, and says nothing.
        raise Unsupported("readers of Zarr version 3 do not read records of big-endian numbers right")
    if dtype.itemsize > _ELEMENT_NBYTES:
        raise Unsupported(f"its elements have {dtype.itemsize} bytes each")
    return dtype


def _has_big_endian(dtype: np.dtype[Any]) -> bool:
    if dtype.fields is None:
        return dtype.byteorder == ">"
    return any(_has_big_endian(field[0]) for field in dtype.fields.values())


def _decode_member(value: Json) -> np.dtype[Any]:
    if isinstance(value, str):
        if not _NAMES_V2.fullmatch(value):
            raise Unsupported(f'the data type "{value[:40]}" has no counterpart in Zarr version 3')
        return np.dtype(value)
    if not isinstance(value, list) or not value:
        raise MalformedFile("the data type is neither a name nor a list of fields")
    members = []
    for field in value:
        match field:
            case [str(name), str() | list() as member]:
                members.append((name, _decode_member(member)))
            case [str(name), _, list()]:
                raise Unsupported(f'field "{name}" is an array, which Zarr version 3 has not')
            case _:
                raise MalformedFile("a field of the data type is no pair of a name and a type")
    names = [name for name, _ in members]
    if "" in names or len(set(names)) < len(names):
        raise MalformedFile("two fields of the data type have the same name, or one has none")
    return np.dtype(members)


def decode_element(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the element that `value`, a `fill_value` of version 3, stands for."""
    if dtype.kind == "O":
        return np.array(value, object)
    if dtype.kind == "f":
        return _decode_float(value, dtype)
    if dtype.kind == "c":
        half = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
        return np.array([_decode_float(part, half) for part in value], half).view(dtype).reshape(())
    if dtype.kind in "mM":
        number = np.iinfo(np.int64).min if value == "NaT" else operator.index(value)
        return np.array(number, f"{dtype.str[0]}i8").view(dtype)
    if dtype.kind in "SV":
        return np.frombuffer(b64decode(value).ljust(dtype.itemsize, b"\0"), dtype, 1).reshape(())
    return np.array(value, dtype)


def decode_missing(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Return the element that the attribute `_FillValue` stands for in version 3, or None if it is in no known form."""
    if value is None:
        return None
    try:
        if dtype.kind == "f":
            return np.array(_decode_double(value), dtype)
        if dtype.kind == "c":
            real, imaginary = map(_decode_double, value)
            return np.array(complex(real, imaginary), dtype)
        return np.array(value, dtype) if dtype.kind in "biu" else None
    except (ValueError, TypeError, OverflowError, struct.error):
        return None


def encode_element_v2(element: npt.NDArray[Any]) -> Json:
    """Return a number as `fill_value` of version 2."""
    if element.dtype.kind == "c":
        return [_encode_float(float(element.real)), _encode_float(float(element.imag))]
    return _encode_float(float(element)) if element.dtype.kind == "f" else element.item()


def _decode_float(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a number, or what is given by a word or by its bits."""
    if isinstance(value, str) and value.startswith("0x"):
        bits = bytes.fromhex(value[2:])
        if len(bits) != dtype.itemsize:
            raise ValueError(f"it has {len(bits)} bytes instead of {dtype.itemsize}")
        return np.frombuffer(bits, dtype.newbyteorder(">"), 1).astype(dtype).reshape(())
    return np.array(float(value), dtype)


def _decode_double(value: str) -> float:
    (number,) = struct.unpack("<d", b64decode(value, validate=True))
    return float(number)


def _encode_float(number: float) -> Json:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
