"""List the sources (patterns, directories, files or a list of names) and the state of each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from glob import glob
from typing import Any

from h5zarr.commands.catalog.place import DATA_SUFFIXES
from h5zarr.commands.catalog.waiting import map_at_once
from h5zarr.errors import SourceError, SourceGone
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.failure import or_source_error
from h5zarr.io.local import format_mtime
from h5zarr.io.location import Location
from h5zarr.io.patience import call_patiently
from h5zarr.io.protocols import PROTOCOL, grammar_of, protocol_of
from h5zarr.io.source import Identity

_MAGIC = re.compile(r"[*?\[]")
_CHECK_PATTERN = "Check the pattern, and quote it for the shell; ** matches any number of directories."
_CHECK_NAMES = (
    f"Below a directory, h5zarr uses files that end in {', '.join(DATA_SUFFIXES[:-1])} or {DATA_SUFFIXES[-1]}. For "
    "other names, give a quoted pattern such as 'DIRECTORY/**'."
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A source: how to open it, its path below the directory that was searched, and its state if known.

    `found_by` is the pattern, directory or list that found it, without secrets so that it can be stored.
    """

    url: str
    path: str
    identity: Identity | None
    found_by: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The sources, and everything that was searched: what was found there before and is missing now has vanished."""

    found_by: frozenset[str]
    sources: tuple[Listed, ...]


def list_sources(
    pattern: str,
    access: Access = USUAL_ACCESS,
    is_known: Callable[[str], bool] = lambda url: True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Listing:
    """Return the files that match a pattern, or the HDF5 and netCDF files (by suffix) below a directory.

    If the listing lacks the state of a file, it is requested, but only if the file `is_known`: other files have nothing
    to compare with. Once `is_stopped` returns True, requests stop and the result is useless. Raises SourceError if
    listing fails.
    """
    location = Location.parse(pattern)
    found_by = str(location)
    if location.path is not None:
        return Listing(frozenset({found_by}), tuple(_list_local(location.path, found_by)))
    found = list(_list_remote(location, access))
    return Listing(frozenset({found_by}), _complete(found, access, is_known, is_stopped))


def list_several(
    places: Iterable[str],
    access: Access = USUAL_ACCESS,
    is_known: Callable[[str], bool] = lambda url: True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Listing:
    """Return the files of several sources, each of them a pattern, a directory or a file, as if it were alone.

    Files are not searched for, so a list may name thousands: a remote directory must end with a slash, unless it is in
    a bucket and its name has no suffix. A file that does not exist is listed all the same; reading it reports why.
    Raises SourceGone if a pattern or directory has no file.
    """
    files: list[Listed] = []
    found: list[Listed] = []
    searched: set[str] = set()
    for place in dict.fromkeys(filter(None, places)):
        location = Location.parse(place)
        searched.add(str(location))
        if _is_file(location):
            files.append(_list_file(location))
            continue
        listing = list_sources(place, access, is_known, is_stopped)
        if not listing.sources:
            raise nothing_found([str(location)])
        found += listing.sources
    return Listing(frozenset(searched), (*found, *_complete(files, access, is_known, is_stopped)))


def nothing_found(searched: Iterable[str]) -> SourceGone:
    """Return the error for patterns and directories in which there is no file."""
    names = sorted(searched)
    remedy = _CHECK_PATTERN if any(_MAGIC.search(name) for name in names) else _CHECK_NAMES
    return SourceGone(f"{', '.join(names)}: no file was found", remedy=remedy)


def _is_file(location: Location) -> bool:
    """Return whether one of several sources is the name of a file. In the URL of a web server, only * is a wildcard."""
    if location.path is not None:
        is_there = os.path.lexists(location.path)
        return not os.path.isdir(location.path) and (is_there or not _MAGIC.search(location.path))
    is_web = protocol_of(location.text) in ("http", "https")
    is_pattern = "*" in location.text if is_web else _MAGIC.search(location.text)
    if location.text.endswith("/") or is_pattern:
        return False
    has_suffix = "." in location.text.rpartition("/")[2]
    return has_suffix or not grammar_of(location.text).is_bucket


def _list_file(location: Location) -> Listed:
    name = location.plain_path().rpartition("/")[2]
    return Listed(location.absolute(), name, _local_identity(location), str(location))


def list_named(
    urls: Iterable[str],
    found_by: str,
    access: Access = USUAL_ACCESS,
    is_known: Callable[[str], bool] = lambda url: True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Listing:
    """Return the sources of a list. Known sources have their state, or None if they do not exist."""
    # The path is that of the whole URL, so that it does not depend on other sources.
    named = [url for url in dict.fromkeys(urls) if url]
    found = [Listed(url, Location.parse(url).plain_path(), None, found_by) for url in named]
    return Listing(frozenset({found_by}), _complete(found, access, is_known, is_stopped))


def _complete(
    found: list[Listed],
    access: Access,
    is_known: Callable[[str], bool],
    is_stopped: Callable[[], bool],
) -> tuple[Listed, ...]:
    """Return sources with the missing states filled in. Requests run concurrently."""

    def ask(url: str) -> Identity | None:
        return None if is_stopped() else ask_identity(url, access)

    unknown = [one.url for one in found if one.identity is None and is_known(one.url)]
    if not unknown:
        return tuple(found)
    identities = dict(zip(unknown, map_at_once(ask, unknown), strict=True))
    return tuple(one if one.identity else replace(one, identity=identities.get(one.url)) for one in found)


def read_names(lines: Iterable[str]) -> list[str]:
    """Return the URLs in the lines of a list. Skips empty lines and lines that begin with #."""
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def _list_local(pattern: str, shown: str) -> Iterator[Listed]:
    absolute = os.path.abspath(pattern)
    if os.path.isdir(absolute):
        root, names = absolute, list(_walk(absolute))
    elif os.path.lexists(absolute) or not _MAGIC.search(pattern):
        root, names = os.path.dirname(absolute), [absolute]
    else:
        root = _root_of(absolute)
        names = glob(absolute, recursive=True)
    for name in sorted(names):
        try:
            status = os.stat(name)
        except FileNotFoundError:
            if name == absolute:
                raise SourceGone(f"{shown}: there is no such file or directory", remedy="Check the path.") from None
            continue  # it has just been removed
        if not os.path.isdir(name):
            identity = Identity(nbytes=status.st_size, mtime=format_mtime(status.st_mtime_ns))
            yield Listed(name, os.path.relpath(name, root).replace(os.sep, "/"), identity, shown)


def _walk(root: str) -> Iterator[str]:
    for above, _, names in os.walk(root):
        yield from (os.path.join(above, name) for name in names if name.lower().endswith(DATA_SUFFIXES))


def _list_remote(location: Location, access: Access) -> Iterator[Listed]:
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.responses import interpret_identity

    shown, options, timeout = str(location), access.options_for(location), access.network.timeout_seconds
    filesystem, path = or_source_error(shown, timeout, lambda: shared_filesystem(location.for_fsspec(), options))
    is_pattern = bool(_MAGIC.search(path))
    found = or_source_error(shown, timeout, lambda: _find(filesystem, path, is_pattern, timeout))
    if not found and not is_pattern:
        also = ", the endpoint_url and the credentials" if grammar_of(shown).is_bucket else ""
        raise SourceGone(f"{shown}: there is no such file or directory", remedy=f"Check the URL{also}.")
    root = _root_of(path) if is_pattern else path.rstrip("/")
    for name, stated in sorted(found.items()):
        if stated["type"] != "file" or not (is_pattern or name == path or name.lower().endswith(DATA_SUFFIXES)):
            continue
        known = interpret_identity(stated) if stated.get("size") is not None else None
        path = name[len(root) :].lstrip("/") or name.rpartition("/")[2]
        yield Listed(location.with_listed(name), path, known, shown)


def _find(filesystem: Any, path: str, is_pattern: bool, timeout_seconds: float) -> dict[str, Any]:
    filesystem.invalidate_cache()  # results cached earlier in this process may be outdated
    if is_pattern:
        found: dict[str, Any] = call_patiently(filesystem, "glob", path, detail=True, seconds=timeout_seconds)
    elif PROTOCOL.match(path) and path.lower().endswith(DATA_SUFFIXES):
        # A web server: listing a file would fetch it and look for links.
        found = {path: call_patiently(filesystem, "info", path, seconds=timeout_seconds)}
    else:
        found = call_patiently(filesystem, "find", path, detail=True, seconds=timeout_seconds)
    # fsspec's HTTP file system describes a file that it was asked to list by an empty dictionary.
    return {name: {"type": "file", **stated} for name, stated in found.items()}


def _root_of(pattern: str) -> str:
    """Return the directory that contains all matches of a pattern."""
    match = _MAGIC.search(pattern)
    return pattern[: match.start()].rpartition("/")[0] if match else pattern.rpartition("/")[0]


def ask_identity(url: str, access: Access) -> Identity | None:
    """Return the state of one file, or None if it is unavailable; reading the file then reports why.

    A server that does not answer within `timeout_seconds` counts as unavailable.
    """
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.responses import interpret_identity

    location = Location.parse(url)
    if location.path is not None:
        return _local_identity(location)

    def ask() -> Identity:
        filesystem, path = shared_filesystem(location.for_fsspec(), access.options_for(location))
        filesystem.invalidate_cache(path)  # the file may have appeared or changed since its directory was listed
        return interpret_identity(call_patiently(filesystem, "info", path, seconds=timeout_seconds))

    timeout_seconds = access.network.timeout_seconds
    try:
        return or_source_error(str(location), timeout_seconds, ask)
    except (SourceError, KeyError, TypeError):
        return None


def _local_identity(location: Location) -> Identity | None:
    if location.path is None:
        return None
    try:
        status = os.stat(location.path)
    except OSError:
        return None
    return Identity(nbytes=status.st_size, mtime=format_mtime(status.st_mtime_ns))
