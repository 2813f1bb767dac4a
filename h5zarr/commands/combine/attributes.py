"""Attributes of joined variables and groups, with the meaning of xarray's `combine_attrs`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from h5zarr.commands.combine.meaning import PARAMETERS
from h5zarr.commands.combine.members import Member
from h5zarr.errors import NotJoinable
from h5zarr.zarr_model.hierarchy import Json

_DECODING = frozenset((*PARAMETERS, "units", "calendar", "_Unsigned", "_Encoding", "dtype"))


def merge_attributes(path: str, members: Sequence[Member], how: str) -> tuple[Mapping[str, Json], tuple[str, ...]]:
    """Return the attributes of a variable, and a note about those that are left out.

    Attributes that define the meaning of the numbers are those of the first member: they were compared before.
    """
    named = [(one.piece.name, one.node.attributes) for one in members]
    return merge(path, named, how, kept=_DECODING)


def merge(
    path: str, named: Sequence[tuple[str, Mapping[str, Json]]], how: str, kept: frozenset[str] = frozenset()
) -> tuple[Mapping[str, Json], tuple[str, ...]]:
    """Return the attributes of several files, by their names, as one, and a note about those that are left out.

    `how` is "first" (those of the first file), "drop-conflicts" (those without different values) or "strict".
    Attributes in `kept` are always those of the first file.
    Raises NotJoinable for "strict" if any attribute differs.
    """
    first_name, first = named[0]
    if how == "first":
        return first, ()
    texts = {name: json.dumps(value, sort_keys=True) for name, value in first.items()}
    merged, conflicts = dict(first), dict[str, str]()
    for other_name, attributes in named[1:]:
        if attributes == first:
            continue
        for name, value in attributes.items():
            if name in kept:
                continue  # an attribute of another file would decode the values of the first
            text = json.dumps(value, sort_keys=True)
            if texts.setdefault(name, text) != text:
                conflicts.setdefault(name, other_name)
            merged.setdefault(name, value)
        if how == "strict":
            lacking = [name for name in texts if name not in attributes and name not in kept]
            added = [name for name in attributes if name not in first and name not in kept]
            for name in (*lacking, *added):
                conflicts.setdefault(name, other_name)
    if how == "strict" and conflicts:
        name, other_name = next(iter(conflicts.items()))
        what = f"{path}: the attribute {name} differs between {first_name} and {other_name}"
        raise NotJoinable(what, remedy="Choose with attributes='first' or attributes='drop-conflicts'.")
    left = {name: value for name, value in merged.items() if name not in conflicts}
    return left, ((f"attributes that differ are left out: {', '.join(conflicts)}",) if conflicts else ())
