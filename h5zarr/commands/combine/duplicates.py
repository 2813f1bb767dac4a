"""Files that have the same part of a variable: refuse them by name, or choose one of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from h5zarr.commands.combine.constants import has_same_values
from h5zarr.commands.combine.members import Member
from h5zarr.commands.combine.order import Section
from h5zarr.commands.combine.settings import Context
from h5zarr.commands.combine.slicing import slice_array
from h5zarr.errors import NotJoinable

_CHOOSE = (
    "Leave out one of the files, or choose with on_duplicate='first', on_duplicate='last' or on_duplicate='newest'. "
    "Files that differ in something else, such as the members of an ensemble, need a new dimension: along=[NAME]."
)


def resolve_duplicates(path: str, members: Sequence[Member], context: Context) -> tuple[list[Member], list[Member]]:
    """Return members that do not overlap, and those that lost a part to another file.

    Coordinates and bounds may be in several files if their values are the same. Raises NotJoinable.
    """
    if len(members[0].box) == 1:
        return _resolve_along_one(path, members, context)
    first: dict[Any, Member] = {}
    lost: list[Member] = []
    for one in _by_priority(_split(members), context):
        other = first.setdefault(one.place, one)
        if other is not one:
            _check_may_share(path, other, one, context)
            lost.append(one)
    return sorted(first.values(), key=lambda one: one.place), lost


def _split(members: Sequence[Member]) -> Sequence[Member]:
    """Return members along several axes, divided where others begin or end: then two overlap wholly or not at all."""
    for axis in members[0].box:
        edges = sorted({edge for one in members for edge in (one.box[axis].position, one.box[axis].stop)})
        made: list[Member] = []
        for one in members:
            at = one.box[axis]
            inside = edges[bisect_right(edges, at.position) : bisect_left(edges, at.stop)]
            for begin, end in pairwise((at.position, *inside, at.stop)):
                made.append(_narrow(one, axis, Section(begin, at.start + begin - at.position, end - begin)))
        members = made
    return members


def _resolve_along_one(path: str, members: Sequence[Member], context: Context) -> tuple[list[Member], list[Member]]:
    """Return members along one axis, in order. What an earlier one in the order of priority has, later ones lose."""
    ((axis, _),) = members[0].box.items()
    order = sorted(members, key=lambda one: one.box[axis].position)
    if all(one.box[axis].stop <= other.box[axis].position for one, other in pairwise(order)):
        return order, []
    kept: list[Member] = []  # in the order of their positions, without overlaps
    lost: dict[int, Member] = {}
    for one in _by_priority(members, context):
        ranges = [one.box[axis]]
        for other in _overlapping(kept, axis, one.box[axis]):
            _check_may_share(path, other, one, context)
            ranges = [rest for here in ranges for rest in _without(here, other.box[axis])]
            lost[one.number] = one
        for section in ranges:
            insort(kept, _narrow(one, axis, section), key=lambda member: member.box[axis].position)
    return kept, list(lost.values())


def _overlapping(kept: Sequence[Member], axis: int, section: Section) -> list[Member]:
    """Return the members that overlap a section."""
    last = bisect_left(kept, section.stop, key=lambda member: member.box[axis].position)
    first = last
    while first and kept[first - 1].box[axis].stop > section.position:
        first -= 1
    return list(kept[first:last])


def _without(here: Section, there: Section) -> list[Section]:
    """Return what is left of a section without another one."""
    left = []
    if here.position < min(here.stop, there.position):
        left.append(Section(here.position, here.start, min(here.stop, there.position) - here.position))
    if (begin := max(here.position, there.stop)) < here.stop:
        left.append(Section(begin, here.start + begin - here.position, here.stop - begin))
    return left


def _narrow(member: Member, axis: int, section: Section) -> Member:
    """Return a member with a part of its range."""
    old = member.box[axis]
    if section == old:
        return member
    before = member.skipped.get(axis, 0) + section.start - old.start
    node, skipped = slice_array(member.node, axis, before, section.length)
    others = {key: value for key, value in member.skipped.items() if key != axis}
    kept = {**others, **({axis: skipped} if skipped else {})}
    return replace(member, node=node, box={**member.box, axis: section}, skipped=kept)


def _by_priority(members: Sequence[Member], context: Context) -> list[Member]:
    """Return the members, those first whose values are used where several have them."""
    match context.choices.on_duplicate:
        case "last":
            return sorted(members, key=lambda one: -one.number)
        case "newest":
            return sorted(members, key=lambda one: (_time_of_change(one), one.number), reverse=True)
    return sorted(members, key=lambda one: one.number)


def _time_of_change(member: Member) -> str:
    times = [state.identity.mtime for state in member.piece.states() if state.identity.mtime is not None]
    if not times:
        what = f"{member.piece.name}: it is not known when it was changed"
        raise NotJoinable(what, remedy="Use on_duplicate='first' or on_duplicate='last'.")
    return max(times)


def _check_may_share(path: str, one: Member, other: Member, context: Context) -> None:
    """Raise NotJoinable if two files have the same part of a variable, unless they may or the user chose one."""
    if context.choices.on_duplicate != "refuse":
        return
    names = f"{_file_name(one, other)} and {_file_name(other, one)}"
    if not _is_shared(one, context):
        where = _where(path, one, other, context)
        raise NotJoinable(f"{names}: both have the same part of {path}{where}", remedy=_CHOOSE)
    if not has_same_values(one, other, _overlap(one, other), _overlap(other, one)):
        raise NotJoinable(f"{names}: {path} differs between them{_where(path, one, other, context)}", remedy=_CHOOSE)


def _file_name(one: Member, other: Member) -> str:
    """Return the name of the file in which a member has the first element that it shares with another."""
    axis, here = next(iter(one.box.items()))
    used = one.piece.used
    path = None if used is None else used.axis_of(one.path, one.node.dimension_names[axis])
    if used is None or path is None or one.stored_at != one.path:
        return one.piece.name
    begin = max(here.position, other.box[axis].position)
    return used.file_at(path, here.start + begin - here.position, one.path) or one.piece.name


def _is_shared(member: Member, context: Context) -> bool:
    """Return whether several files may have the same part of a variable: a coordinate, bounds, or without an axis."""
    if len(member.box) < len(context.axes.names) or len(member.node.dimension_names) == 1:
        return True
    return member.path in member.piece.bounds_owners


def _where(path: str, one: Member, other: Member, context: Context) -> str:
    """Return the part that two members share, for a message: dates, or positions."""
    said = []
    for axis, section in one.box.items():
        begin = max(section.position, other.box[axis].position)
        end = min(section.stop, other.box[axis].stop) - 1
        name = one.node.dimension_names[axis]
        found = context.axes.find(path, name)
        first, last = (str(at) if found is None else found.label(at) for at in (begin, end))
        said.append(f"{name} {first}" if begin == end else f"{name} {first} to {last}")
    return f", at {', '.join(said)}" if said else ""


def _overlap(one: Member, other: Member) -> Any:
    """Return the values of a member that are in the range of another."""
    values, key = one.values(), []
    for axis in range(values.ndim):
        if axis not in one.box:
            key.append(slice(None))
            continue
        here, there = one.box[axis], other.box[axis]
        begin, end = max(here.position, there.position), min(here.stop, there.stop)
        key.append(slice(begin - here.position, end - here.position))
    return values[tuple(key)]
