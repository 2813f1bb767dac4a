"""Which variables hold times in units that differ between files, and the common units of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from h5zarr.commands.combine.constants import time_numbers
from h5zarr.commands.combine.cube_axes import Axes
from h5zarr.commands.combine.members import Member, times_of
from h5zarr.commands.combine.times import CommonTimes, find_common
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.calendars import bounds_of


def find_times(variables: Mapping[str, Sequence[Member]], axes: Axes) -> dict[str, CommonTimes]:
    """Return the common units of each joined variable whose time units differ between files.

    Bounds have the units of their variable, so both must be exact in the same unit. The units of an axis that is laid
    out ahead are not those of its files.
    """
    found: dict[str, CommonTimes] = {}
    laid_out = {axis.path: axis for axis in axes.by_place.values() if axis.is_laid_out}
    for path, members in variables.items():
        axis = laid_out.get(path)
        if path in found or not members[0].box or not (axis is not None or _units_differ(members)):
            continue
        folder = path.rpartition("/")[0]
        bounds = {f"{folder}/{bounds_of(one.node.attributes)}" for one in members} & set(variables)
        moved = [name for name in bounds if variables[name][0].box]
        family = [path, *[name for name in moved if axis is not None or _units_differ(variables[name])]]
        times = [(one, times_of(one)) for name in family for one in variables[name]]
        whole = [] if axis is None or axis.values is None or axis.times is None else [(axis.values, axis.times)]
        try:
            counted = [(time_numbers(one)[0], units) for one, units in times if units is not None]
            common = find_common([*whole, *counted])
        except Unrepresentable as error:
            raise NotJoinable(f"{path}: {error}", remedy=error.remedy) from None
        found |= dict.fromkeys(family, common)
    return found


def _units_differ(members: Sequence[Member]) -> bool:
    units = {times_of(one) for one in members}
    return None not in units and len({(one.step, one.epoch, one.calendar) for one in units if one is not None}) > 1
