"""Rules of NZ-1.0 about arrays: their dimensions, coordinates and types. Sections are those of its README."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

import numpy as np

from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.missing import FILL_VALUE
from h5zarr.zarr_model.nz.nodes import NzNode, NzNodes
from h5zarr.zarr_model.nz.rule import Against, NzRule, Untold, Verdict

CORE_TYPES = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float32", "float64", "complex64", "complex128"),
    }
)
_FIXED_TEXT = ("null_terminated_bytes", "fixed_length_utf32")


def _check_names_of_dimensions(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if node.is_array and node.shape is not None and len(node.shape) and not _has_names(node):
            yield Against(path, "not every dimension has a name", "Name the dimensions.")


def _has_names(node: NzNode) -> bool:
    names, shape = node.dimension_names, node.shape
    if names is None or shape is None or len(names) != len(shape):
        return False
    return all(isinstance(name, str) and name for name in names)


def _check_scalars(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if node.is_array and node.shape is not None and not len(node.shape) and not _has_names(node):
            yield Against(path, "the scalar has no empty list of dimension names", 'Write "dimension_names": [].')


def _check_shared(nodes: NzNodes) -> Iterator[Verdict]:
    lengths: dict[tuple[str, str], tuple[int, str]] = {}
    for path, node in nodes.items():
        for name, length in zip(node.dimension_names or (), node.shape or (), strict=False):
            if not isinstance(name, str):
                continue
            first, where = lengths.setdefault((node.group, name), (length, path))
            if length != first:
                what = f'dimension "{name}" has length {length} here and {first} in {where}'
                yield Against(path, what, "Give one of the two dimensions another name.")


def _check_coordinates(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if not node.is_array or node.shape is None or len(node.shape) != 1:
            continue
        if list(node.dimension_names or ()) != [node.name] or node.shape[0] < 2:
            continue
        values = node.values()
        if isinstance(values, str):
            yield Untold(path, values)
        elif not ((values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all()):
            what = "its values are not strictly monotonic: it has the name of its dimension, and is no coordinate of it"
            yield Against(path, what, "Give the array another name, or order its values.")


def _check_fixed_text(nodes: NzNodes) -> Iterator[Verdict]:
    for path, name in _named_types(nodes):
        if name in _FIXED_TEXT:
            yield Against(path, f"text is in the data type {name}, and not in string", "Do without NZ, or convert it.")


def _check_type_names(nodes: NzNodes) -> Iterator[Verdict]:
    for path, name in _named_types(nodes):
        if name not in _FIXED_TEXT:
            what = f"the data type {name} is none that is named by a word"
            yield Against(path, what, "Leave the array out, or do without NZ.")


def _named_types(nodes: NzNodes) -> Iterator[tuple[str, str]]:
    """Yield the path and the name of the type of each array whose type is more than a word."""
    for path, node in nodes.items():
        if isinstance(node.data_type, dict) and isinstance(node.data_type.get("name"), str):
            yield path, node.data_type["name"]


def _check_core_types(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if isinstance(node.data_type, str) and node.data_type not in CORE_TYPES | {"string"}:
            what = f"not every reader of NZ has to know the data type {node.data_type[:60]}"
            yield Against(path, what, "Leave the array out, or do without NZ.")


def _check_missing(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if not node.is_array or FILL_VALUE not in node.attributes:
            continue
        if wrong := _wrong_missing(node.attributes[FILL_VALUE], node.data_type):
            yield Against(path, f"{FILL_VALUE} is no value of the array's data type: {wrong}", "Write one that is.")


def _wrong_missing(value: Json, data_type: Json) -> str:
    """Return why a value is none of a type, in any of the forms that are in use; "" if it is one, or nobody can tell.

    The convention's own example has a plain number for floats, the `_FillValue` attribute extension base64.
    """
    if data_type == "bool":
        return "" if isinstance(value, bool) else "it is neither true nor false"
    if data_type == "string":
        return "" if isinstance(value, str) else "it is no text"
    if not isinstance(data_type, str) or data_type not in CORE_TYPES | {"float16"}:
        return ""
    kind = np.dtype(data_type).kind
    if kind in "iu":
        limits = np.iinfo(data_type)
        is_right = type(value) is int and int(limits.min) <= value <= int(limits.max)
        return "" if is_right else f"it is no integer from {limits.min} to {limits.max}"
    if kind == "c":
        is_right = isinstance(value, list) and len(value) == 2 and all(map(_is_float, value))
        return "" if is_right else "it is no pair of numbers"
    return "" if _is_float(value) else "it is no number, nor base64 of one"


def _is_float(value: Json) -> bool:
    if not isinstance(value, str):
        return type(value) in (int, float)
    try:
        return value in ("NaN", "Infinity", "-Infinity") or len(b64decode(value, validate=True)) == 8
    except ValueError:
        return False


RULES = (
    NzRule(
        name="dimension-names",
        is_must=True,
        section="Data Model: Array; Array Structural Requirements",
        asks="every dimension has a non-empty name",
        check=_check_names_of_dimensions,
    ),
    NzRule(
        name="shared-dimensions",
        is_must=True,
        section="Data Model: Dimension; Array Structural Requirements",
        asks="within a group, dimensions with the same name have the same length",
        check=_check_shared,
    ),
    NzRule(
        name="scalar-arrays",
        is_must=True,
        section="Data Model: Scalar Array",
        asks="a scalar array has `[]` as dimension names",
        check=_check_scalars,
    ),
    NzRule(
        name="dimension-coordinates",
        is_must=False,
        section="Data Model: Dimension Coordinate",
        asks="an array with the name of its only dimension is strictly monotonic",
        check=_check_coordinates,
    ),
    NzRule(
        name="core-types",
        is_must=False,
        section="Type System: Array Data Types",
        asks="data types are those that every reader must support, or `string`",
        check=_check_core_types,
    ),
    NzRule(
        name="string-type",
        is_must=False,
        section="Type System: Array Data Types",
        asks="text has the data type `string`",
        check=_check_fixed_text,
    ),
    NzRule(
        name="type-names",
        is_must=False,
        section="schema.json: arrayRequirements",
        asks="data types are plain names, not objects",
        check=_check_type_names,
    ),
    NzRule(
        name="missing-value",
        is_must=True,
        section="The _FillValue Attribute",
        asks="`_FillValue` is a value of the array's data type",
        check=_check_missing,
    ),
)
