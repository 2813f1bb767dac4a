"""The archive as it is now: its files, their states, and which files of a cube it should have."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.listing import ask_identity, list_sources, nothing_found
from h5zarr.commands.catalog.place import DATA_SUFFIXES, Place
from h5zarr.commands.catalog.rows import Known, Row, Status
from h5zarr.commands.catalog.source_names import source_name
from h5zarr.commands.combine.sources import index_at, is_many
from h5zarr.containers.registry import container_of
from h5zarr.errors import ArgumentError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.opening import open_hierarchy


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file: how to open it, its name in references, and its state, if known.

    `url` may be that of references to the file; `place` is the directory of an index, if `address` is a name in it. An
    index may have no references: then the file itself is read.
    `failure` says why the file cannot be joined, if that is known already.
    """

    address: str
    name: str
    identity: Identity | None
    failure: str = ""
    place: Place | None = None

    @property
    def url(self) -> str:
        return self.address if self.place is None else self.place.locate(self.address)


@dataclass(frozen=True, slots=True)
class Archive:
    """The files by name. `covers` tells whether a file would be listed if it existed."""

    files: dict[str, ArchiveFile]
    covers: Callable[[str], bool]

    def digest(self) -> str:
        """Return a hash of all files and their states: if it is the same as before, nothing has changed."""
        found = sha256()
        left = iter(sorted(self.files.items()))
        while some := list(islice(left, 10_000)):
            lines = [f"{name}\0{one.identity!r}\0{one.failure}\n" for name, one in some]
            found.update("".join(lines).encode("utf-8", "surrogateescape"))
        return found.hexdigest()[:32]


def list_archive(
    sources: Sequence[str],
    access: Access,
    patterns: Sequence[str] = (),
    find_known: Callable[[], Collection[str]] = tuple,
    *,
    is_all: bool = False,
) -> Archive:
    """Return what is in the places that the user gave: patterns, directories, files, references and indexes.

    With `patterns`, only files whose names match one of them. `find_known` returns the files of the cube. If the
    sources are all (`is_all`) that the cube was made from, an index among them knows all of its files: those that it
    does not list were pruned. Raises SourceError if a place cannot be listed, or if there is nothing and the cube has
    nothing of it.
    """
    is_wanted = name_test(patterns)
    files: dict[str, ArchiveFile] = {}
    tests: list[Callable[[str], bool]] = []
    for source in map(Location.parse, sources):
        if (place := index_at(source, access)) is not None:
            found, covers = _list_index(place, is_all=is_all and len(sources) == 1)
        else:
            found, covers = _list_place(source, access, find_known)
            if not found and not any(map(covers, find_known())):
                raise nothing_found([str(source)])
        files |= {one.name: one for one in found if is_wanted(one.name)}
        tests.append(covers)
    return Archive(files, lambda name: is_wanted(name) and any(test(name) for test in tests))


def name_test(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for the names of files. A pattern without a slash is for the last part of a name."""
    compiled = [re.compile(("" if "/" in one else ".*/") + _translate(one), re.DOTALL) for one in patterns]
    return lambda name: not compiled or any(one.fullmatch(name) for one in compiled)


def _list_place(
    source: Location, access: Access, find_known: Callable[[], Collection[str]]
) -> tuple[list[ArchiveFile], Callable[[str], bool]]:
    # A file whose name looks like a pattern may have vanished.
    own_name = source_name(source.absolute() if source.path is not None else source.text)
    if is_many(source) and (os.path.isdir(source.path or "") or own_name not in find_known()):
        made = [_describe(one.url, one.identity, access) for one in list_sources(source.text, access).sources]
        return made, _covers(source)
    identity = ask_identity(source.text, access)
    one = _describe(source.text, identity, access) if identity is not None or _is_references(source) else None
    return ([] if one is None else [one]), {own_name if one is None else one.name}.__contains__


def _list_index(place: Place, *, is_all: bool) -> tuple[list[ArchiveFile], Callable[[str], bool]]:
    """Return the files of an index that have references: there may be none yet.

    Files without references are failures of the index. They are not in the cube, and no misfits of it.
    """
    catalog = Catalog(place)
    found, others, stale = [], [], []
    for row in catalog.known():  # there may be many: a whole row takes several times as long
        if row.status in (Status.VANISHED, Status.FAILED):
            others.append(row.source)
        elif row.status.is_indexed:
            found.append(_indexed(row, place))
        else:
            stale.append(row.source)
    for whole in catalog.find(stale):
        why = f"it is {whole.status} in the index: {whole.reason}"
        found.append(_indexed(whole, place, why))
    known = () if is_all else {*others, *(file.name for file in found)}
    return found, (lambda name: True) if is_all else known.__contains__


def _indexed(row: Known | Row, place: Place, failure: str = "") -> ArchiveFile:
    if row.output:
        return ArchiveFile(row.output, row.source, row.identity, failure, place)
    return ArchiveFile(row.source, row.source, row.identity, failure)


def _is_references(location: Location) -> bool:
    return container_of(location) is not None or location.text.endswith((".json", ".json.gz", ".json.zst"))


def _describe(url: str, identity: Identity | None, access: Access) -> ArchiveFile:
    """Return a file. References say themselves which file they are of, and in which state it was."""
    location = Location.parse(url)
    if not _is_references(location):
        return ArchiveFile(url, source_name(location.absolute() if location.path is not None else url), identity)
    opened = open_hierarchy(location, access)
    try:
        if opened.cube is not None:
            what = f"{opened.url}: this is a cube, and a cube is updated from files"
            raise ArgumentError(what, remedy="Give the files of that cube, or join both with h5zarr.combine.")
        expected = opened.sources.expected
        return ArchiveFile(url, opened.source, expected[0] if expected else None)
    finally:
        opened.close()


def _covers(source: Location) -> Callable[[str], bool]:
    """Return a test for the names of files that a pattern or directory contains."""
    text = source_name(source.absolute() if source.path is not None else source.text.rstrip("/"))
    is_directory = os.path.isdir(source.path) if source.path is not None else not set("*?[") & set(text)
    if is_directory:
        return lambda name: name.startswith(f"{text}/") and name.lower().endswith(DATA_SUFFIXES)
    pattern = re.compile(_translate(text), re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


def _translate(pattern: str) -> str:
    """Return a pattern as a regular expression. `**` matches any number of directories, `*` within one name."""
    made = []
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", pattern, re.DOTALL):
        if part in ("**/", "**"):
            made.append("(?:.*/)?" if part == "**/" else ".*")
        elif part in ("*", "?"):
            made.append("[^/]*" if part == "*" else "[^/]")
        elif len(part) > 1:
            made.append("[^" + part[2:] if part[1] == "!" else part)
        else:
            made.append(re.escape(part))
    return "".join(made)
