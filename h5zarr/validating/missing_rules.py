"""Rules of the `_FillValue` attribute, an extension that is registered for Zarr version 3: the form of each type."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from h5zarr.hierarchy import Json
from h5zarr.validating.data_types import COMPLEX, FLOATS, INTEGERS, find_type
from h5zarr.validating.members import attributes_of
from h5zarr.validating.raw import RawNode
from h5zarr.validating.rules import Found, Level, Result, Rule, each_array

_ATTRIBUTE = "_FillValue"
_COVERED = {"bool", *INTEGERS, *FLOATS, "bytes", "string"}
_DOUBLE_NBYTES = 8


def _check_form(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    attributes = attributes_of(node)
    if isinstance(kind, str) or _ATTRIBUTE not in attributes:
        return
    value = attributes[_ATTRIBUTE]
    if kind.name in FLOATS:
        wrong = _wrong_double(value)
    elif kind.name in COMPLEX:  # not of the extension, but of xarray, whose way it describes
        is_pair = isinstance(value, list) and len(value) == 2
        wrong = _wrong_double(value[0]) or _wrong_double(value[1]) if is_pair else "it is no list of two numbers"
    elif kind.name == "bytes":
        wrong = "" if _nbytes(value) is not None else "it is no text in base64"
    elif kind.name in _COVERED:
        wrong = kind.wrong(value)
    else:
        return
    if wrong:
        yield Found(node.path, f"{_ATTRIBUTE} of an array of {kind.name}: {wrong}", "Write it as the extension has it.")


def _wrong_double(value: Json) -> str:
    if _nbytes(value) == _DOUBLE_NBYTES:
        return ""
    return "it is not the base64 of the 8 bytes of a little-endian double, and xarray fails on it"


def _nbytes(value: Json) -> int | None:
    """Return how many bytes a text in base64 stands for, or None if it is none."""
    try:
        return len(b64decode(value, validate=True)) if isinstance(value, str) else None
    except ValueError:
        return None


def _check_type(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    if isinstance(kind, str) or _ATTRIBUTE not in attributes_of(node):
        return
    if kind.name not in _COVERED and kind.name not in COMPLEX:
        what = f"{_ATTRIBUTE} stands on an array of {kind.name}, for which it is not defined: xarray fails on it"
        yield Found(node.path, what, "Take the attribute out.")


_SECTION = "zarr-extensions: _FillValue: Attribute values"
RULES = (
    Rule(
        id="fill/form",
        level=Level.ERROR,
        section=_SECTION,
        asks="`_FillValue` has the form of the data type: floats are base64 of a little-endian double",
        check=each_array(_check_form),
    ),
    Rule(
        id="fill/type",
        level=Level.WARNING,
        section=_SECTION,
        asks="`_FillValue` stands on types that it is defined for",
        check=each_array(_check_type),
    ),
)
