"""Select the part of a file to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from h5zarr.commands.inspect.dimensions import parent
from h5zarr.hdf5.model import Attribute, Dataset, Group, H5File, HardLink, Link, Object
from h5zarr.patterns import compile_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`whole`: paths of objects to show; `frames`: groups shown only because they contain such objects."""

    whole: frozenset[str]
    frames: frozenset[str]
    links: frozenset[str]

    @property
    def is_empty(self) -> bool:
        return not self.whole and not self.links


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The members of a group by kind. Further names of an object that is listed elsewhere are links."""

    groups: dict[str, Group]
    datasets: dict[str, Dataset]
    datatypes: dict[str, Object]
    links: dict[str, Link]


def select(file: H5File, pattern: str | None, depth: int | None = None) -> Part:
    """Return the part of a file that `pattern` selects, with the contents of its groups down to `depth` levels.

    `patterns.py` documents the pattern language.
    """
    objects = list(file.walk())
    part = select_paths((path for path, _ in objects), pattern)
    matches = _matcher(pattern)
    frames, links = set(part.frames), set()
    for path, found in objects:
        if isinstance(found, Group):
            for name, link in found.links.items():
                place = join(path, name)
                if is_alias(file, place, link) and (path in part.whole or matches(place)):
                    links.add(place)
                    frames.update((path, *_above(path)))
    return _down_to(depth, Part(whole=part.whole, frames=frozenset(frames - part.whole), links=frozenset(links)))


def select_paths(paths: Iterable[str], pattern: str | None, depth: int | None = None) -> Part:
    """Return which paths to show, as `select` does for a file. Groups come before their members."""
    matches = _matcher(pattern)
    whole: set[str] = set()
    frames: set[str] = set()
    for path in paths:
        if matches(path) or (path != "/" and parent(path) in whole):
            whole.add(path)
            frames.update(_above(path))
    return _down_to(depth, Part(whole=frozenset(whole), frames=frozenset(frames - whole), links=frozenset()))


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    return (lambda path: True) if pattern is None else compile_pattern(pattern)


def _down_to(depth: int | None, part: Part) -> Part:
    """Return the part without what is deeper than `depth` levels; None has no limit."""
    if depth is None:
        return part

    def shallow(paths: frozenset[str]) -> frozenset[str]:
        return frozenset(path for path in paths if levels(path) <= depth)

    return Part(whole=shallow(part.whole), frames=shallow(part.frames), links=shallow(part.links))


def members(file: H5File, path: str, group: Group, part: Part) -> Members:
    """Return the visible members of a group, in creation order if the file tracks it, else by name."""
    found = Members(groups={}, datasets={}, datatypes={}, links={})
    for name, link in ordered(group):
        place = join(path, name)
        if is_alias(file, place, link):
            if place in part.links:
                found.links[name] = link
            continue
        target = file.objects[link.address] if isinstance(link, HardLink) else None
        if isinstance(target, Group) and (place in part.whole or place in part.frames):
            found.groups[name] = target
        elif isinstance(target, Dataset) and place in part.whole:
            found.datasets[name] = target
        elif target is not None and not isinstance(target, Group | Dataset) and place in part.whole:
            found.datatypes[name] = target
    return found


def ordered(group: Group) -> list[tuple[str, Link]]:
    """Return the links of a group in creation order if all have one, else by name, with 2 before 10."""
    orders = {link.creation_order for link in group.links.values()}
    if None not in orders and len(orders) == len(group.links):
        return sorted(group.links.items(), key=lambda item: item[1].creation_order or 0)
    return sorted(group.links.items(), key=lambda item: _natural(item[0]))


def ordered_attributes(attributes: Mapping[str, Attribute]) -> list[Attribute]:
    """Return attributes in creation order if the file tracks it, else in header order.

    Attributes with equal creation order come from an index sorted by hash, so they are sorted by name.
    """
    found = list(attributes.values())
    orders = {attribute.creation_order for attribute in found}
    if None in orders:
        return found
    if len(orders) == len(found):
        return sorted(found, key=lambda attribute: attribute.creation_order or 0)
    return sorted(found, key=lambda attribute: _natural(attribute.name))


def is_alias(file: H5File, place: str, link: Link) -> bool:
    """Return True unless the link at `place` is the first path of an object that could be read."""
    return not (isinstance(link, HardLink) and file.paths.get(link.address) == place and link.address in file.objects)


def join(group_path: str, name: str) -> str:
    return f"{group_path.rstrip('/')}/{name}"


def levels(path: str) -> int:
    """Return the number of groups above the object at `path`; zero for the root."""
    return 0 if path == "/" else path.count("/")


def _above(path: str) -> list[str]:
    above = []
    while path != "/":
        path = parent(path)
        above.append(path)
    return above


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers by value: the longer of two is larger."""
    parts = re.split(r"([0-9]+)", name)
    return [(len(part.lstrip("0")), part) if number % 2 else (0, part) for number, part in enumerate(parts)]
