"""Write references in Parquet to a directory, locally or through fsspec.

A local directory is written beside its target and then swapped with it, so that either the old or the new one exists at
any time. Remotely, nothing can be swapped: `.zmetadata` is removed first and written last. An incomplete directory
therefore has none, and every reader reports that instead of reading a mixture.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from h5zarr.containers.output import check_name, find_filesystem, new_name_beside, or_output_error, told_as
from h5zarr.containers.parquet.parquet_writing import METADATA, FileSink
from h5zarr.errors import OutputError
from h5zarr.io.location import Location

_OUR_FILE = re.compile(r"refs\.\d+\.parq|\.zmetadata")
_BATCH_NBYTES = 1 << 25
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


@contextmanager
def open_directory(
    target: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Iterator[FileSink]:
    """Yield a sink whose files appear below `target` when the context ends without an exception, and only then.

    For remote targets, the previous files are gone after an exception. Only references in Parquet are replaced: raises
    OutputError for anything else, or if writing is impossible.
    """
    text = os.fspath(target).rstrip("/")
    location = Location.parse(text)
    shown, path = str(location), location.path
    check_name(location)
    if {"{", "}"} & set(text if path is None else os.path.realpath(path)):
        what = "fsspec's reader of Parquet interprets braces in the name, or in that of a parent directory"
        raise OutputError(shown, what, remedy="Give another name for the output.")
    opened = _local(os.path.realpath(path), shown) if path is not None else _remote(location, storage_options or {})
    with opened as sink:
        yield sink


class _LocalDirectory:
    """A sink over a local directory."""

    def __init__(self, root: str, shown: str) -> None:
        self._root = root
        self.shown = shown

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        with told_as(self.shown):
            path = os.path.join(self._root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            # Never overwrite: on a case-insensitive file system, two names may be the same file.
            with open(path, "xb") as file:
                file.write(content)


@contextmanager
def _local(path: str, shown: str) -> Iterator[FileSink]:
    with told_as(shown):
        _check_replaced_local(path, shown)
        beside = new_name_beside(path)
        os.mkdir(beside)
    try:
        yield _LocalDirectory(beside, shown)
        with told_as(shown):
            _settle(beside)
            _put(beside, path)
            _sync(os.path.dirname(path))
    finally:
        # The directory is now unfinished, the replaced one, or gone.
        with suppress(OSError):
            shutil.rmtree(beside)


def _check_replaced_local(path: str, shown: str) -> None:
    """Raise OutputError if `path` is anything but references in Parquet or an empty directory."""
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        what = "this is a file, but references in Parquet are a directory"
        raise OutputError(shown, what, remedy="Give another name, or remove the file.")
    names = [os.path.join(above, name) for above, _, found in os.walk(path) for name in found]
    metadata = os.path.join(path, METADATA)
    content = None
    if metadata in names:
        with open(metadata, "rb") as file:
            content = file.read()
    _check_replaced(names, content, shown)


def _check_replaced(names: Iterable[str], metadata: bytes | None, shown: str) -> None:
    """Raise OutputError if a directory has files other than references in Parquet."""
    others = [name for name in names if not _OUR_FILE.fullmatch(name.rpartition("/")[2])]
    if metadata is not None and not _is_container(metadata):
        others.append(METADATA)
    if others:
        what = f"the directory contains files other than references in Parquet ({os.path.basename(others[0])})"
        raise OutputError(shown, what, remedy="Give another name, or remove the directory.")


def _is_container(metadata: bytes) -> bool:
    """Return whether this is the `.zmetadata` of references in Parquet, and not that of a Zarr store."""
    try:
        told = json.loads(metadata)
    except ValueError:
        return False
    return isinstance(told, dict) and "metadata" in told and "record_size" in told


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

    def __init__(self, filesystem: Any, root: str, replaced: list[str], shown: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._replaced = replaced
        self._waiting: dict[str, bytes] = {}
        self._nbytes = 0
        self.shown = shown

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
            or_output_error(self._send, self.shown)
        self._waiting = {}
        self._nbytes = 0

    def _send(self) -> None:
        self._remove_old()
        for above in dict.fromkeys(path.rpartition("/")[0] for path in self._waiting):
            self._filesystem.makedirs(above, exist_ok=True)
        self._filesystem.pipe(self._waiting)

    def _remove_old(self) -> None:
        """Remove the replaced references, once the first new files are ready to upload."""
        replaced, self._replaced = self._replaced, []
        if (metadata := f"{self._root}/{METADATA}") in replaced:
            self._filesystem.rm_file(metadata)
            replaced.remove(metadata)
        if replaced and set("*?[") & set(self._root):
            # Not with `rm`, which would treat the name as a pattern and remove every match.
            for name in replaced:
                self._filesystem.rm_file(name)
        elif replaced:
            self._filesystem.rm(self._root, recursive=True)


@contextmanager
def _remote(location: Location, storage_options: Mapping[str, Any]) -> Iterator[FileSink]:
    shown = str(location)
    filesystem, path = find_filesystem(location, storage_options)
    path = path.rstrip("/")
    names = or_output_error(lambda: _find_files(filesystem, path), shown)
    metadata = f"{path}/{METADATA}"
    content = or_output_error(lambda: filesystem.cat_file(metadata), shown) if metadata in names else None
    _check_replaced(names, content, shown)
    sink = _RemoteDirectory(filesystem, path, names, shown)
    yield sink
    sink.flush()


def _find_files(filesystem: Any, path: str) -> list[str]:
    filesystem.invalidate_cache()
    try:
        found: list[str] = filesystem.find(path)
    except FileNotFoundError:
        return []
    return found
