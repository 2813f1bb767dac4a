"""Where a link leads: through soft links, and into other files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hdf5.model import ExternalLink, Group, H5File, HardLink, Link, Object, SoftLink, UserLink

_MOST_HOPS = 16  # soft and external links on one way; the library gives up there, too
_FETCH = "Put that file where the link says, then try again."
_REPAIR = "Nothing else is affected. Remove the link, or restore what it pointed to."

# The files that external links lead to, by the file that has the link and the name in the link; or why there is none.
Others: TypeAlias = Mapping[tuple[H5File, str], H5File | H5ZarrError]


@dataclass(frozen=True, slots=True)
class Found:
    """An object and the file that holds it; None for an object that could not be read, of which the file has told."""

    file: H5File
    target: Object | None


class DeadEnd(Exception):
    """A link leads nowhere; says why."""

    def __init__(self, kind: str, message: str, remedy: str = _REPAIR) -> None:
        self.kind, self.remedy = kind, remedy
        super().__init__(message)

    def at(self, path: str) -> Problem:
        return Problem(path, self.kind, str(self), self.remedy)


def follow(link: Link, group: Group, file: H5File, others: Others) -> Found:
    """Return what a link of a group leads to; raises `DeadEnd` where that is nothing."""
    if isinstance(link, HardLink):
        return Found(file, file.objects.get(link.address))
    return _Way(others).follow(link, group, file)


class _Way:
    """The way from one link to its object, which may lead over others: only so many, or some would never end."""

    def __init__(self, others: Others) -> None:
        self._others = others
        self._hops_left = _MOST_HOPS

    def follow(self, link: Link, group: Group, file: H5File) -> Found:
        if isinstance(link, HardLink):
            return Found(file, file.objects.get(link.address))
        if isinstance(link, UserLink):
            message = f"a link of class {link.link_class}, which only the program that made it can follow"
            raise DeadEnd("link", message, "Nothing else is affected.")
        if self._hops_left == 0:
            raise DeadEnd("link", f"more than {_MOST_HOPS} links lead from one to the next")
        self._hops_left -= 1
        if isinstance(link, SoftLink):
            return self._descend(link.target, file.root if link.target.startswith("/") else group, file)
        return self._enter(link, file)

    def _enter(self, link: ExternalLink, file: H5File) -> Found:
        """Return what an external link leads to; its target always begins at the other file's root."""
        other = self._others.get((file, link.file))
        if other is None:
            message = f"an external link to {link.target!r} in {link.file!r}, and that file could not be had"
            raise DeadEnd("source", message, _FETCH)
        if isinstance(other, H5ZarrError):
            message = f"an external link to {link.target!r} in {link.file!r}: {other}"
            raise DeadEnd(other.kind, message, other.remedy)
        try:
            found = self._descend(link.target, other.root, other)
        except DeadEnd as end:
            raise DeadEnd(end.kind, f"an external link into {link.file!r}: {end}", end.remedy) from None
        if found.target is None:
            message = f"an external link to {link.target!r} in {link.file!r}, which could not be read there"
            raise DeadEnd("source", message, _FETCH)
        return found

    def _descend(self, target: str, start: Group, file: H5File) -> Found:
        """Return the object at the path `target`, seen from a group. A "." stays where it is; ".." is a name."""
        here = Found(file, start)
        for name in target.split("/"):
            if name in ("", "."):
                continue
            group = here.target
            link = group.links.get(name) if isinstance(group, Group) else None
            if link is None or not isinstance(group, Group):
                raise DeadEnd("link", f"a link to {target!r}, where there is nothing")
            here = self.follow(link, group, here.file)
        return here
