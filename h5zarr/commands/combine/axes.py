"""Find the axes of a cube, and which files have which part of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.along import Along, NewCoordinate, read_coordinate
from h5zarr.commands.combine.cube_axes import Axes, CubeAxis
from h5zarr.commands.combine.meaning import find_meaning
from h5zarr.commands.combine.order import Numbers, Sections, find_sections, place, stack
from h5zarr.commands.combine.pieces import CubePiece, names_of
from h5zarr.commands.combine.times import count_steps, find_common
from h5zarr.commands.combine.unpacking import unpack
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.axis_layout import AxisLayout
from h5zarr.zarr_model.calendars import TimeUnits, parse_units, share_dates

Values = npt.NDArray[Any]
_ONE_EACH = "Give a pattern only for a dimension of length 1, or for a new dimension."


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
            axes.append(_order_by_coordinate(pieces, along, folder))
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
        for path, length in _lengths(piece, name):
            lengths = found.setdefault(path.rpartition("/")[0], [None] * len(pieces))
            if lengths[number] not in (None, length):
                raise NotJoinable(f"{piece.name}: the dimension {name} has several lengths, also in {path}")
            lengths[number] = length
    return found


def _lengths(piece: CubePiece, name: str) -> Iterator[tuple[str, int]]:
    """Yield the length of a dimension of each variable. In a cube, only elements that a file has count."""
    for path, node in piece.arrays.items():
        if name in node.dimension_names:
            axis = None if piece.used is None else piece.used.axis_of(path, name)
            known = node.shape[node.dimension_names.index(name)]
            yield path, known if axis is None or piece.used is None else piece.used.count(axis)
    for axis in () if piece.opened.cube is None else piece.opened.cube.axes:
        if piece.used is not None and axis.rpartition("/")[2] == name:
            yield axis, piece.used.count(axis)


def _used(piece: CubePiece, path: str, name: str) -> Numbers | None:
    """Return the numbers of the elements along a dimension that are used; None for all."""
    axis = None if piece.used is None else piece.used.axis_of(path, name)
    return None if axis is None or piece.used is None else piece.used.numbers(axis)


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


def _order_by_coordinate(pieces: Sequence[CubePiece], along: Along, folder: str) -> CubeAxis:
    name, path = along.name, f"{folder}/{along.name}"
    has = [_has_coordinate(piece, path, (name,)) for piece in pieces]
    if along.layout is not None:
        return _order_by_layout(pieces, along.layout, name, folder, has)
    found, times = comparable_values([piece for piece, one in zip(pieces, has, strict=True) if one], path)
    values = iter(found)
    used = [_used(piece, path, name) for piece in pieces]
    union, sections = place([next(values) if one else None for one in has], used)
    return CubeAxis(
        name=name,
        folder=folder,
        is_new=False,
        length=len(union),
        sections=tuple(sections),
        values=union,
        times=times,
    )


def _order_by_layout(
    pieces: Sequence[CubePiece],
    layout: AxisLayout,
    name: str,
    folder: str,
    has: Sequence[bool],
    *,
    is_new: bool = False,
    path: str = "",
) -> CubeAxis:
    """Return an axis that is laid out ahead, with the pieces that have its coordinate at `path` where they belong.

    Raises NotJoinable if a piece has a time that is not on the axis.
    """
    path = path or f"{folder}/{name}"
    units = [
        parse_units(piece.arrays[path].attributes) if one else None for piece, one in zip(pieces, has, strict=True)
    ]
    known = [one for one in units if one is not None]
    if len(known) < sum(has):
        raise NotJoinable(f"{path}: its units are not units of time, so its axis cannot be laid out by dates")
    if not share_dates({one.calendar for one in known}):
        calendars = ", ".join(sorted({one.calendar for one in known}))
        raise NotJoinable(f"{path}: the calendars differ: {calendars}", remedy="Join files of one calendar.")
    slots, times = layout.lay_out(known[0].calendar)
    sections: list[Sections] = []
    for piece, one in zip(pieces, units, strict=True):
        sections.append(() if one is None else _find_slots(piece, path, one, slots, times))
    return CubeAxis(
        name=name,
        folder=folder,
        is_new=is_new,
        length=len(slots),
        sections=tuple(sections),
        values=slots,
        times=times,
        is_laid_out=True,
    )


def _find_slots(piece: CubePiece, path: str, units: TimeUnits, slots: Values, times: TimeUnits) -> Sections:
    """Return where the elements of a piece are on an axis that is laid out."""
    values = _used_values(piece, path)
    counted = count_steps(values, units, times.step, times.epoch)
    at = None if counted is None else np.searchsorted(slots, counted)
    if counted is None or at is None or (slots[np.minimum(at, len(slots) - 1)] != counted).any():
        off = 0 if counted is None or at is None else int(np.argmax(slots[np.minimum(at, len(slots) - 1)] != counted))
        shown = units.date(values[off].item()) if len(values) and np.isfinite(values[off]) else "a missing time"
        what = f"{piece.name}: {path} has {shown}, which is not on the axis that was laid out"
        raise NotJoinable(what, remedy="Leave the file out, or lay out an axis that has this time.")
    used = _used(piece, path, path.rpartition("/")[2])
    return find_sections(at, np.arange(len(at)) if used is None else used)


def _follow(
    pieces: Sequence[CubePiece], name: str, folder: str, lengths: Sequence[int | None], other: CubeAxis | None
) -> CubeAxis:
    """Return an axis without a coordinate. Files follow each other as along the axis of a group above, or as given."""
    positions = [one[0].position if one else -1 for one in other.sections] if other else [0] * len(pieces)
    order = sorted(range(len(pieces)), key=lambda number: (positions[number], number))
    used = [_used(pieces[number], f"{folder}/{name}", name) for number in order]
    length, arranged = stack([lengths[number] for number in order], used)
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
    if not shared and along.layout is not None:
        raise NotJoinable(f"the files have no times called {name}, by which they could find their place on the axis")
    if not shared:
        length, sections = stack([1] * len(pieces))
        return CubeAxis(name=name, folder="", is_new=True, length=length, sections=tuple(sections))
    path = min(shared, key=lambda path: path.count("/"))
    if along.layout is not None:
        return _order_by_layout(pieces, along.layout, name, "", [True] * len(pieces), is_new=True, path=path)
    values, times = comparable_values(pieces, path)
    union, sections = place(values)
    return CubeAxis(
        name=name, folder="", is_new=True, length=len(union), sections=tuple(sections), values=union, times=times
    )


def comparable_values(pieces: Sequence[CubePiece], path: str) -> tuple[list[Values], TimeUnits | None]:
    """Return the values of a variable in each piece, and the units of times, which are converted to the same unit."""
    values = [_used_values(piece, path) for piece in pieces]
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


def _used_values(piece: CubePiece, path: str) -> Values:
    """Return the values of a coordinate, or of a scalar, that are used.

    They are unpacked: if files pack them differently, stored numbers would have another order.
    """
    used, node = _used(piece, path, path.rpartition("/")[2]), piece.arrays[path]
    values = piece.values(path, None if used is None else (used,)).reshape(-1)
    if values.dtype.kind not in "iuf":
        return values
    return unpack(values, node.attributes, find_meaning(node, piece.hierarchy.record_of(path), values.dtype))


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
