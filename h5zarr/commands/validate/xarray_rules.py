"""Rules of the Xarray-Zarr convention, and what xarray's Zarr engine needs to open a group."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.commands.validate.members import attributes_of, dimension_names_of, is_v3, shape_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Check, Found, Level, Result, Rule, each_array


def _check_names(node: RawNode) -> Iterator[Result]:
    names, shape = dimension_names_of(node), shape_of(node)
    where = "dimension_names" if is_v3(node) else "_ARRAY_DIMENSIONS"
    if shape is None or (names is None and not shape and is_v3(node)):
        return
    if names is None or len(names) != len(shape) or not all(isinstance(name, str) for name in names):
        what = f"{where} does not name every dimension: xarray cannot open the group"
        yield Found(node.path, what, "Write a name for each dimension.")


def _named_lengths(node: RawNode) -> list[tuple[str, int]]:
    """Return the names and lengths of an array's dimensions, as far as they are valid."""
    pairs = zip(dimension_names_of(node) or (), shape_of(node) or (), strict=False)
    return [(name, length) for name, length in pairs if isinstance(name, str)]


def _check_lengths(raw: RawReferences) -> Iterator[Result]:
    seen: dict[tuple[str, str], tuple[int, str]] = {}
    for node in raw.arrays():
        for name, length in _named_lengths(node):
            first, where = seen.setdefault((node.group, name), (length, node.path))
            if length != first:
                what = f'dimension "{name}" has length {length} here but {first} in {where}: xarray cannot open both'
                yield Found(node.path, what, "Exclude one of the arrays, or rename its dimension.")


def _check_coordinates(raw: RawReferences) -> Iterator[Result]:
    for node in raw.arrays():
        names = [name for name, _ in _named_lengths(node)]
        if node.name in names and len(names) > 1:
            what = "it has the name of one of its dimensions, but is not a coordinate, because it has other dimensions"
            yield Found(node.path, what, "Rename it, or open it with drop_variables.")


def _check_associated(raw: RawReferences) -> Iterator[Result]:
    members = raw.members()
    for node in raw.arrays():
        coordinates = attributes_of(node).get("coordinates")
        if not isinstance(coordinates, str):
            continue
        missing = [name for name in coordinates.split() if "/" not in name and not _is_near(name, node.group, members)]
        if missing:
            what = f'the attribute coordinates names "{missing[0][:60]}", but there is no such array'
            yield Found(node.path, what, "Also translate the coordinates, or change the attribute.")


def _is_near(name: str, group: str, members: dict[str, list[RawNode]]) -> bool:
    """Return whether an array of this name is in a group or in a parent group, where netCDF looks for it."""
    while True:
        if any(node.is_array and node.name == name for node in members.get(group, ())):
            return True
        if group == "/":
            return False
        group = group.rpartition("/")[0] or "/"


def _check_consolidated(raw: RawReferences) -> Iterator[Result]:
    if raw.consolidated is None:
        what = "the metadata are not consolidated: some readers show nested groups as empty"
        yield Found("/", what, "Consolidate the metadata.")


def _rule(name: str, section: str, asks: str, check: Check, level: Level = Level.ERROR) -> Rule:
    return Rule(id=f"xarray/{name}", level=level, section=section, asks=asks, check=check, formats=(2, 3))


_IDENTIFYING = "Identifying the Presence of this Convention"
RULES = (
    _rule(
        "dimension-names",
        f"Description; {_IDENTIFYING}",
        "every dimension has a name; in version 2, in `_ARRAY_DIMENSIONS`",
        each_array(_check_names),
    ),
    _rule(
        "dimension-lengths",
        _IDENTIFYING,
        "within a group, dimensions with the same name have the same length",
        _check_lengths,
    ),
    _rule(
        "dimension-coordinates",
        _IDENTIFYING,
        "an array with the name of one of its dimensions has no other dimension",
        _check_coordinates,
        Level.WARNING,
    ),
    _rule(
        "coordinates",
        "CF Conventions",
        "the arrays that the attribute `coordinates` names exist",
        _check_associated,
        Level.WARNING,
    ),
    _rule("consolidated", "Description", "metadata is consolidated", _check_consolidated, Level.WARNING),
)
