"""Axes of a cube: the slots along each of them, in order, and the slot that each piece fills.

A slot is a range of the axis that one or more pieces fill. With one file per day, each day is a slot. Tiles in two
dimensions share slots along both axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.calendars import TimeUnits, parse_units
from h5zarr.commands.combine.pieces import CubePiece, names_of
from h5zarr.commands.combine.times import find_common
from h5zarr.errors import H5ZarrError, Unrepresentable
from h5zarr.zarr_model.hierarchy import ArrayNode

Values = npt.NDArray[Any]


class NotJoinable(H5ZarrError):
    """Joining the files would give wrong values. The message names the files and the reason."""

    kind = "not joinable"
    remedy = "Leave out the files or variables that differ, or name another axis with along=[NAME]."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeAxis:
    """An axis along which pieces are joined.

    `slot` has the number of each piece's slot, and `lengths` the length of each slot. The slots of a new axis have
    length 1.
    """

    name: str
    is_new: bool
    slot: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each slot starts."""
        return np.cumsum([0, *self.lengths[:-1]], dtype=np.int64)

    @property
    def length(self) -> int:
        return sum(self.lengths)


def find_axes(pieces: Sequence[CubePiece], along: Sequence[str]) -> tuple[CubeAxis, ...]:
    """Return the axes with these names. Raises NotJoinable if the pieces cannot be put in order."""
    return tuple(_find_axis(pieces, name) for name in along)


def _find_axis(pieces: Sequence[CubePiece], name: str) -> CubeAxis:
    lengths = [_length_along(piece, name) for piece in pieces]
    if any(length is not None for length in lengths):
        absent = [piece for piece, length in zip(pieces, lengths, strict=True) if length is None]
        if absent:
            raise NotJoinable(f"{names_of(absent)}: no variable has the dimension {name}, which other files have")
        return _order_existing(pieces, name, [length or 0 for length in lengths])
    return _make_new(pieces, name)


def _length_along(piece: CubePiece, name: str) -> int | None:
    """Return the length of the dimension in a piece; None if the piece does not have this dimension."""
    found = {
        path: node.shape[node.dimension_names.index(name)]
        for path, node in piece.arrays.items()
        if name in node.dimension_names
    }
    if len(set(found.values())) > 1:
        raise NotJoinable(f"{piece.name}: the dimension {name} has several lengths, in {', '.join(found)}")
    return next(iter(found.values()), None)


def _order_existing(pieces: Sequence[CubePiece], name: str, lengths: Sequence[int]) -> CubeAxis:
    """Return an axis that the files have. The coordinate orders the pieces; without one, they keep their order."""
    path = _coordinate_path(pieces, name, 1)
    if path is None:
        return CubeAxis(name=name, is_new=False, slot=tuple(range(len(pieces))), lengths=tuple(lengths))
    values = comparable_values(pieces, path)
    slots = _distinct(values)
    order = _sort_slots([values[members[0]] for members in slots])
    arranged = [slots[number] for number in order]
    _check_overlap(pieces, name, [values[members[0]] for members in arranged], arranged)
    slot = {piece: number for number, members in enumerate(arranged) for piece in members}
    return CubeAxis(
        name=name,
        is_new=False,
        slot=tuple(slot[number] for number in range(len(pieces))),
        lengths=tuple(lengths[members[0]] for members in arranged),
    )


def _make_new(pieces: Sequence[CubePiece], name: str) -> CubeAxis:
    """Return an axis that no file has. A scalar of this name orders the pieces; without one, they keep their order."""
    path = _coordinate_path(pieces, name, 0)
    positions = tuple(range(len(pieces)))
    if path is None:
        return CubeAxis(name=name, is_new=True, slot=positions, lengths=(1,) * len(pieces))
    values = comparable_values(pieces, path)
    slots = _distinct(values)
    order = _sort_slots([values[members[0]] for members in slots])
    slot = {piece: number for number, at in enumerate(order) for piece in slots[at]}
    return CubeAxis(name=name, is_new=True, slot=tuple(slot[number] for number in positions), lengths=(1,) * len(slots))


def _coordinate_path(pieces: Sequence[CubePiece], name: str, rank: int) -> str | None:
    """Return the path of the coordinate variable that all pieces have; of several, the one nearest to the root."""
    wanted = (name,) * rank
    paths = [
        path
        for path, node in pieces[0].arrays.items()
        if path.rpartition("/")[2] == name and node.dimension_names == wanted
    ]
    shared = [path for path in paths if all(_is_coordinate(piece.arrays.get(path), wanted) for piece in pieces)]
    return min(shared, key=lambda path: path.count("/"), default=None)


def _is_coordinate(node: ArrayNode | None, dimension_names: tuple[str, ...]) -> bool:
    return node is not None and node.dimension_names == dimension_names


def comparable_values(pieces: Sequence[CubePiece], path: str) -> list[Values]:
    """Return the values of a variable in each piece. Times are converted to the same unit."""
    values = [piece.values(path).reshape(-1) for piece in pieces]
    units = [parse_units(piece.arrays[path].attributes) for piece in pieces]
    if len(set(units)) == 1 or any(one is None for one in units):
        return values
    times: list[tuple[Values, TimeUnits]] = [(v, u) for v, u in zip(values, units, strict=True) if u is not None]
    try:
        common = find_common(times)
    except Unrepresentable as error:
        raise NotJoinable(f"{path}: {error}", remedy=error.remedy) from None
    return [common.convert(*one) for one in times]


def _distinct(values: Sequence[Values]) -> list[list[int]]:
    """Return the numbers of the pieces, grouped by equal values."""
    found: dict[tuple[int, Any], list[int]] = {}
    for number, one in enumerate(values):
        key = (len(one), tuple(one.tolist()))
        found.setdefault(key, []).append(number)
    return list(found.values())


def _sort_slots(values: Sequence[Values]) -> list[int]:
    """Return the order of slots by their first value: descending if the values in all slots descend, else ascending."""
    is_falling = any(len(one) > 1 for one in values) and all(one[0] > one[-1] for one in values if len(one) > 1)
    filled = [number for number, one in enumerate(values) if len(one)]
    order = sorted(filled, key=lambda number: _sortable(values[number][0]), reverse=is_falling)
    return [number for number, one in enumerate(values) if not len(one)] + order


def _sortable(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _check_overlap(
    pieces: Sequence[CubePiece], name: str, values: Sequence[Values], members: Sequence[Sequence[int]]
) -> None:
    """Raise NotJoinable if two slots overlap. Coordinates that are not monotonic are not checked."""
    filled = [(one, numbers) for one, numbers in zip(values, members, strict=True) if len(one)]
    if not all(_is_monotonic(one) for one, _ in filled):
        return
    bounds = [sorted([_sortable(one[0]), _sortable(one[-1])]) for one, _ in filled]
    is_falling = bounds[0][0] > bounds[-1][0] if bounds else False
    for number in range(1, len(filled)):
        before, after = bounds[number - 1], bounds[number]
        if after[1] >= before[0] if is_falling else after[0] <= before[1]:
            names = [pieces[filled[at][1][0]].name for at in (number - 1, number)]
            what = f"{names[0]} and {names[1]}: both have values of {name} around {filled[number][0][0]}"
            raise NotJoinable(what, remedy="Leave out one of the files.")


def _is_monotonic(values: Values) -> bool:
    if values.dtype.kind not in "iuf" or len(values) < 2:
        return len(values) < 2
    steps = np.diff(values.astype(np.float64) if values.dtype.kind == "f" else values.astype(np.int64))
    return bool((steps > 0).all() or (steps < 0).all())
