"""Which variables hold times in units that differ between files, and the common units of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from h5zarr.commands.combine.constants import split_missing
from h5zarr.commands.combine.members import Member, times_of
from h5zarr.commands.combine.times import CommonTimes, find_common
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.calendars import bounds_of

_PACKING = {"scale_factor", "add_offset"}


def find_times(variables: Mapping[str, Sequence[Member]]) -> dict[str, CommonTimes]:
    """Return the common units of each joined variable whose time units differ between files.

    Bounds have the units of their variable, so both must be exact in the same unit.
    """
    found: dict[str, CommonTimes] = {}
    for path, members in variables.items():
        if path in found or not members[0].box or not _units_differ(members):
            continue
        folder = path.rpartition("/")[0]
        bounds = {f"{folder}/{bounds_of(one.node.attributes)}" for one in members} & set(variables)
        family = [path, *[name for name in bounds if variables[name][0].box and _units_differ(variables[name])]]
        times = [(one, times_of(one)) for name in family for one in variables[name]]
        if any(_PACKING & set(one.meaning.parameters) for one, _ in times):
            names = f"{times[0][0].piece.name} and other files"
            what = f"{path}: its times are packed and counted in different units, in {names}"
            raise NotJoinable(what, remedy="Leave the variable out with exclude=[PATH].")
        try:
            common = find_common([(split_missing(one)[0], units) for one, units in times if units is not None])
        except Unrepresentable as error:
            raise NotJoinable(f"{path}: {error}", remedy=error.remedy) from None
        found |= dict.fromkeys(family, common)
    return found


def _units_differ(members: Sequence[Member]) -> bool:
    units = {times_of(one) for one in members}
    return None not in units and len({(one.step, one.epoch, one.calendar) for one in units if one is not None}) > 1
