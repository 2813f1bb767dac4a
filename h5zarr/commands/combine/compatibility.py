"""Whether a variable can be joined at all: the same dimensions and lengths, and numbers that measure the same."""

from __future__ import annotations

import json
from collections.abc import Sequence

from h5zarr.commands.combine.meaning import find_flags
from h5zarr.commands.combine.members import Member, times_of
from h5zarr.commands.combine.settings import Context
from h5zarr.errors import NotJoinable
from h5zarr.zarr_model.hierarchy import Json

_LEAVE_OUT = "Leave the variable out with exclude=[PATH]."


def check_shapes(path: str, members: Sequence[Member], context: Context) -> None:
    """Raise NotJoinable unless all members have the same dimensions, and the same lengths except along the axes."""
    first = members[0]
    joined = context.axes.of(path, first.node.dimension_names)
    for one in members:
        if one.node.dimension_names != first.node.dimension_names:
            named = [f"({', '.join(member.node.dimension_names)}) in {member.piece.name}" for member in (first, one)]
            raise NotJoinable(f"{path}: its dimensions are {named[0]} and {named[1]}", remedy=_LEAVE_OUT)
        for number, name in enumerate(first.node.dimension_names):
            length, other = _length(first, number), _length(one, number)
            if number not in joined and length != other:
                what = f"{path}: {name} has {length} elements in {first.piece.name} and {other} in {one.piece.name}"
                raise NotJoinable(what)


def _length(member: Member, number: int) -> int:
    """Return the length of a dimension in a file, of which the member may be a part."""
    if number not in member.box:
        return member.shape[number]
    whole = member.stored_node
    name = member.node.dimension_names[number]
    return whole.shape[whole.dimension_names.index(name)] if name in whole.dimension_names else 1


def check_units(path: str, members: Sequence[Member], context: Context) -> None:
    """Raise NotJoinable if the numbers do not measure the same in all files. Times are converted."""
    if path in context.times:
        return
    _check_times(path, members)
    first, flags = members[0], dict[tuple[Json, ...], tuple[str, Member]]()
    texts: dict[str, Member] = {}
    for one in members:
        if one.meaning.units != first.meaning.units:
            units = [_shown_units(some) for some in (first, one)]
            about = "its enumeration differs" if units[0] == units[1] else f"its units are {' and '.join(units)}"
            what = f"{path}: {about}, in {first.piece.name} and {one.piece.name}"
            raise NotJoinable(what, remedy=f"Convert the files to the same units. {_LEAVE_OUT}")
        text = str(one.node.attributes.get("flag_meanings"))
        if text in texts and texts[text].node.attributes.get("flag_values") == one.node.attributes.get("flag_values"):
            continue
        texts[text] = one
        for value, meaning in find_flags(one.node.attributes).items():
            known, other = flags.setdefault(value, (meaning, one))
            if known != meaning:
                shown = ", ".join(map(str, value))
                what = f"{path}: the flag {shown} means {known} in {other.piece.name} and {meaning} in {one.piece.name}"
                raise NotJoinable(what, remedy=_LEAVE_OUT)


def _check_times(path: str, members: Sequence[Member]) -> None:
    """Raise NotJoinable if values are times only in some files, because a coordinate names them as its bounds there."""
    first = members[0]
    is_time = times_of(first) is not None
    other = next((one for one in members if (times_of(one) is not None) != is_time), None)
    if other is not None:
        there, elsewhere = (first, other) if is_time else (other, first)
        what = f"{path}: its values are times in {there.piece.name}, but not in {elsewhere.piece.name}"
        raise NotJoinable(what, remedy=_LEAVE_OUT)


def _shown_units(member: Member) -> str:
    units = member.node.attributes.get("units")
    return "none" if units is None else json.dumps(units, ensure_ascii=False)
