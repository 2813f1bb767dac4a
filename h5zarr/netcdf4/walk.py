"""The groups of a file with their members, at every path that leads to them, in the order of netCDF-C's reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from h5zarr.errors import Problem
from h5zarr.hdf5.model import CommittedDatatype, Dataset, Group, H5File, Link
from h5zarr.netcdf4.links import DeadEnd, Others, follow
from h5zarr.netcdf4.scales import Key, key_of
from h5zarr.tree import refuse_name

_NAMES_AT_LEAST = 10_000
_NAMES_PER_OBJECT = 20
_PATHS_NBYTES = 64 << 20


class Member(NamedTuple):
    """A dataset, or a datatype that datasets may share, under one of its names."""

    name: str
    file: H5File
    target: Dataset | CommittedDatatype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A group at one of its paths, with its members and child groups in the file's order."""

    path: str
    file: H5File
    group: Group
    parent: Place | None = None
    members: list[Member] = field(default_factory=list)
    children: list[Place] = field(default_factory=list)

    def above(self) -> Iterator[Place]:
        """This group and those that it stands in, the nearest first."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.parent

    def join(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"


def walk(file: H5File, others: Others) -> tuple[list[Place], list[Problem]]:
    """Return every group, parents first and depth first, and what is wrong with links.

    A group or dataset with several names stands under each, as netCDF-C shows it, with two exceptions: a group inside
    itself, and the further names of a group when there are too many, which a few links can bring about.
    """
    count = len(file.objects) + sum(len(one.objects) for one in others.values() if isinstance(one, H5File))
    walking = _Walk(others, _NAMES_PER_OBJECT * count)
    places: list[Place] = []
    waiting = [Place(path="/", file=file, group=file.root)]
    while waiting:
        place = waiting.pop()
        places.append(place)
        walking.open(place)
        waiting += reversed(place.children)
    return places, walking.problems


class _Walk:
    """A walk under way: which groups have been opened, and how many names may still be given."""

    def __init__(self, others: Others, names: int) -> None:
        self.problems: list[Problem] = []
        self._others = others
        self._names_left = max(_NAMES_AT_LEAST, names)
        self._nbytes_left = _PATHS_NBYTES
        self._opened: set[Key] = set()
        self._is_cut = False

    def open(self, place: Place) -> None:
        """Give names to what stands in a group."""
        self._opened.add(key_of(place.file, place.group.address))
        self._names_left -= len(place.group.links)
        self._nbytes_left -= len(place.group.links) * len(place.path)
        for name, link in place.group.links.items():
            problem = refuse_name(place.join(name), name) or self._open_link(place, name, link)
            if problem is not None:
                self.problems.append(problem)

    def _open_link(self, place: Place, name: str, link: Link) -> Problem | None:
        try:
            found = follow(link, place.group, place.file, self._others)
        except DeadEnd as end:
            return end.at(place.join(name))
        target = found.target
        if isinstance(target, Group):
            return self._open_group(Place(path=place.join(name), file=found.file, group=target, parent=place), place)
        if target is not None:
            place.members.append(Member(name=name, file=found.file, target=target))
        return None

    def _open_group(self, child: Place, place: Place) -> Problem | None:
        if key_of(child.file, child.group.address) in self._opened:
            for above in place.above():
                if above.group is child.group:
                    return Problem(
                        child.path,
                        "link",
                        f"this group is {above.path!r}, in which it stands; it is not entered again",
                        "Nothing is missing: everything in it is under the other path.",
                    )
            if self._names_left < 0 or self._nbytes_left < 0:
                return self._cut(child.path)
        place.children.append(child)
        return None

    def _cut(self, path: str) -> Problem | None:
        """Complain once: there may be millions of such paths."""
        if self._is_cut:
            return None
        self._is_cut = True
        message = "the groups of this file have too many paths; this one and others are left out"
        return Problem(path, "link", message, "Nothing is missing: every object is under another of its paths.")
