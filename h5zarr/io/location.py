"""Locations: where files are, and where the files are that another file names.

What is near stays near and what is far stays far: a file from a server never makes this machine read its own files, nor
ask another server.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, field

from h5zarr.errors import SourceError
from h5zarr.io.protocols import PROTOCOL, grammar_of, protocol_of
from h5zarr.io.urls import (
    display_url,
    find_local_path,
    find_named,
    find_one_path,
    hide_secrets,
    quote_name,
    reference_url,
    settle_url,
    split_chain,
    split_path,
    split_query,
)

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file is: a local path, or a URL or chain of URLs for fsspec.

    `str()` and `repr()` leave out secrets, so a location can be put into messages as it is. There is no `os.fspath`
    for the same reason.

    `text` is what was given, and may hold secrets. `path` is the local path that it names, or None; see
    `find_local_path`. It is looked up once, when the text is parsed, and stays relative if it was given so.
    """

    text: str = field(repr=False)
    path: str | None

    @classmethod
    def parse(cls, place: str | os.PathLike[str] | Location) -> Location:
        """Return the location that a path or URL names; a location is returned as it is."""
        if isinstance(place, Location):
            return place
        text = os.fspath(place)
        return cls(text, find_local_path(text))

    def __str__(self) -> str:
        return display_url(self.text)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    @property
    def links(self) -> list[str]:
        """The links of a chain; one if it is not a chain."""
        return [self.text] if self.path is not None else split_chain(self.text)

    @property
    def is_chain(self) -> bool:
        return len(self.links) > 1

    @property
    def protocol(self) -> str:
        """The protocol that reads the bytes, that is, the one of the last link; "file" for local paths."""
        return "file" if self.path is not None else protocol_of(self.links[-1])

    @property
    def address(self) -> str:
        """The link that names the file, without its query. It may hold a user and a password."""
        return self.addresses[find_named(self.links)]

    @property
    def addresses(self) -> list[str]:
        """The links without their queries. They may hold users and passwords."""
        return self.links if self.path is not None else [split_query(link)[0] for link in self.links]

    def find_path(self) -> str | None:
        """Return the local path to open, or None. Raises UnclearURL for a file:// URL that names two files."""
        if "%" in self.text:
            find_one_path(self.text)
        return self.path

    def for_fsspec(self) -> str:
        """Return the URL as fsspec should get it. Raises UnclearURL if there is no such URL."""
        return settle_url(self.text)

    def for_references(self) -> tuple[str, bool]:
        """Return the URL to write into references, and whether something that looks secret was left out of it."""
        return reference_url(self.text)

    def without_secrets(self) -> str:
        """Return the text without what looks secret. Unlike `str()`, it leaves all that tells two files apart."""
        return hide_secrets(self.text)

    def absolute(self) -> str:
        """Return the absolute path of a local file, and the text of anything else."""
        return self.text if self.path is None else os.path.abspath(self.path)


class NotBeside(SourceError):
    """A file names another one that is not to be looked for there."""

    remedy = "Put that file beside the one that refers to it, and change the reference."


def is_local(url: str) -> bool:
    return find_local_path(url) is not None


def local_candidates(url: str, name: str) -> list[str]:
    """Return the paths at which the library looks for the HDF5 file that a local file calls `name`, in its order.

    These are the path itself, if it is absolute; then, for its last component or the whole relative path, the directory
    of the file that refers to it, the working directory, and the directory of that file with symbolic links resolved.
    """
    _check_name(name)
    path = os.path.abspath(find_local_path(url) or url)
    first = [os.path.normpath(name)] if os.path.isabs(name) else []
    tail = os.path.basename(name) if os.path.isabs(name) else name
    places = [os.path.dirname(path), os.getcwd(), os.path.dirname(os.path.realpath(path))]
    return list(dict.fromkeys(first + [os.path.normpath(os.path.join(place, tail)) for place in places]))


def raw_candidates(url: str, name: str) -> list[str]:
    """Return the paths at which the raw file is looked for that a local file calls `name`.

    The library looks in the working directory alone. That says little in a scheduled job, so the directory of the file
    comes first.
    """
    _check_name(name)
    path = os.path.abspath(find_local_path(url) or url)
    if os.path.isabs(name):
        return [os.path.normpath(name)]
    places = [os.path.dirname(path), os.getcwd()]
    return list(dict.fromkeys(os.path.normpath(os.path.join(place, name)) for place in places))


def sibling_url(url: str, name: str) -> str:
    """Return the URL of the file that the one at `url` calls `name`: beside it, with the same query, without a version.

    Of an absolute path only the last component counts, as it does to the library where there is no such path. Raises
    `NotBeside` for another URL, and for a path that leads out of the server or bucket.
    """
    _check_name(name)
    links = split_chain(url)
    place = find_named(links)
    if not _has_path(links[place]):
        raise NotBeside(f"there is nothing beside {display_url(url)!r} that could be called {name!r}")
    address, query = split_query(links[place])
    grammar = grammar_of(address)
    if "::" in name or "\\" in name or _DRIVE.match(name):
        raise NotBeside(f"{name!r} is no name of a file on a server")
    if not grammar.is_quoted and grammar.query and grammar.query in name:
        raise NotBeside(f"{name!r} cannot be told from a name and {grammar.query!r}")
    tail = posixpath.basename(name) if name.startswith("/") else name
    root, path = split_path(address)
    # Of the directory nothing is put right: to a bucket, "a//b" is another place than "a/b".
    lead = "/" if path.startswith("/") else ""
    parts = path.removeprefix("/").split("/")[:-1]
    for part in quote_name(tail, address).split("/"):
        if part == "..":
            if not parts:
                raise NotBeside(f"{name!r} leads out of the server or bucket of the file that names it")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    links[place] = f"{root}{lead}{'/'.join(parts)}{'' if grammar.is_version else query}"
    return "::".join(links)


def sibling_reference(url: str, reference: str, other: str, name: str) -> str:
    """Return what stands in references for the file at `other`, which the one at `url` calls `name`.

    Where something else than its own URL stands for the file that refers to it, `reference`, the other one has the same
    position relative to that.
    """
    own, _ = reference_url(other)
    if reference == reference_url(url)[0]:
        return own
    if is_local(other):
        name = os.path.relpath(other, os.path.dirname(os.path.abspath(find_local_path(url) or url)))
    if is_local(reference):
        return os.path.normpath(os.path.join(os.path.dirname(reference), name))
    try:
        return sibling_url(reference, name)
    except NotBeside:
        return own


def _check_name(name: str) -> None:
    if not name or "\0" in name:
        raise NotBeside(f"{name!r} is no name of a file")
    if PROTOCOL.match(name):
        raise NotBeside(f"{name!r} is a URL, which is not followed: the file may be anywhere")


def _has_path(link: str) -> bool:
    return PROTOCOL.match(link) is not None and bool(split_path(split_query(link)[0])[1])
