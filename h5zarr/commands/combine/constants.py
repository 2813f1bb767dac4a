"""Whether a variable is the same in several files: in what its numbers mean, not in how they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.cube_axes import Axes
from h5zarr.commands.combine.members import Member, inlined_form, spread, times_of
from h5zarr.commands.combine.times import find_common
from h5zarr.commands.combine.unpacking import PACKING, unpack
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.calendars import TimeUnits
from h5zarr.zarr_model.missing import FILL_VALUE

Values = npt.NDArray[Any]
_TEXTS = ("_Unsigned", "_Encoding")


_LEAVE_OUT = "Leave the variable out with exclude=[PATH]."
_KEEP = f"Keep all with constant='along', or take the first file's with constant='first'. {_LEAVE_OUT}"
_OTHER_GRID = (
    "These files are on another grid: leave them out. If the difference is negligible, use the coordinate of the first "
    "file for all of them with constant='first'."
)


@dataclass(frozen=True, slots=True)
class Unlike:
    """How a variable differs between files, and what to do."""

    text: str
    remedy: str = _LEAVE_OUT


def find_difference(members: Sequence[Member]) -> Unlike | None:
    """Return how a variable differs between files; None if it is the same in all of them."""
    first = members[0]
    known = inlined_form(first.node)
    values: Values | None = None
    for one in members[1:]:
        where = f"in {one.piece.name}"
        if one.node.dimension_names != first.node.dimension_names or one.shape != first.shape:
            return Unlike(f"its shape {where} is not that in {first.piece.name}")
        is_time = times_of(one) is not None and times_of(first) is not None
        if one.meaning.units != first.meaning.units and not is_time:
            return Unlike(f"its units {where} are not those in {first.piece.name}", _KEEP)
        if _packing(one) != _packing(first):
            return Unlike(f"its packing {where} is not that in {first.piece.name}", _KEEP)
        if known is not None and one.meaning == first.meaning and not one.order and inlined_form(one.node) == known:
            continue
        values = first.values() if values is None else values
        if not has_same_values(first, one, values, one.values()):
            return _describe(first, one, values, one.values())
    return None


def _describe(first: Member, one: Member, values: Values, others: Values) -> Unlike:
    """Return how values differ, and by how much if they are numbers."""
    text = f"its values in {one.piece.name} differ from those in {first.piece.name}"
    if values.dtype.kind in "iuf" and others.dtype.kind in "iuf" and values.size:
        apart = np.abs(values.astype(np.float64) - others.astype(np.float64))
        text += f" by up to {float(np.nanmax(apart)):.3g}" if np.isfinite(apart).any() else ""
    is_grid = first.node.dimension_names == (first.path.rpartition("/")[2],)
    return Unlike(text, _OTHER_GRID if is_grid else _KEEP)


def spread_differing(variables: Mapping[str, Sequence[Member]], axes: Axes) -> dict[str, Sequence[Member]]:
    """Return the variables by path. Those without an axis that differ between files get the axis."""
    made: dict[str, Sequence[Member]] = {}
    for path, members in variables.items():
        if any(one.box for one in members) or find_difference(members) is None:
            made[path] = members
            continue
        axis = axes.find(path, axes.names[0]) if axes.names else None
        if len(axes.names) > 1 or axis is None:
            what = f"{path}: it differs between files, but gets an axis only if files are joined along one"
            raise NotJoinable(what, remedy="Take the first file's with constant='first'.")
        made[path] = [part for one in members for part in spread(one, axis)]
    return made


def _packing(member: Member) -> Any:
    """Return how stored numbers become values, apart from missing data, in a form that can be compared."""
    found = [member.meaning.parameters.get(name) for name in PACKING]
    texts = [member.node.attributes.get(name) for name in _TEXTS]
    return [None if one is None else float(one) for one in found], texts


def has_same_values(one: Member, other: Member, values: Values, others: Values) -> bool:
    """Return whether some values of two files mean the same. Missing data may be marked by different numbers.

    Times may be counted in different units. The type of numbers does not matter.
    """
    parts = [split_missing(one, values), split_missing(other, others)]
    if not np.array_equal(parts[0][1], parts[1][1]):
        return False
    there = ~parts[0][1]
    left, right = parts[0][0][there], parts[1][0][there]
    units = times_of(one), times_of(other)
    if units[0] is not None and units[1] is not None and units[0] != units[1]:
        return _are_same_times(left, units[0], right, units[1])
    if left.dtype.kind not in "biufc" or right.dtype.kind not in "biufc":
        return left.dtype.kind == right.dtype.kind and bool(np.all(left == right))
    return np.array_equal(left, right)


def _are_same_times(one: Values, units: TimeUnits, other: Values, others: TimeUnits) -> bool:
    try:
        common = find_common([(one, units), (other, others)])
    except Unrepresentable:
        return False
    return np.array_equal(common.convert(one, units), common.convert(other, others))


def time_numbers(member: Member) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Return the times of a member in its own units, unpacked, and which of them are missing."""
    values, missing = split_missing(member)
    return unpack(values, member.node.attributes, member.meaning), missing


def split_missing(member: Member, values: Values | None = None) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Return values of a member, and which of them are missing. In their place is another value, or 0.

    Without `values`, these are all values of the member.
    """
    values = np.asarray(member.values() if values is None else values)
    missing = np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)
    for name in (FILL_VALUE, "missing_value"):
        if (number := member.meaning.parameters.get(name)) is not None:
            missing = missing | (values == number)
    if missing.any():
        there = values[~missing]
        values = np.where(missing, there[0] if there.size else 0, values).astype(values.dtype)
    return values, np.asarray(missing)
