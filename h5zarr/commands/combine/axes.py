"""Axes of a cube: which files have which part of each.

Dimensions belong to groups. If groups have coordinates of their own for a dimension of the same name, each has its own
axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.along import Along, NewCoordinate, read_coordinate
from h5zarr.commands.combine.order import Sections, place, stack
from h5zarr.commands.combine.pieces import CubePiece, names_of
from h5zarr.commands.combine.times import find_common
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.calendars import TimeUnits, parse_units

Values = npt.NDArray[Any]
_ONE_EACH = "Give a pattern only for a dimension of length 1, or for a new dimension."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeAxis:
    """An axis along which files are joined, in the group `folder` ("" for the root) and the groups in it.

    `sections` says for each file which part of the axis it has. `values` are the coordinates, if there are any; if they
    are times, `times` has their units. `coordinate` describes those that no file has.
    """

    name: str
    folder: str
    is_new: bool
    length: int
    sections: tuple[Sections, ...]
    values: Values | None = None
    times: TimeUnits | None = None
    coordinate: NewCoordinate | None = None

    def label(self, position: int) -> str:
        """Return the date at a position, if the coordinates are times; else the position."""
        if self.times is None or self.values is None:
            return str(position)
        return self.times.date(self.values[position].item())

    @property
    def part_count(self) -> int:
        """The number of different ranges that files have."""
        return len({(one.position, one.length) for sections in self.sections for one in sections})


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """All axes of a cube. `names` are those that the user gave."""

    names: tuple[str, ...]
    by_place: Mapping[tuple[str, str], CubeAxis]

    def find(self, path: str, name: str) -> CubeAxis | None:
        """Return the axis that a dimension of the variable at `path` belongs to; None if it is not joined."""
        folder = path
        while folder and name in self.names:
            folder = folder.rpartition("/")[0]
            if (axis := self.by_place.get((folder, name))) is not None:
                return axis
        return None

    def of(self, path: str, names: Sequence[str]) -> dict[int, CubeAxis]:
        """Return the axes of a variable with these dimensions, by the number of the dimension."""
        found = {number: self.find(path, name) for number, name in enumerate(names)}
        return {number: axis for number, axis in found.items() if axis is not None}

    @property
    def new(self) -> tuple[CubeAxis, ...]:
        """The axes that no file has."""
        return tuple(axis for axis in self.by_place.values() if axis.is_new)

    @property
    def main(self) -> tuple[CubeAxis, ...]:
        """One axis for each name: the one nearest to the root."""
        first: dict[str, CubeAxis] = {}
        for axis in self.by_place.values():
            first.setdefault(axis.name, axis)
        return tuple(first.values())


def find_axes(pieces: Sequence[CubePiece], along: Sequence[Along]) -> Axes:
    """Return the axes with these names. Raises NotJoinable if the pieces cannot be put in order."""
    found: dict[tuple[str, str], CubeAxis] = {}
    for one in along:
        for axis in _find_axes(pieces, one):
            found[axis.folder, axis.name] = axis
    return Axes(tuple(one.name for one in along), found)


def _find_axes(pieces: Sequence[CubePiece], along: Along) -> list[CubeAxis]:
    name = along.name
    lengths = _lengths_by_folder(pieces, name)
    if not lengths:
        _check_spelling(pieces, along)
        return [_make_new(pieces, along)]
    if along.coordinate_of is not None:
        return [_order_by_source(pieces, along, lengths)]
    folders = sorted(lengths, key=lambda folder: (folder.count("/"), folder))
    axes: list[CubeAxis] = []
    for folder in folders:
        path = f"{folder}/{name}"
        has = [name == "" or _has_coordinate(piece, path, (name,)) for piece in pieces]
        parent = next((axis for axis in reversed(axes) if f"{folder}/".startswith(f"{axis.folder}/")), None)
        if any(has):
            _check_all_have(pieces, path, lengths[folder], has)
            axes.append(_order_by_coordinate(pieces, name, folder))
        elif parent is None or not _fits(parent, lengths[folder]):
            axes.append(_follow(pieces, name, folder, lengths[folder], parent))
    return axes


def _check_spelling(pieces: Sequence[CubePiece], along: Along) -> None:
    """Raise NotJoinable if the name of a new axis is almost that of a dimension, or several names."""
    known = dict.fromkeys(name for node in pieces[0].arrays.values() for name in node.dimension_names)
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(along.name.lower(), lowered, 1, 0.75)
    what = f"no file has the dimension {along.name}"
    if close and along.coordinate_of is None:
        raise NotJoinable(what, remedy=f"Did you mean along=[{lowered[close[0]]}]? Give a new dimension another name.")
    if "," in along.name:
        raise NotJoinable(what, remedy="Give each dimension by itself, as in along=['lat', 'lon'].")


def _lengths_by_folder(pieces: Sequence[CubePiece], name: str) -> dict[str, list[int | None]]:
    """Return the length of a dimension in each group and file; None for a file without it."""
    found: dict[str, list[int | None]] = {}
    for number, piece in enumerate(pieces):
        for path, node in piece.arrays.items():
            if name not in node.dimension_names:
                continue
            length = node.shape[node.dimension_names.index(name)]
            lengths = found.setdefault(path.rpartition("/")[0], [None] * len(pieces))
            if lengths[number] not in (None, length):
                raise NotJoinable(f"{piece.name}: the dimension {name} has several lengths, also in {path}")
            lengths[number] = length
    return found


def _has_coordinate(piece: CubePiece, path: str, dimension_names: tuple[str, ...]) -> bool:
    node = piece.arrays.get(path)
    return node is not None and node.dimension_names == dimension_names


def _check_all_have(pieces: Sequence[CubePiece], path: str, lengths: Sequence[int | None], has: Sequence[bool]) -> None:
    lacking = [piece for piece, length, one in zip(pieces, lengths, has, strict=True) if length is not None and not one]
    if lacking:
        raise NotJoinable(f"{names_of(lacking)}: the coordinate {path} is missing, which other files have")


def _fits(axis: CubeAxis, lengths: Sequence[int | None]) -> bool:
    """Return whether a group can share the axis of a group above it."""
    own = [sum(one.length for one in sections) for sections in axis.sections]
    return all(length in (None, other) for length, other in zip(lengths, own, strict=True))


def _order_by_coordinate(pieces: Sequence[CubePiece], name: str, folder: str) -> CubeAxis:
    path = f"{folder}/{name}"
    has = [_has_coordinate(piece, path, (name,)) for piece in pieces]
    found, times = comparable_values([piece for piece, one in zip(pieces, has, strict=True) if one], path)
    values = iter(found)
    union, sections = place([next(values) if one else None for one in has])
    return CubeAxis(
        name=name,
        folder=folder,
        is_new=False,
        length=len(union),
        sections=tuple(sections),
        values=union,
        times=times,
    )


def _follow(
    pieces: Sequence[CubePiece], name: str, folder: str, lengths: Sequence[int | None], other: CubeAxis | None
) -> CubeAxis:
    """Return an axis without a coordinate. Files follow each other as along the axis of a group above, or as given."""
    positions = [one[0].position if one else -1 for one in other.sections] if other else [0] * len(pieces)
    order = sorted(range(len(pieces)), key=lambda number: (positions[number], number))
    length, arranged = stack([lengths[number] for number in order])
    sections: list[Sections] = [()] * len(pieces)
    for number, one in zip(order, arranged, strict=True):
        sections[number] = one
    return CubeAxis(name=name, folder=folder, is_new=False, length=length, sections=tuple(sections))


def _order_by_source(
    pieces: Sequence[CubePiece], along: Along, lengths: Mapping[str, Sequence[int | None]]
) -> CubeAxis:
    """Return an axis of the files with one element in each, whose coordinate comes from names or attributes."""
    for folder, found in lengths.items():
        long = [piece for piece, length in zip(pieces, found, strict=True) if length not in (None, 1)]
        if long:
            what = f"{names_of(long)}: {along.name} has several elements in the group {folder or '/'}, not one"
            raise NotJoinable(what, remedy=_ONE_EACH)
    return _by_source(pieces, along, is_new=False)


def _by_source(pieces: Sequence[CubePiece], along: Along, *, is_new: bool) -> CubeAxis:
    coordinate = read_coordinate(along, pieces)
    union, sections = place([coordinate.values[number : number + 1] for number in range(len(pieces))])
    return CubeAxis(
        name=along.name,
        folder="",
        is_new=is_new,
        length=len(union),
        sections=tuple(sections),
        values=union,
        times=parse_units(coordinate.attributes),
        coordinate=NewCoordinate(union, coordinate.attributes),
    )


def _make_new(pieces: Sequence[CubePiece], along: Along) -> CubeAxis:
    """Return an axis that no file has. A scalar of this name orders the pieces; without one, they keep their order."""
    if along.coordinate_of is not None:
        return _by_source(pieces, along, is_new=True)
    name = along.name
    paths = [path for path, node in pieces[0].arrays.items() if path.rpartition("/")[2] == name and not node.shape]
    shared = [path for path in paths if all(_has_coordinate(piece, path, ()) for piece in pieces)]
    if not shared:
        length, sections = stack([1] * len(pieces))
        return CubeAxis(name=name, folder="", is_new=True, length=length, sections=tuple(sections))
    values, times = comparable_values(pieces, min(shared, key=lambda path: path.count("/")))
    union, sections = place(values)
    return CubeAxis(
        name=name, folder="", is_new=True, length=len(union), sections=tuple(sections), values=union, times=times
    )


def comparable_values(pieces: Sequence[CubePiece], path: str) -> tuple[list[Values], TimeUnits | None]:
    """Return the values of a variable in each piece, and the units of times, which are converted to the same unit."""
    values = [piece.values(path).reshape(-1) for piece in pieces]
    units = [parse_units(piece.arrays[path].attributes) for piece in pieces]
    if len({None if one is None else (one.step, one.epoch, one.calendar) for one in units}) == 1:
        return [one.astype(one.dtype.newbyteorder("="), copy=False) for one in values], units[0]
    if any(one is None for one in units):
        lacking = [piece for piece, one in zip(pieces, units, strict=True) if one is None]
        raise NotJoinable(f"{path}: its units are not units of time in {names_of(lacking)}, unlike in other files")
    times: list[tuple[Values, TimeUnits]] = [(v, u) for v, u in zip(values, units, strict=True) if u is not None]
    try:
        common = find_common(times)
    except Unrepresentable as error:
        raise NotJoinable(f"{path}: {error}", remedy=error.remedy) from None
    return [common.convert(*one) for one in times], replace(times[0][1], step=common.step)


def differing_scalars(pieces: Sequence[CubePiece]) -> list[str]:
    """Return the names of scalars that could be the coordinate of a new axis, because each file has another value."""
    shared = [
        path
        for path, node in pieces[0].arrays.items()
        if not node.shape and all(_has_coordinate(piece, path, ()) for piece in pieces)
    ]
    found = [path for path in shared if len({str(piece.values(path)) for piece in pieces}) == len(pieces) > 1]
    times = [path for path in found if parse_units(pieces[0].arrays[path].attributes) is not None]
    return [path.rpartition("/")[2] for path in (*times, *found)]


def gaps(axis: CubeAxis) -> list[tuple[str, str]]:
    """Return the coordinates before and after each gap: a step of more than 1.5 times the usual step."""
    values = axis.values
    if values is None or values.dtype.kind not in "iuf" or len(values) < 3:
        return []
    steps = np.abs(np.diff(values.astype(np.float64)))
    wide = np.flatnonzero(steps > 1.5 * np.median(steps))
    shown = str if axis.times is None else axis.times.date
    return [(shown(values[at].item()), shown(values[at + 1].item())) for at in wide.tolist()]
