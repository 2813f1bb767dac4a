"""Where output goes: a local file, standard output, or anything that fsspec writes to; compressed by its suffix.

Output appears whole or not at all. A local file is written beside its place and then moved there; a remote one is
written to a temporary file and then sent.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from h5zarr.errors import OutputError
from h5zarr.io.grammar import is_chain
from h5zarr.io.quoting import settle_url
from h5zarr.io.reference_url import reference_url
from h5zarr.io.url import display_url, find_local_path
from h5zarr.refs.compression import Compressor, find_compressor
from h5zarr.refs.container import Sink

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}


class _Compressed:
    """A sink that compresses what it is given."""

    def __init__(self, sink: Sink, compressor: Compressor) -> None:
        self._sink = sink
        self._compressor = compressor

    def write(self, data: bytes, /) -> None:
        self._sink.write(self._compressor.compress(data))

    def finish(self) -> None:
        self._sink.write(self._compressor.flush())


class _File:
    """A sink over a file, whose failures are told as OutputError with `shown`, the name that is safe to show."""

    def __init__(self, file: BinaryIO, shown: str) -> None:
        self._file = file
        self._shown = shown

    def write(self, data: bytes, /) -> None:
        with told_as(self._shown):
            self._file.write(data)


def check_output(target: str | os.PathLike[str], source: str) -> None:
    """Raise OutputError where `target` is the very file that is read."""
    text = os.fspath(target)
    ours, theirs = find_local_path(text), find_local_path(source)
    if ours is None or theirs is None:
        is_same = ours is theirs and reference_url(text) == reference_url(source)
    else:
        is_same = text != "-" and os.path.exists(ours) and os.path.exists(theirs) and os.path.samefile(ours, theirs)
    if is_same:
        what = "this is the file that is read, and it would be replaced"
        raise OutputError(display_url(text), what, remedy="Give another name for the output.")


def check_name(text: str) -> None:
    """Raise OutputError where `text` is no name that readers of references could be given."""
    path = find_local_path(text)
    if "::" in text and (path is not None or not is_chain(text)):
        what = 'readers of references take "::" in the name for the end of a link in a chain of URLs'
        raise OutputError(display_url(text), what, remedy="Give another name for the output.")
    if path is not None and "\0" in path:
        raise OutputError(display_url(text), "this is no name of a file", remedy="Give another name for the output.")


@contextmanager
def open_output(target: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Iterator[Sink]:
    """Give a sink whose bytes stand at `target` when the context ends without an exception, and only then.

    `target` is a path, `-` for standard output, or a URL for fsspec, to which `storage_options` go. What ends in .gz or
    .zst is compressed. What is at `target` already is replaced; a symbolic link there stays, and what it leads to is.
    Raises OutputError if something stands in the way.
    """
    text = os.fspath(target)
    shown = "standard output" if text == "-" else display_url(text)
    path = find_local_path(text)
    check_name(text)
    compressor = find_compressor(shown if path is None else path)
    if text == "-":
        opened = _standard_output(shown)
    elif path is None:
        opened = _remote_file(text, storage_options or {}, shown)
    else:
        opened = _local_file(os.path.realpath(path), shown)
    with opened as sink:
        if compressor is None:
            yield sink
        else:
            compressed = _Compressed(sink, compressor)
            yield compressed
            compressed.finish()


@contextmanager
def _standard_output(shown: str) -> Iterator[Sink]:
    yield _File(sys.stdout.buffer, shown)
    with told_as(shown):
        sys.stdout.buffer.flush()


@contextmanager
def _local_file(path: str, shown: str) -> Iterator[Sink]:
    with told_as(shown):
        # A pipe or /dev/null is written to: to replace it would be a surprise.
        beside = None if _is_device(path) else new_name_beside(path)
        # Not by tempfile, whose files only their owner may read.
        file = open(path, "wb") if beside is None else open(beside, "xb")  # noqa: SIM115
    try:
        yield _File(file, shown)
        with told_as(shown):
            file.flush()
            if beside is not None:
                os.fsync(file.fileno())
            file.close()
            if beside is not None:
                os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            file.close()
        if beside is not None:
            with suppress(OSError):
                os.remove(beside)
        raise


def new_name_beside(path: str) -> str:
    """Return a new name in the directory of `path`."""
    return os.path.join(os.path.dirname(path), f".h5zarr-{secrets.token_hex(8)}.tmp")


def _is_device(path: str) -> bool:
    """Return whether `path` is something that is neither a regular file nor absent. Raises OSError for a directory."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


@contextmanager
def _remote_file(url: str, storage_options: Mapping[str, Any], shown: str) -> Iterator[Sink]:
    # Into a file first: an upload that was begun cannot be taken back with every file system that fsspec knows.
    with told_as(shown):
        filesystem, path = find_filesystem(url, storage_options, shown)
        directory = tempfile.TemporaryDirectory(prefix="h5zarr-")
    with directory as name:
        local = os.path.join(name, "output")
        with open(local, "wb") as file:
            yield _File(file, shown)
            with told_as(shown):
                file.flush()
        or_output_error(lambda: filesystem.put_file(local, path), shown)


def find_filesystem(url: str, storage_options: Mapping[str, Any], shown: str) -> tuple[Any, str]:
    """Return the file system of `url`, and the path in it."""
    settled = settle_url(url)
    # Not at the top: fsspec takes longer to import than a small file takes to translate.
    from h5zarr.io.filesystems import shared_filesystem

    filesystem, path = or_output_error(lambda: shared_filesystem(settled, storage_options), shown)
    return filesystem, path


def or_output_error(act: Callable[[], Any], shown: str) -> Any:
    """Return what `act` returns; what it raises becomes an OutputError, which does not carry it along."""
    try:
        return act()
    except Exception as error:
        failure = _describe_remote(error, shown)
    raise failure


def _describe_remote(error: Exception, shown: str) -> OutputError:
    """Return what went wrong without the exception's text, which may quote a signed URL or a key."""
    if isinstance(error, ImportError):
        return OutputError(shown, f"a package for this protocol is missing: {error}", remedy="Install the package.")
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return OutputError(shown, "the protocol is not known to fsspec", remedy="Check the beginning of the URL.")
    if isinstance(error, NotImplementedError):
        return OutputError(shown, "fsspec does not write with this protocol")
    name = type(error).__name__
    reason = f"{name}, {os.strerror(error.errno)}" if isinstance(error, OSError) and error.errno else name
    remedy = "Check the URL, the credentials and the storage options, then try again."
    return OutputError(shown, f"could not be written ({reason})", remedy=remedy)


@contextmanager
def told_as(shown: str) -> Iterator[None]:
    """Turn an OSError into an OutputError. A broken pipe stays: a reader that has seen enough is no failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _describe_local(error, shown) from None


def _describe_local(error: OSError, shown: str) -> OutputError:
    if error.errno in _FULL:
        return OutputError(shown, "there is no space left", remedy="Free some space, or write elsewhere.")
    if error.errno in _NOT_PERMITTED:
        return OutputError(shown, "writing there is not permitted", remedy="Check the permissions of the directory.")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return OutputError(shown, "there is no such directory", remedy="Create the directory first.")
    if error.errno == errno.EISDIR:
        return OutputError(shown, "this is a directory", remedy="Give the name of a file in it.")
    return OutputError(shown, f"could not be written ({error.strerror or type(error).__name__})")
