"""Walk the groups of a file with their members, at all of their paths, in netCDF-C's reading order."""

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


class GroupMember(NamedTuple):
    """A dataset or committed datatype under one of its names."""

    name: str
    file: H5File
    target: Dataset | CommittedDatatype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupPath:
    """A group at one of its paths, with its members and child groups in file order."""

    path: str
    file: H5File
    group: Group
    parent: GroupPath | None = None
    members: list[GroupMember] = field(default_factory=list)
    children: list[GroupPath] = field(default_factory=list)

    def above(self) -> Iterator[GroupPath]:
        """Yield this group and its ancestors, nearest first."""
        place: GroupPath | None = self
        while place is not None:
            yield place
            place = place.parent

    def join(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"


def walk(file: H5File, others: Others) -> tuple[list[GroupPath], list[Problem]]:
    """Return all groups, parents first and depth first, and problems with links.

    As in netCDF-C, a group or dataset with several names appears under each of them. There are two exceptions: a group
    inside itself, and further names of a group if there are too many, which a few links can cause.
    """
    count = len(file.objects) + sum(len(one.objects) for one in others.values() if isinstance(one, H5File))
    walking = _Walk(others, _NAMES_PER_OBJECT * count)
    places: list[GroupPath] = []
    waiting = [GroupPath(path="/", file=file, group=file.root)]
    while waiting:
        place = waiting.pop()
        places.append(place)
        walking.open(place)
        waiting += reversed(place.children)
    return places, walking.problems


class _Walk:
    """A walk in progress: the groups opened so far, and how many names may still be added."""

    def __init__(self, others: Others, names: int) -> None:
        self.problems: list[Problem] = []
        self._others = others
        self._names_left = max(_NAMES_AT_LEAST, names)
        self._nbytes_left = _PATHS_NBYTES
        self._opened: set[Key] = set()
        self._is_cut = False

    def open(self, place: GroupPath) -> None:
        """Add the members and child groups of a group."""
        self._opened.add(key_of(place.file, place.group.address))
        self._names_left -= len(place.group.links)
        self._nbytes_left -= len(place.group.links) * len(place.path)
        for name, link in place.group.links.items():
            problem = refuse_name(place.join(name), name) or self._open_link(place, name, link)
            if problem is not None:
                self.problems.append(problem)

    def _open_link(self, place: GroupPath, name: str, link: Link) -> Problem | None:
        try:
            found = follow(link, place.group, place.file, self._others)
        except DeadEnd as end:
            return end.at(place.join(name))
        target = found.target
        if isinstance(target, Group):
            return self._open_group(
                GroupPath(path=place.join(name), file=found.file, group=target, parent=place), place
            )
        if target is not None:
            place.members.append(GroupMember(name=name, file=found.file, target=target))
        return None

    def _open_group(self, child: GroupPath, place: GroupPath) -> Problem | None:
        if key_of(child.file, child.group.address) in self._opened:
            for above in place.above():
                if above.group is child.group:
                    return Problem(
                        child.path,
                        "link",
                        f"this group is its own ancestor {above.path!r}; it is not entered again",
                        "Nothing is missing: its content appears under the other path.",
                    )
            if self._names_left < 0 or self._nbytes_left < 0:
                return self._cut(child.path)
        place.children.append(child)
        return None

    def _cut(self, path: str) -> Problem | None:
        """Report this only once, because there may be millions of such paths."""
        if self._is_cut:
            return None
        self._is_cut = True
        message = "the groups of this file have too many paths; this one and others are left out"
        return Problem(path, "link", message, "Nothing is missing: every object appears under another path.")
