"""Compare a part of a cube with one of its files: what the numbers mean there, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.verify.cube_places import Cell, StoredVariable
from h5zarr.commands.verify.differences import Difference, Values
from h5zarr.commands.verify.json_values import NotCompared, same_json
from h5zarr.commands.verify.verified_arrays import TrueVariable, cast_fill, plain_fill
from h5zarr.zarr_model.calendars import STEPS, TimeUnits, share_dates
from h5zarr.zarr_model.hierarchy import ArrayNode, Json
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing
from h5zarr.zarr_model.units import canonical_units

PARAMETERS = ("scale_factor", "add_offset", FILL_VALUE, "missing_value")
"""Attributes that say which number a stored number means. They may differ between files."""

_NUMBERS = (*PARAMETERS, "_Unsigned")
_MEANING = (*_NUMBERS, "_Encoding", "dtype")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeArray:
    """An array of a cube and what its numbers mean: its time units, and parameters along one of its dimensions."""

    stored: StoredVariable
    times: TimeUnits | None = None
    parameters: Mapping[str, Values] = field(default_factory=dict)
    parameter_axis: int = 0

    @property
    def node(self) -> ArrayNode:
        return self.stored.node


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileVariable:
    """A variable of a file, with its attributes in JSON form and its time units.

    `lengths` has the lengths of the axes in the file, by dimension of the cube's array, where a coordinate says so.
    """

    number: int
    variable: TrueVariable
    attributes: Mapping[str, Any]
    times: TimeUnits | None = None
    lengths: Mapping[int, int] = field(default_factory=dict)


def cell_differs(array: CubeArray, cell: Cell, found: Values, file: FileVariable) -> Difference | None:
    """Return how the values of a cell differ from those in a file; indexes are those of the cube."""
    differs = _shape_differs(array, cell, file) or _meaning_differs(array, cell, file)
    if differs is not None:
        return differs
    new = len(array.node.shape) - len(file.variable.shape)
    rank = len(file.variable.own_shape)
    source = cell.source(file.number)[new:]
    # NetCDF shows a variable as long as its unlimited dimension. What is beyond its end is not compared.
    own = tuple(
        slice(min(one.start, extent), min(one.stop, extent))
        for one, extent in zip(source[:rank], file.variable.own_shape, strict=True)
    )
    if any(one.start == one.stop for one in own):
        return None
    expected = file.variable.read(own)
    if source[rank:]:  # chunks may split the elements of an array data type
        inside: tuple[Any, ...] = (..., *source[rank:])
        expected = expected[inside]
    # Along an axis that the variable got, all elements of a file are the same.
    expected = np.broadcast_to(expected, (*found.shape[:new], *expected.shape))
    if expected.shape:  # () would take text out of its array
        found = found[tuple(slice(0, length) for length in expected.shape)]
    difference = _values_differ(array, found, expected, file)
    return None if difference is None else difference.moved(cell.start)


def _shape_differs(array: CubeArray, cell: Cell, file: FileVariable) -> Difference | None:
    """Return how the shape in a file differs from what the cube says about it."""
    shape, new = file.variable.shape, len(array.node.shape) - len(file.variable.shape)
    if new < 0 or any(number not in array.stored.axes for number in range(new)):
        return Difference("shape", str(array.node.shape), str(shape))
    grows = (*file.variable.grows, *(False for _ in shape[len(file.variable.grows) :]))
    for number, length in enumerate(array.node.shape):
        axis = array.stored.axes.get(number)
        ours = length if axis is None else axis.lengths.get(file.number, 0)
        if number < new:
            continue
        theirs = shape[number - new]
        # netCDF extends a variable to the length of its unlimited dimension, which its coordinate has.
        longest = file.lengths.get(number, ours) if grows[number - new] else theirs
        if ours != theirs and not theirs < ours <= longest:
            return Difference(f"length of {array.node.dimension_names[number]}", str(ours), str(theirs))
    return None


# --- what the numbers mean


def _meaning_differs(array: CubeArray, cell: Cell, file: FileVariable) -> Difference | None:
    """Return how units or packing differ. Times may have other units: their values are compared as times."""
    ours, theirs = array.times, file.times
    if (ours is None) != (theirs is None) or (ours is None and not _same(array, file, "units")):
        found, expected = (repr(one.get("units")) for one in (array.node.attributes, file.attributes))
        return Difference("units", found, expected)
    if ours is not None and theirs is not None and not share_dates((ours.calendar, theirs.calendar)):
        return Difference("calendar", repr(ours.calendar), repr(theirs.calendar))
    is_converted = _is_converted(array, file)
    for name in _MEANING:
        if is_converted and name in _NUMBERS:
            continue  # applied when times are compared
        if name in array.parameters:
            if difference := _parameter_differs(array, cell, file, name):
                return difference
        elif not _same(array, file, name):
            ours_shown, theirs_shown = (
                repr(one.get(name, "missing")) for one in (array.node.attributes, file.attributes)
            )
            return Difference(f"attribute {name}", ours_shown, theirs_shown)
    return None


def _same(array: CubeArray, file: FileVariable, name: str) -> bool:
    found, expected = array.node.attributes.get(name), file.attributes.get(name)
    if name not in array.node.attributes:
        # A `_FillValue` that masks nothing is left out: docs/fill-values.md.
        return name == FILL_VALUE or name not in file.attributes or not isinstance(expected, str | int | float | list)
    if name not in file.attributes:
        return False
    if expected is NotCompared or not isinstance(expected, str | int | float | list):
        return True
    if name == FILL_VALUE:
        found, expected = plain_fill(found), cast_fill(expected, array.node)
    if name == "units" and isinstance(found, str) and isinstance(expected, str):
        return canonical_units(found) == canonical_units(expected)
    return same_json(found, expected)


def _parameter_differs(array: CubeArray, cell: Cell, file: FileVariable, name: str) -> Difference | None:
    """Return how the recorded parameters of a cell differ from the attribute of its file."""
    along = cell.inner[array.parameter_axis]
    expected: Json = file.attributes.get(name)
    if name == FILL_VALUE and expected is not None:
        expected = cast_fill(expected, array.node)
    for number, found in enumerate(array.parameters[name][along].tolist()):
        if not same_json(found, expected):
            shown = "none" if expected is None else repr(expected)
            return Difference(name, repr(found), shown, (cell.start[array.parameter_axis] + number,))
    return None


# --- values


def _is_converted(array: CubeArray, file: FileVariable) -> bool:
    """Return whether times were written again: in other units, unpacked, or with another mark for missing ones."""
    ours, theirs = array.times, file.times
    if ours is None or theirs is None:
        return False
    if (ours.step, ours.epoch) != (theirs.step, theirs.epoch):
        return True
    is_packed = all(name in array.parameters or _same(array, file, name) for name in _NUMBERS)
    return not array.node.manifest.count and not is_packed


def _values_differ(array: CubeArray, found: Values, expected: Values, file: FileVariable) -> Difference | None:
    if array.times is not None and file.times is not None and _is_converted(array, file):
        masks = (
            _is_missing(found, array.node.attributes, array.node),
            _is_missing(expected, file.attributes, array.node),
        )
        return times_differ(found, expected, array.times, file, masks)
    is_number = found.dtype.kind in "iuf" and expected.dtype.kind in "iuf"
    if (
        is_number
        and found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("=")
        and not array.node.manifest.count
    ):
        # Files of different types share an inlined array, whose type can hold the values of all.
        converted = expected.astype(found.dtype)
        if np.array_equal(converted.astype(expected.dtype), expected, equal_nan=expected.dtype.kind == "f"):
            expected = converted
    return file.variable.differs(found, expected)


def _is_missing(values: Values, attributes: Mapping[str, Any], node: ArrayNode) -> npt.NDArray[np.bool_]:
    """Return which times are missing."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    for name in (FILL_VALUE, "missing_value"):
        number = plain_fill(attributes.get(name)) if name == FILL_VALUE else attributes.get(name)
        if isinstance(number, int | float):
            missing = missing | (values == np.asarray(number).astype(values.dtype))
    return missing


def times_differ(
    found: Values, expected: Values, ours: TimeUnits, file: FileVariable, missing: tuple[Values, Values]
) -> Difference | None:
    """Return how times in different units differ. Floating-point times may be rounded, as xarray rounds them.

    `missing` says which of each are missing.
    """
    theirs, numbers = file.times, _unpack(expected, file.attributes)
    assert theirs is not None
    unit = 1 if theirs.is_of_numpy else 1_000  # nanoseconds in the unit of xarray's dates
    kind = np.float32 if numbers is not expected else numbers.dtype  # xarray may unpack to this type
    for index in np.ndindex(found.shape):
        if missing[0][index] and missing[1][index]:
            continue
        count, number = found[index].item(), numbers[index].item()
        is_same = missing[0][index] == missing[1][index]
        if is_same:
            made = (count * ours.step + ours.epoch - theirs.epoch) / theirs.step
            is_float = numbers.dtype.kind == "f"
            room = 3 * float(np.spacing(np.abs(numbers[index].astype(kind)))) + unit / theirs.step if is_float else 0
            is_same = abs(made - number) <= room
        if not is_same:
            return Difference("time", _shown(count, ours), _shown(number, theirs), index)
    return None


def slots_differ(found: Values, expected: Values, ours: TimeUnits, units: TimeUnits) -> Difference | None:
    """Return how the times of an axis differ from those that were laid out ahead."""
    for number, (count, other) in enumerate(zip(found.tolist(), expected.tolist(), strict=True)):
        if count * ours.step + ours.epoch != other * units.step + units.epoch:
            return Difference("time", _shown(count, ours), _shown(other, units), (number,))
    return None


def _unpack(values: Values, attributes: Mapping[str, Any]) -> Values:
    """Return the numbers that packed ones mean."""
    scale, offset = (attributes.get(name) for name in ("scale_factor", "add_offset"))
    if attributes.get("_Unsigned") == "true" and values.dtype.kind == "i":
        values = values.astype(values.dtype.newbyteorder("=")).view(f"u{values.dtype.itemsize}")
    if scale is None and offset is None:
        return values
    return values * float(1 if scale is None else scale) + float(0 if offset is None else offset)


def _shown(number: float, units: TimeUnits) -> str:
    name = next(name for name, step in STEPS.items() if step == units.step)
    return f"{number!r} {units.in_steps(name)}"


def missing_differs(array: CubeArray, found: Values, cell: Cell) -> Difference | None:
    """Return which values of a cell are not missing data, although no file has any."""
    number: Any = None
    if found.dtype.kind in "iuf":
        number = decode_missing(array.node.attributes.get(FILL_VALUE), found.dtype.newbyteorder("="))
    if number is None and found.dtype.kind == "f":
        number = np.array(np.nan, found.dtype)
    is_missing = (
        np.zeros(found.shape, bool) if number is None else (found == number) | ((found != found) & (number != number))
    )
    if is_missing.all():
        return None
    index = tuple(int(at) for at in np.argwhere(~is_missing)[0])
    return Difference("value", repr(found[index].item()), "missing data, because no file has it", index).moved(
        cell.start
    )


def not_equal_attributes(node: ArrayNode, expected: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield how the other attributes of an array differ from those of its first file.

    The cube may lack some of them, and have more from other files.
    """
    for name, value in expected.items():
        if name in (*_MEANING, "units", "calendar") or name not in node.attributes:
            continue
        if isinstance(value, str | int | float | list) and not same_json(node.attributes[name], value):
            yield Difference(f"attribute {name}", repr(node.attributes[name]), repr(value))
