"""Follow links, including soft links and links to other files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hdf5.model import ExternalLink, Group, H5File, HardLink, Link, Object, SoftLink, UserLink

_MOST_HOPS = 16  # soft and external links in a row, as many as the HDF5 library follows
_FETCH = "Put the file where the link refers to it, then try again."
_REPAIR = "Nothing else is affected. Remove the link, or restore its target."

# Files that external links refer to, or the error on opening one. Keys: the file with the link, the name in the link.
Others: TypeAlias = Mapping[tuple[H5File, str], H5File | H5ZarrError]


@dataclass(frozen=True, slots=True)
class Found:
    """An object and the file that holds it.

    `target` is None if the object could not be read, which its file reports.
    """

    file: H5File
    target: Object | None


class DeadEnd(Exception):
    """A link that leads to no object, with the reason."""

    def __init__(self, kind: str, message: str, remedy: str = _REPAIR) -> None:
        self.kind, self.remedy = kind, remedy
        super().__init__(message)

    def at(self, path: str) -> Problem:
        return Problem(path, self.kind, str(self), self.remedy)


def follow(link: Link, group: Group, file: H5File, others: Others) -> Found:
    """Return the target of a link in a group. Raises `DeadEnd` if there is none."""
    if isinstance(link, HardLink):
        return Found(file, file.objects.get(link.address))
    return _Way(others).follow(link, group, file)


class _Way:
    """Follows one link to its object, possibly through other links.

    Their number is limited, because links may form a loop.
    """

    def __init__(self, others: Others) -> None:
        self._others = others
        self._hops_left = _MOST_HOPS

    def follow(self, link: Link, group: Group, file: H5File) -> Found:
        if isinstance(link, HardLink):
            return Found(file, file.objects.get(link.address))
        if isinstance(link, UserLink):
            message = f"user-defined link of class {link.link_class}: only the program that made it can follow it"
            raise DeadEnd("link", message, "Nothing else is affected.")
        if self._hops_left == 0:
            raise DeadEnd("link", f"a chain of more than {_MOST_HOPS} links")
        self._hops_left -= 1
        if isinstance(link, SoftLink):
            return self._descend(link.target, file.root if link.target.startswith("/") else group, file)
        return self._enter(link, file)

    def _enter(self, link: ExternalLink, file: H5File) -> Found:
        """Return the target of an external link. Its path starts at the root of the other file."""
        other = self._others.get((file, link.file))
        if other is None:
            message = f"external link to {link.target!r} in {link.file!r}: the file was not found"
            raise DeadEnd("source", message, _FETCH)
        if isinstance(other, H5ZarrError):
            message = f"external link to {link.target!r} in {link.file!r}: {other}"
            raise DeadEnd(other.kind, message, other.remedy)
        try:
            found = self._descend(link.target, other.root, other)
        except DeadEnd as end:
            raise DeadEnd(end.kind, f"external link into {link.file!r}: {end}", end.remedy) from None
        if found.target is None:
            message = f"external link to {link.target!r} in {link.file!r}: the object could not be read"
            raise DeadEnd("source", message, _FETCH)
        return found

    def _descend(self, target: str, start: Group, file: H5File) -> Found:
        """Return the object at the path `target`, relative to a group.

        "." is the current group; ".." is an ordinary name.
        """
        here = Found(file, start)
        for name in target.split("/"):
            if name in ("", "."):
                continue
            group = here.target
            link = group.links.get(name) if isinstance(group, Group) else None
            if link is None or not isinstance(group, Group):
                raise DeadEnd("link", f"link to {target!r}, which does not exist")
            here = self.follow(link, group, here.file)
        return here
