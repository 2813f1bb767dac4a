"""Which sources there are: a pattern, a directory, or a list of them; and in what state each of them is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from glob import glob
from typing import Any

from h5zarr.errors import SourceError, SourceGone
from h5zarr.io.failure import or_source_error
from h5zarr.io.grammar import PROTOCOL, find_named, is_chain, protocol_of, split_chain
from h5zarr.io.local import format_mtime
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.quoting import settle_url
from h5zarr.io.source import Identity
from h5zarr.io.url import display_url, find_local_path

SUFFIXES = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf", ".hdf5", ".he5")
_MAGIC = re.compile(r"[*?\[]")
_AT_ONCE = 32  # questions for the state of a file, where the list does not tell


@dataclass(frozen=True, slots=True)
class Listed:
    """A source that was found: how to open it, where below the place that was searched, and its state if known."""

    url: str
    path: str
    identity: Identity | None


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found, and `found_by`, the words by which: without secrets, so that they can be kept."""

    found_by: str
    sources: tuple[Listed, ...]


def list_sources(
    pattern: str,
    storage_options: Mapping[str, Any] | None = None,
    is_known: Callable[[str], bool] = lambda url: True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Listing:
    """Return the files that match a pattern, or that are below a directory and have a suffix of HDF5 or netCDF.

    Where the list does not tell the state of a file, it is asked for if the file `is_known`: there is nothing to
    compare that of others with. When `is_stopped` says so, nothing more is asked for, and what is returned is of no
    use. Raises SourceError where nothing can be listed there.
    """
    found_by = display_url(pattern)
    local = find_local_path(pattern)
    if local is not None:
        return Listing(found_by, tuple(_list_local(local, found_by)))
    found = list(_list_remote(pattern, storage_options or {}, found_by))
    return Listing(found_by, _complete(found, storage_options, is_known, is_stopped))


def list_named(
    urls: Iterable[str],
    found_by: str,
    storage_options: Mapping[str, Any] | None = None,
    is_known: Callable[[str], bool] = lambda url: True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Listing:
    """Return the sources of a list, those that are known with their state; where they are not there, they have none."""
    found = [Listed(url, _path_of(url), None) for url in dict.fromkeys(urls) if url]
    return Listing(found_by, _complete(found, storage_options, is_known, is_stopped))


def _complete(
    found: list[Listed],
    storage_options: Mapping[str, Any] | None,
    is_known: Callable[[str], bool],
    is_stopped: Callable[[], bool],
) -> tuple[Listed, ...]:
    """Return sources with the states of those whose list did not tell it: many are asked at a time."""

    def ask(url: str) -> Identity | None:
        return None if is_stopped() else ask_identity(url, storage_options)

    unknown = [one.url for one in found if one.identity is None and is_known(one.url)]
    if not unknown:
        return tuple(found)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        told = dict(zip(unknown, pool.map(ask, unknown), strict=True))
    return tuple(one if one.identity else replace(one, identity=told.get(one.url)) for one in found)


def read_names(lines: Iterable[str]) -> list[str]:
    """Return the URLs in the lines of a list; empty lines and those that begin with # are passed over."""
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
            continue  # it was there a moment ago
        if not os.path.isdir(name):
            identity = Identity(nbytes=status.st_size, mtime=format_mtime(status.st_mtime_ns))
            yield Listed(name, os.path.relpath(name, root).replace(os.sep, "/"), identity)


def _walk(root: str) -> Iterator[str]:
    for above, _, names in os.walk(root):
        yield from (os.path.join(above, name) for name in names if name.lower().endswith(SUFFIXES))


def _list_remote(pattern: str, storage_options: Mapping[str, Any], shown: str) -> Iterator[Listed]:
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.remote import interpret_identity

    filesystem, path = or_source_error(shown, 0, lambda: shared_filesystem(settle_url(pattern), storage_options))
    is_pattern = bool(_MAGIC.search(path))
    found = or_source_error(shown, _TIMEOUT, lambda: _find(filesystem, path, is_pattern))
    root = _root_of(path) if is_pattern else path.rstrip("/")
    for name, stated in sorted(found.items()):
        if stated.get("type") != "file" or not (is_pattern or name == path or name.lower().endswith(SUFFIXES)):
            continue
        known = interpret_identity(stated) if stated.get("size") is not None else None
        yield Listed(_name_in(pattern, name), name[len(root) :].lstrip("/") or name.rpartition("/")[2], known)


_TIMEOUT = ReadPolicy().timeout_seconds


def _find(filesystem: Any, path: str, is_pattern: bool) -> dict[str, Any]:
    filesystem.invalidate_cache()  # what was listed in this process before may have changed since
    found: dict[str, Any] = filesystem.glob(path, detail=True) if is_pattern else filesystem.find(path, detail=True)
    if not found and not is_pattern:
        raise FileNotFoundError
    return found


def _name_in(pattern: str, name: str) -> str:
    """Return the URL of what a file system calls `name`: the pattern, with this in the place of what it looked for."""
    if not is_chain(pattern):
        return name if PROTOCOL.match(name) else f"{protocol_of(pattern)}://{name}"
    links = split_chain(pattern)
    number = find_named(links)
    links[number] = name if PROTOCOL.match(name) else f"{protocol_of(links[number])}://{name}"
    return "::".join(links)


def _root_of(pattern: str) -> str:
    """Return the directory below which all is that matches a pattern."""
    match = _MAGIC.search(pattern)
    return pattern[: match.start()].rpartition("/")[0] if match else pattern.rpartition("/")[0]


def _path_of(url: str) -> str:
    """Return where a source of a list is, as a path: that of the whole URL, so that it does not depend on others."""
    path = find_local_path(url)
    if path is not None:
        return os.path.abspath(path).replace(os.sep, "/").lstrip("/")
    link = split_chain(display_url(url))
    named = link[find_named(link)]
    return PROTOCOL.sub("", named, count=1).lstrip("/")


def ask_identity(url: str, storage_options: Mapping[str, Any] | None) -> Identity | None:
    """Return the state of one file; None where it cannot be told, which the attempt to read it will explain."""
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.remote import interpret_identity

    path = find_local_path(url)
    if path is not None:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return Identity(nbytes=status.st_size, mtime=format_mtime(status.st_mtime_ns))

    def ask() -> Identity:
        filesystem, path = shared_filesystem(settle_url(url), storage_options)
        return interpret_identity(filesystem.info(path))

    try:
        return or_source_error(display_url(url), _TIMEOUT, ask)
    except (SourceError, KeyError, TypeError):
        return None
