"""A variable in the files of a cube: its place in the cube, the units of its times, and whether it is constant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.axes import CubeAxis, NotJoinable
from h5zarr.commands.combine.calendars import TimeUnits, parse_units
from h5zarr.commands.combine.joining import Placed
from h5zarr.commands.combine.pieces import CubePiece, same_values
from h5zarr.commands.combine.times import CommonTimes, bounds_of, find_common
from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest, VariableRecord

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A variable in one piece, with an axis of length 1 for each new axis that it gets.

    `slots` pairs the number of each joined dimension with the number of the piece's slot along it.
    """

    piece: CubePiece
    path: str
    node: ArrayNode
    slots: tuple[tuple[int, int], ...]
    first_url: int

    @property
    def record(self) -> VariableRecord | None:
        return self.piece.hierarchy.record_of(self.path)

    def values(self) -> Values:
        """Return all values as stored, with the new axes."""
        return self.piece.values(self.path).reshape(self.node.shape)

    def placed(self) -> Placed:
        return Placed(node=self.node, slots=self.slots, first_url=self.first_url)


def expand(node: ArrayNode, axes: Sequence[CubeAxis]) -> ArrayNode:
    """Return an array with a leading dimension of length 1 for each new axis."""
    if not axes:
        return node
    count, manifest = len(axes), node.manifest
    zeros = np.zeros((manifest.count, count), np.int64)
    return replace(
        node,
        grid=RegularGrid((1,) * count + node.shape, (1,) * count + node.chunk_shape),
        dimension_names=(*[axis.name for axis in axes], *node.dimension_names),
        manifest=Manifest(
            address=manifest.address,
            nbytes=manifest.nbytes,
            source=manifest.source,
            index=np.concatenate((zeros, manifest.index), axis=1),
            inline={(0,) * count + key: content for key, content in manifest.inline.items()},
        ),
    )


def times_of(member: Member) -> TimeUnits | None:
    """Return the time units of a variable; bounds have those of the variable that they belong to."""
    own = parse_units(member.node.attributes)
    if own is not None:
        return own
    folder, _, name = member.path.rpartition("/")
    for path, node in member.piece.arrays.items():
        if path.rpartition("/")[0] == folder and bounds_of(node.attributes) == name:
            return parse_units(node.attributes)
    return None


def find_times(variables: Mapping[str, Sequence[Member]]) -> dict[str, CommonTimes]:
    """Return the common units of each variable whose time units differ between files.

    Bounds have the units of their variable, so both must be exact in the same unit.
    """
    found: dict[str, CommonTimes] = {}
    for path, members in variables.items():
        if path in found or parse_units(members[0].node.attributes) is None or not _units_differ(members):
            continue
        folder = path.rpartition("/")[0]
        bounds = {f"{folder}/{bounds_of(one.node.attributes)}" for one in members} & set(variables)
        family = [path, *[name for name in bounds if parse_units(variables[name][0].node.attributes) is None]]
        times = [(one.values(), times_of(one)) for name in family for one in variables[name]]
        try:
            common = find_common([(values, units) for values, units in times if units is not None])
        except Unrepresentable as error:
            raise NotJoinable(f"{path}: {error}", remedy=error.remedy) from None
        found |= dict.fromkeys(family, common)
    return found


def _units_differ(members: Sequence[Member]) -> bool:
    units = {times_of(one) for one in members}
    return None not in units and len({(one.step, one.epoch, one.calendar) for one in units if one is not None}) > 1


def is_same_part(one: Member, other: Member) -> bool:
    """Return whether two pieces have the same values of a variable; times may be counted in different units."""
    units = times_of(one), times_of(other)
    if units[0] is None or units[1] is None or units[0] == units[1]:
        return same_values(one.values(), other.values())
    try:
        common = find_common([(one.values(), units[0]), (other.values(), units[1])])
    except Unrepresentable:
        return False
    return same_values(common.convert(one.values(), units[0]), common.convert(other.values(), units[1]))


def check_constant(path: str, members: Sequence[Member]) -> None:
    """Raise NotJoinable if a variable without the joined axes differs between files."""
    first = members[0]
    known = _raw(first.node)
    values: Values | None = None
    for one in members[1:]:
        if known is not None and _raw(one.node) == known:
            continue
        values = first.values() if values is None else values
        if not same_values(values, one.values()):
            what = f"{path}: its values in {one.piece.name} differ from those in {first.piece.name}"
            raise NotJoinable(what)


def _raw(node: ArrayNode) -> Any:
    """Return the values of an inlined array in a form that can be compared; None for one that is referenced."""
    if node.manifest.count:
        return None
    return node.shape, json.dumps(node.data_type), json.dumps(node.codecs), dict(node.manifest.inline)
