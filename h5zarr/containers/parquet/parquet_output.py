"""Write references in Parquet to a directory, locally or through fsspec.

A local directory is written beside its target and then swapped with it, so that either the old or the new one exists at
any time. An update keeps the old one beside it, so that readers can go on reading what they opened. Remotely, nothing
can be swapped: `.zmetadata` is removed first and written last. An incomplete directory therefore has none, and every
reader reports that instead of reading a mixture.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from h5zarr.containers.beside import locked, new_name_beside, sweep_beside
from h5zarr.containers.container import ABSENT, Content, Output, State
from h5zarr.containers.output import check_name, find_filesystem, or_output_error, told_as
from h5zarr.containers.parquet.parquet_writing import METADATA, FileSink, is_own_metadata
from h5zarr.containers.parquet.remote_update import RemoteUpdate
from h5zarr.containers.target import check_target, file_state
from h5zarr.errors import OutputError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.patience import call_patiently, patience
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span

_OUR_FILE = re.compile(r"refs\.\d+(-[0-9a-f]+)?\.parq|files(-[0-9a-f]+)?\.parquet|\.zmetadata")
_FILE = "a file, but references in Parquet are a directory"
_BATCH_NBYTES = 1 << 25
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextmanager
def open_directory(output: Output) -> Iterator[FileSink]:
    """Yield a sink whose files appear at the location of `output` when the context ends without an exception.

    For remote targets, the previous files are gone after an exception. Only references in Parquet are replaced, or a
    file with `overwrite`: raises OutputError for anything else, or if writing is impossible.
    """
    location = output.location.without_slash()
    shown, path = str(location), location.path
    check_name(location)
    if {"{", "}"} & set(location.text if path is None else os.path.realpath(path)):
        what = "fsspec's reader of Parquet interprets braces in the name, or in that of a parent directory"
        raise OutputError(shown, what, remedy="Give another name for the output.")
    with _remote(location, output) if path is None else _local(os.path.realpath(path), output) as sink:
        yield sink


def directory_state(output: Output) -> State:
    """Return what is at the place of a directory of Parquet files."""
    location = output.location.without_slash()
    if location.path is not None:
        with told_as(output.shown):
            return _local_state(os.path.realpath(location.path))
    filesystem, path = find_filesystem(location, output.storage_options or {})
    return _remote_state(filesystem, path.rstrip("/"), output)[0]


class _LocalDirectory:
    """A sink over a local directory."""

    def __init__(self, root: str, shown: str) -> None:
        self._root = root
        self.shown = shown

    def start(self, token: str) -> None:
        pass

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        with told_as(self.shown):
            path = os.path.join(self._root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Never overwrite: on a case-insensitive file system, two names may be the same file.
            with open(path, "xb") as file:
                file.write(content)


@contextmanager
def _local(path: str, output: Output) -> Iterator[FileSink]:
    shown = output.shown
    with told_as(shown):
        check_target(output, _local_state(path))
        beside = new_name_beside(path)
        os.mkdir(beside)
    try:
        yield _LocalDirectory(beside, shown)
        with told_as(shown):
            _settle(beside)
            with locked(os.path.dirname(path)):
                check_target(output, _local_state(path))  # something may have appeared in the meantime
                _put(beside, path)
                if output.replaces is not None:
                    _keep(beside, previous_of(path))
            _sync(os.path.dirname(path))
        if output.replaces is not None:
            sweep_beside(path)
    finally:
        # This is now the unfinished directory, what was replaced, or gone.
        with suppress(OSError):
            shutil.rmtree(beside) if os.path.isdir(beside) else os.remove(beside)


def previous_of(path: str) -> str:
    """Return where the state before the last update of a local directory is kept, for readers that have opened it."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.previous")


def _keep(replaced: str, previous: str) -> None:
    """Keep a directory that was replaced until the next update."""
    with suppress(OSError):
        if os.path.isdir(previous):
            shutil.rmtree(previous)
        os.rename(replaced, previous)


def _local_state(path: str) -> State:
    if not os.path.lexists(path):
        return ABSENT
    if not os.path.isdir(path):
        state = file_state(Location.parse(path), None, lambda head, read_all: Content.OTHER)
        return replace(state, content=Content.OTHER, what=state.what or _FILE)
    names = [os.path.join(above, name) for above, _, found in os.walk(path) for name in found]
    metadata = os.path.join(path, METADATA)
    if metadata not in names:
        return _state_of(names, None)
    with open_source(metadata) as source:
        (content,) = source.read_many([Span(0, source.nbytes)])
        return _state_of(names, bytes(content), source.identity)


def _remote_state(filesystem: Any, path: str, output: Output) -> tuple[State, list[str]]:
    """Return what is at a remote path, and the names of all files there."""
    location = output.location.without_slash()
    seconds = output.network.timeout_seconds
    names = or_output_error(lambda: _find_files(filesystem, path, seconds), output.shown, seconds)
    if path in names:
        state = file_state(location, output.storage_options, lambda head, read_all: Content.OTHER, output.network)
        return replace(state, content=Content.OTHER, what=state.what or _FILE), names
    metadata = f"{path}/{METADATA}"
    if metadata not in names:
        return _state_of(names, None), names
    place = f"{location.text}/{METADATA}"
    with open_source(place, Access(storage_options=output.storage_options or {}, network=output.network)) as source:
        (content,) = source.read_many([Span(0, source.nbytes)])
        return _state_of(names, bytes(content), source.identity), names


def _state_of(names: Iterable[str], metadata: bytes | None, identity: Identity | None = None) -> State:
    """Return the state of a directory with these files. Files of references without metadata are left by a failure."""
    found = list(names)
    others = [name for name in found if not _OUR_FILE.fullmatch(name.rpartition("/")[2])]
    if metadata is not None and not _is_container(metadata):
        others.append(METADATA)
    if others:
        what = f"a directory that contains files other than references in Parquet ({os.path.basename(others[0])})"
        return State(Content.OTHER, identity, what=what, is_replaceable=False)
    if not found:
        return ABSENT
    is_own = metadata is not None and is_own_metadata(metadata)
    return State(Content.OWN if is_own else Content.REFERENCES, identity)


def _is_container(metadata: bytes) -> bool:
    """Return whether this is the `.zmetadata` of references in Parquet, and not that of a Zarr store."""
    try:
        document = json.loads(metadata)
    except ValueError:
        return False
    return isinstance(document, dict) and "metadata" in document and "record_size" in document


def _settle(directory: str) -> None:
    """Flush a directory and its files to disk."""
    for above, _, names in os.walk(directory):
        for name in names:
            _sync(os.path.join(above, name))
        _sync(above)


def _sync(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _put(new: str, path: str) -> None:
    """Move the directory `new` to `path`. The previous directory is then at `new`, or gone."""
    if not os.path.lexists(path):
        os.rename(new, path)
    elif not _exchange(new, path):
        # Not atomic on this system: for a moment there is neither.
        old = new_name_beside(path)
        os.rename(path, old)
        try:
            os.rename(new, path)
        except OSError:
            os.rename(old, path)
            raise
        os.rename(old, new)


def _exchange(one: str, other: str) -> bool:
    """Swap two directories atomically. Return False if the system cannot."""
    import ctypes  # importing it takes longer than writing a small file

    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


class _RemoteDirectory:
    """A sink over a directory of an fsspec file system, which uploads many files concurrently."""

    def __init__(self, filesystem: Any, root: str, replaced: list[str], output: Output) -> None:
        self._filesystem = filesystem
        self._timeout_seconds = output.network.timeout_seconds
        self._root = root
        self._replaced = replaced
        self._waiting: dict[str, bytes] = {}
        self._nbytes = 0
        self.shown = output.shown

    def start(self, token: str) -> None:
        pass

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        if name == METADATA:
            self.flush()  # the last file
        self._waiting[f"{self._root}/{name}"] = bytes(content)
        self._nbytes += len(content)
        if self._nbytes >= _BATCH_NBYTES:
            self.flush()

    def flush(self) -> None:
        """Upload all pending files."""
        if self._waiting:
            seconds = patience(self._timeout_seconds, self._nbytes)
            act = partial(call_patiently, self._filesystem, seconds=seconds)
            or_output_error(lambda: self._send(act), self.shown, seconds)
        self._waiting = {}
        self._nbytes = 0

    def _send(self, act: Callable[..., Any]) -> None:
        self._remove_old(act)
        for above in dict.fromkeys(path.rpartition("/")[0] for path in self._waiting):
            act("makedirs", above, exist_ok=True)
        act("pipe", self._waiting)

    def _remove_old(self, act: Callable[..., Any]) -> None:
        """Remove the replaced references, once the first new files are ready to upload."""
        replaced, self._replaced = self._replaced, []
        if (metadata := f"{self._root}/{METADATA}") in replaced:
            act("rm_file", metadata)
            replaced.remove(metadata)
        if replaced and set("*?[") & set(self._root):
            # Not with `rm`, which would treat the name as a pattern and remove every match.
            for name in replaced:
                act("rm_file", name)
        elif replaced:
            act("rm", self._root, recursive=True)


@contextmanager
def _remote(location: Location, output: Output) -> Iterator[FileSink]:
    filesystem, path = find_filesystem(location, output.storage_options or {})
    path = path.rstrip("/")
    state, names = _remote_state(filesystem, path, output)
    check_target(output, state)
    if output.replaces is not None:
        metadata = or_output_error(lambda: filesystem.cat_file(f"{path}/{METADATA}"), output.shown)
        yield RemoteUpdate(filesystem, path, names, metadata, output)
        return
    sink = _RemoteDirectory(filesystem, path, names, output)
    yield sink
    sink.flush()


def _find_files(filesystem: Any, path: str, timeout_seconds: float) -> list[str]:
    filesystem.invalidate_cache()
    try:
        found: list[str] = call_patiently(filesystem, "find", path, seconds=timeout_seconds)
    except FileNotFoundError:
        return []
    return found
