"""Where references in Parquet go: a directory, local or anywhere that fsspec writes to.

A local directory is written beside its place and then swapped with what is there, so that there is always the old one
or the new one. Elsewhere nothing can be swapped: `.zmetadata` is taken away first and written last, so that what was
begun and never ended has none, which every reader says, instead of reading a mixture.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from h5zarr.errors import OutputError
from h5zarr.io.url import display_url, find_local_path
from h5zarr.refs.output import check_name, find_filesystem, new_name_beside, or_output_error, told_as
from h5zarr.refs.parquet_writing import METADATA, FileSink

SUFFIXES = (".parquet", ".parq")
_OUR_FILE = re.compile(r"refs\.\d+\.parq|\.zmetadata")
_BATCH_NBYTES = 1 << 25
_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


def is_directory_output(target: str | os.PathLike[str]) -> bool:
    """Return whether the name of the output asks for a directory of Parquet files."""
    return os.fspath(target).rstrip("/").endswith(SUFFIXES)


@contextmanager
def open_directory(
    target: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Iterator[FileSink]:
    """Give a sink whose files stand below `target` when the context ends without an exception, and only then.

    With another protocol than that of local files, those that were there are gone if there is an exception. References
    in Parquet are replaced, and nothing else is: raises OutputError then, or if something stands in the way.
    """
    text = os.fspath(target).rstrip("/")
    shown = display_url(text)
    path = find_local_path(text)
    check_name(text)
    if {"{", "}"} & set(text if path is None else os.path.realpath(path)):
        what = "fsspec's reader of Parquet takes braces in the name, or in that of a directory above, for its own"
        raise OutputError(shown, what, remedy="Give another name for the output.")
    opened = _local(os.path.realpath(path), shown) if path is not None else _remote(text, storage_options or {}, shown)
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
            # Not replaced: two names may be one to a file system that does not tell capitals.
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
        # What is there now was never finished, or is what was replaced, or nothing.
        with suppress(OSError):
            shutil.rmtree(beside)


def _check_replaced_local(path: str, shown: str) -> None:
    """Raise OutputError if there is anything at `path` but references in Parquet, or an empty directory."""
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        what = "this is a file, and references in Parquet are a directory"
        raise OutputError(shown, what, remedy="Give another name, or remove the file.")
    names = [os.path.join(above, name) for above, _, found in os.walk(path) for name in found]
    metadata = os.path.join(path, METADATA)
    content = None
    if metadata in names:
        with open(metadata, "rb") as file:
            content = file.read()
    _check_replaced(names, content, shown)


def _check_replaced(names: Iterable[str], metadata: bytes | None, shown: str) -> None:
    """Raise OutputError if a directory has other files than references in Parquet."""
    others = [name for name in names if not _OUR_FILE.fullmatch(name.rpartition("/")[2])]
    if metadata is not None and not _is_container(metadata):
        others.append(METADATA)
    if others:
        what = (
            f"there is a directory that holds other things than references in Parquet ({os.path.basename(others[0])})"
        )
        raise OutputError(shown, what, remedy="Give another name, or remove the directory.")


def _is_container(metadata: bytes) -> bool:
    """Return whether this is the `.zmetadata` of references in Parquet, and not that of a Zarr store."""
    try:
        told = json.loads(metadata)
    except ValueError:
        return False
    return isinstance(told, dict) and "metadata" in told and "record_size" in told


def _settle(directory: str) -> None:
    """Have all of a directory on the disk."""
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
    """Move the directory `new` to `path`; what was there is then where `new` was, or nowhere."""
    if not os.path.lexists(path):
        os.rename(new, path)
    elif not _exchange(new, path):
        # Not in one step on this system: for a moment there is neither.
        old = new_name_beside(path)
        os.rename(path, old)
        try:
            os.rename(new, path)
        except OSError:
            os.rename(old, path)
            raise
        os.rename(old, new)


def _exchange(one: str, other: str) -> bool:
    """Swap two directories in one step. Return False where the system cannot."""
    import ctypes  # which takes longer than it takes to write a small file

    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    return bool(swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


class _RemoteDirectory:
    """A sink over a directory of an fsspec file system, to which files are sent many at a time."""

    def __init__(self, filesystem: Any, root: str, replaced: list[str], shown: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._replaced = replaced
        self._waiting: dict[str, bytes] = {}
        self._nbytes = 0
        self.shown = shown

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        if name == METADATA:
            self.flush()  # which comes last
        self._waiting[f"{self._root}/{name}"] = bytes(content)
        self._nbytes += len(content)
        if self._nbytes >= _BATCH_NBYTES:
            self.flush()

    def flush(self) -> None:
        """Send all files that wait."""
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
        """Take away what is replaced, when the first of the new files are there to be sent."""
        replaced, self._replaced = self._replaced, []
        if (metadata := f"{self._root}/{METADATA}") in replaced:
            self._filesystem.rm_file(metadata)
            replaced.remove(metadata)
        if replaced and set("*?[") & set(self._root):
            # Not by rm, which would take the name for a pattern, and remove what matches that.
            for name in replaced:
                self._filesystem.rm_file(name)
        elif replaced:
            self._filesystem.rm(self._root, recursive=True)


@contextmanager
def _remote(url: str, storage_options: Mapping[str, Any], shown: str) -> Iterator[FileSink]:
    filesystem, path = find_filesystem(url, storage_options, shown)
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
