"""Rules of NZ-1.0 about arrays: their dimensions, coordinates and types. Sections are those of its README."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

import numpy as np

from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.missing import FILL_VALUE
from h5zarr.zarr_model.nz.nodes import NzNode, NzNodes
from h5zarr.zarr_model.nz.rule import NzRule, Unchecked, Verdict, Violation

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
            yield Violation(path, "not every dimension has a name", "Name the dimensions.")


def _has_names(node: NzNode) -> bool:
    names, shape = node.dimension_names, node.shape
    if names is None or shape is None or len(names) != len(shape):
        return False
    return all(isinstance(name, str) and name for name in names)


def _check_scalars(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if node.is_array and node.shape is not None and not len(node.shape) and not _has_names(node):
            what = "the dimension names of a scalar are not an empty list"
            yield Violation(path, what, 'Write "dimension_names": [].')


def _check_shared(nodes: NzNodes) -> Iterator[Verdict]:
    lengths: dict[tuple[str, str], tuple[int, str]] = {}
    for path, node in nodes.items():
        for name, length in zip(node.dimension_names or (), node.shape or (), strict=False):
            if not isinstance(name, str):
                continue
            first, where = lengths.setdefault((node.group, name), (length, path))
            if length != first:
                what = f'dimension "{name}" has length {length} here and {first} in {where}'
                yield Violation(path, what, "Give one of the two dimensions another name.")


def _check_coordinates(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if not node.is_array or node.shape is None or len(node.shape) != 1:
            continue
        if list(node.dimension_names or ()) != [node.name] or node.shape[0] < 2:
            continue
        values = node.values()
        if isinstance(values, str):
            yield Unchecked(path, values)
        elif not ((values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all()):
            what = "it has the name of its dimension, but is not a coordinate: its values are not strictly monotonic"
            yield Violation(path, what, "Give the array another name, or order its values.")


def _check_fixed_text(nodes: NzNodes) -> Iterator[Verdict]:
    for path, name in _named_types(nodes):
        if name in _FIXED_TEXT:
            yield Violation(path, f"text has the data type {name} instead of string", "Convert it, or do not use NZ.")


def _check_type_names(nodes: NzNodes) -> Iterator[Verdict]:
    for path, name in _named_types(nodes):
        if name not in _FIXED_TEXT:
            what = f"the data type {name} is not a plain name"
            yield Violation(path, what, "Leave the array out, or do not use NZ.")


def _named_types(nodes: NzNodes) -> Iterator[tuple[str, str]]:
    """Yield the path and the type's name of each array whose data type is an object, not a plain name."""
    for path, node in nodes.items():
        if isinstance(node.data_type, dict) and isinstance(node.data_type.get("name"), str):
            yield path, node.data_type["name"]


def _check_core_types(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if isinstance(node.data_type, str) and node.data_type not in CORE_TYPES | {"string"}:
            what = f"readers of NZ need not support the data type {node.data_type[:60]}"
            yield Violation(path, what, "Leave the array out, or do not use NZ.")


def _check_missing(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if not node.is_array or FILL_VALUE not in node.attributes:
            continue
        if wrong := _wrong_missing(node.attributes[FILL_VALUE], node.data_type):
            yield Violation(path, f"{FILL_VALUE} is not a value of the array's data type: {wrong}", "Correct it.")


def _wrong_missing(value: Json, data_type: Json) -> str:
    """Return why a value does not fit a type; "" if it fits, or if that cannot be decided.

    Both forms of floats in use are accepted: a plain number, as in the convention's example, and base64, as in the
    `_FillValue` attribute extension.
    """
    if data_type == "bool":
        return "" if isinstance(value, bool) else "it is neither true nor false"
    if data_type == "string":
        return "" if isinstance(value, str) else "it is not text"
    if not isinstance(data_type, str) or data_type not in CORE_TYPES | {"float16"}:
        return ""
    kind = np.dtype(data_type).kind
    if kind in "iu":
        limits = np.iinfo(data_type)
        is_right = type(value) is int and int(limits.min) <= value <= int(limits.max)
        return "" if is_right else f"it is not an integer from {limits.min} to {limits.max}"
    if kind == "c":
        is_right = isinstance(value, list) and len(value) == 2 and all(map(_is_float, value))
        return "" if is_right else "it is not a pair of numbers"
    return "" if _is_float(value) else "it is neither a number nor base64 of one"


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
