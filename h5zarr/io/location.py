"""Locations of files, and of the files that another file names.

A remote file can only name files beside it. It never makes h5zarr read local files or contact another server.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, field

from h5zarr.errors import SourceError
from h5zarr.io.protocols import PROTOCOL, grammar_of, protocol_of
from h5zarr.io.urls import (
    decode_escapes,
    display_url,
    find_local_path,
    find_named,
    find_one_path,
    hide_secrets,
    is_rewritten,
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

    `str()` and `repr()` leave out secrets, so a location can be used in messages. There is no `os.fspath` for the same
    reason.

    `text` is the path or URL as given, and may contain secrets. `path` is the local path that it names, or None; see
    `find_local_path`. It is looked up once, when the text is parsed. A relative path stays relative.
    """

    text: str = field(repr=False)
    path: str | None

    @classmethod
    def parse(cls, place: str | os.PathLike[str] | Location) -> Location:
        """Return the location that a path or URL names. A location is returned unchanged."""
        if isinstance(place, Location):
            return place
        if not isinstance(place, str | os.PathLike):
            raise TypeError(f"expected a path or URL, not {type(place).__name__}")
        text = os.fspath(place)
        return cls(text, find_local_path(text))

    def __str__(self) -> str:
        return display_url(self.text)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    @property
    def links(self) -> list[str]:
        """The links of a chain of URLs; a single link if it is not a chain."""
        return [self.text] if self.path is not None else split_chain(self.text)

    @property
    def is_chain(self) -> bool:
        return len(self.links) > 1

    @property
    def protocol(self) -> str:
        """The protocol that reads the bytes: that of the last link; "file" for local paths."""
        return "file" if self.path is not None else protocol_of(self.links[-1])

    @property
    def address(self) -> str:
        """The link that names the file, without its query. It may contain a user and a password."""
        return self.addresses[find_named(self.links)]

    @property
    def addresses(self) -> list[str]:
        """The links without their queries. They may contain users and passwords."""
        return self.links if self.path is not None else [split_query(link)[0] for link in self.links]

    @property
    def query(self) -> str:
        """The query of the link that names the file, with its leading mark; "" if there is none."""
        return "" if self.path is not None else split_query(self.links[find_named(self.links)])[1]

    @property
    def selects_version(self) -> bool:
        """Whether the query selects a version of an object in a bucket."""
        return bool(self.query) and grammar_of(self.address).is_version

    @property
    def is_changed_by_fsspec(self) -> bool:
        """Whether fsspec's HTTP file system, without options, would request another URL than this escaped one."""
        return self.path is None and is_rewritten(self.text)

    def split_root(self) -> tuple[str, str]:
        """Return the protocol of a URL with its host or bucket, and the path after it, without query.

        For a chain, they are those of the link that names the file.
        """
        return split_path(self.address)

    def plain_path(self) -> str:
        """Return the absolute path of a local file, or host and path of a URL, without leading slashes or secrets."""
        if self.path is not None:
            return self.absolute().replace(os.sep, "/").lstrip("/")
        links = split_chain(str(self))
        return PROTOCOL.sub("", links[find_named(links)], count=1).lstrip("/")

    def find_path(self) -> str | None:
        """Return the local path to open, or None. Raises UnclearURL for a file:// URL that names two files."""
        if "%" in self.text:
            find_one_path(self.text)
        return self.path

    def for_fsspec(self) -> str:
        """Return the URL to pass to fsspec. Raises UnclearURL if fsspec would misunderstand every form of it."""
        return settle_url(self.text)

    def unescaped(self) -> str:
        """Return the URL to pass to fsspec; that of a web server with the escapes before its query decoded."""
        return decode_escapes(self.for_fsspec())

    def for_references(self) -> tuple[str, bool]:
        """Return the URL to write into references, and whether something that looks secret was left out of it."""
        return reference_url(self.text)

    def without_secrets(self) -> str:
        """Return the text without parts that look secret. Unlike `str()`, it keeps everything else, such as a query."""
        return hide_secrets(self.text)

    def has_mark(self, mark: str) -> bool:
        """Return whether the text starts with the mark of a container, such as "icechunk+"."""
        return self.text.lower().startswith(mark)

    def marked(self, mark: str) -> Location:
        """Return the location with the mark of a container before it. A path becomes a file:// URL."""
        url = self.text if PROTOCOL.match(self.text) else "file://" + os.path.abspath(self.text)
        return Location.parse(mark + url)

    def without_mark(self, mark: str) -> Location:
        """Return the location after the mark of a container."""
        return Location.parse(self.text[len(mark) :])

    def without_slash(self) -> Location:
        """Return the location without slashes at its end."""
        return Location.parse(self.text.rstrip("/")) if self.text.endswith("/") else self

    def inside(self, name: str) -> Location:
        """Return the location of a file in this directory, with the same query. Names separate their parts with "/"."""
        if self.path is not None:
            return Location.parse(f"{self.path.rstrip('/')}/{name}")
        link = f"{self.address.rstrip('/')}/{quote_name(name, self.address)}{self.query}"
        return Location.parse(self._with_named(link))

    def with_listed(self, name: str) -> str:
        """Return the URL of the file that the file system of this URL calls `name`."""
        return self._with_named(name if PROTOCOL.match(name) else f"{protocol_of(self.address)}://{name}")

    def with_path_of(self, other: Location) -> str:
        """Return this URL with the path of another one, and without the version of an object.

        It opens a file whose stored URL lacks the secrets that this URL has.
        """
        query = "" if self.selects_version else self.query
        return self._with_named(f"{self.split_root()[0]}{other.split_root()[1]}{query}")

    def _with_named(self, link: str) -> str:
        """Return this URL with another link in place of the one that names the file."""
        links = self.links
        links[find_named(links)] = link
        return "::".join(links)

    def absolute(self) -> str:
        """Return the absolute path of a local file, or the text of any other location."""
        return self.text if self.path is None else os.path.abspath(self.path)


class NotBeside(SourceError):
    """A file names another file at a place where h5zarr does not look for it."""

    remedy = "Put that file beside the one that refers to it, and change the reference."


def is_local(url: str) -> bool:
    return find_local_path(url) is not None


def local_candidates(url: str, name: str) -> list[str]:
    """Return where to look for the HDF5 file that a local file calls `name`, in the order of the HDF5 library.

    An absolute path comes first. Then come three directories: that of the referring file, the working directory, and
    that of the referring file with symbolic links resolved. In them, the library looks for the relative path, or for
    the last component of an absolute path.
    """
    _check_name(name)
    path = os.path.abspath(find_local_path(url) or url)
    first = [os.path.normpath(name)] if os.path.isabs(name) else []
    tail = os.path.basename(name) if os.path.isabs(name) else name
    places = [os.path.dirname(path), os.getcwd(), os.path.dirname(os.path.realpath(path))]
    return list(dict.fromkeys(first + [os.path.normpath(os.path.join(place, tail)) for place in places]))


def raw_candidates(url: str, name: str) -> list[str]:
    """Return where to look for the raw file that a local file calls `name`.

    The HDF5 library looks only in the working directory. That is arbitrary in a scheduled job, so the directory of the
    file comes first.
    """
    _check_name(name)
    path = os.path.abspath(find_local_path(url) or url)
    if os.path.isabs(name):
        return [os.path.normpath(name)]
    places = [os.path.dirname(path), os.getcwd()]
    return list(dict.fromkeys(os.path.normpath(os.path.join(place, name)) for place in places))


def sibling_url(url: str, name: str) -> str:
    """Return the URL of the file that the file at `url` calls `name`: beside it, with the same query but no version.

    Only the last component of an absolute path counts, as in the library if the path does not exist. Raises `NotBeside`
    for another URL, and for a path that leads out of the server or bucket.
    """
    _check_name(name)
    links = split_chain(url)
    place = find_named(links)
    if not _has_path(links[place]):
        raise NotBeside(f"{display_url(url)!r} has no directory in which {name!r} could be")
    address, query = split_query(links[place])
    grammar = grammar_of(address)
    if "::" in name or "\\" in name or _DRIVE.match(name):
        raise NotBeside(f"{name!r} is not a valid name for a file on a server")
    if not grammar.is_quoted and grammar.query and grammar.query in name:
        raise NotBeside(f"{name!r} is ambiguous: {grammar.query!r} could be part of the name or begin a query")
    tail = posixpath.basename(name) if name.startswith("/") else name
    root, path = split_path(address)
    # The directory is not normalised: in a bucket, "a//b" and "a/b" are different places.
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
    """Return the URL to write into references for the file at `other`, which the file at `url` calls `name`.

    `reference` is the URL that references use for the file at `url`. If it is not the file's own URL, the result is
    relative to `reference`.
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
        raise NotBeside(f"{name!r} is not a valid file name")
    if PROTOCOL.match(name):
        raise NotBeside(f"{name!r} is a URL; h5zarr does not follow URLs in files")


def _has_path(link: str) -> bool:
    return PROTOCOL.match(link) is not None and bool(split_path(split_query(link)[0])[1])
