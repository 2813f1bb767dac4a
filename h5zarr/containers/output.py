"""Write output to a local file, to standard output or through fsspec, compressed by its suffix.

Output appears whole or not at all. A local file is written under a temporary name beside its target and then renamed; a
remote one is written to a temporary file and then uploaded.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO, Protocol

from h5zarr.containers.beside import locked, new_name_beside
from h5zarr.containers.compression import Compressor, find_compressor
from h5zarr.errors import (
    H5ZarrError,
    OutputChanged,
    OutputError,
    OutputExists,
    OutputGone,
    OutputIsDirectory,
    OutputRefused,
    OutputTimeout,
    SourceTimeout,
    WrongOutput,
)
from h5zarr.io.failure import describe_failure
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.patience import call_patiently, patience
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json

_COMPACT = json.JSONEncoder(separators=(",", ":"))
_CHECK = (
    "Check the URL, the credentials and output_options=, then try again. storage_options= and anon=True are for "
    "reading only."
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_PERMITTED = {errno.EACCES, errno.EPERM}


class Sink(Protocol):
    """A binary file, or anything else that takes bytes."""

    def write(self, data: bytes, /) -> object: ...


def dump(value: Json) -> str:
    """Return `value` as compact JSON, in key order. NaN and infinities are written as Python does."""
    return _COMPACT.encode(value)


class _Compressed:
    """A sink that compresses its input."""

    def __init__(self, sink: Sink, compressor: Compressor) -> None:
        self._sink = sink
        self._compressor = compressor

    def write(self, data: bytes, /) -> None:
        self._sink.write(self._compressor.compress(data))

    def finish(self) -> None:
        self._sink.write(self._compressor.flush())


class _File:
    """A sink over a file. It reports failures as OutputError with `shown`, the name that is safe to show."""

    def __init__(self, file: BinaryIO, shown: str) -> None:
        self._file = file
        self._shown = shown

    def write(self, data: bytes, /) -> None:
        with told_as(self._shown):
            self._file.write(data)


def check_output(output: Location, source: Location) -> None:
    """Raise OutputError if the output is the input file itself."""
    ours, theirs = output.path, source.path
    if ours is None or theirs is None:
        is_same = ours is theirs and output.for_references() == source.for_references()
    else:
        is_there = output.text != "-" and os.path.exists(ours) and os.path.exists(theirs)
        is_same = is_there and os.path.samefile(ours, theirs)
    if is_same:
        what = "the output would replace the input file"
        raise OutputExists(str(output), what, remedy="Give another name for the output.")


def check_name(location: Location) -> None:
    """Raise OutputError if readers of references could not be given the name of a location."""
    if "::" in location.text and not location.is_chain:
        what = 'readers of references treat "::" in a name as the separator of a URL chain'
        raise WrongOutput(str(location), what, remedy="Give another name for the output.")
    if location.path is not None and "\0" in location.path:
        raise WrongOutput(str(location), "this is not a file name", remedy="Give another name for the output.")


def named(location: Location) -> str:
    """Return the part of a location that names the output, without a query: its suffix selects the container."""
    return location.path if location.path is not None else location.address


@contextmanager
def open_output(
    location: Location,
    storage_options: Mapping[str, Any] | None = None,
    confirm: Callable[[], None] = lambda: None,
    network: NetworkPolicy = USUAL_NETWORK,
    replaces: Identity | None = None,
) -> Iterator[Sink]:
    """Yield a sink whose bytes appear at `location` when the context ends without an exception, and only then.

    The location is a path, `-` for standard output, or a URL for fsspec, with `storage_options`. Names that end in .gz
    or .zst are compressed. An existing file is replaced. A symbolic link stays, and its target is replaced.
    Raises OutputError if writing is impossible. `confirm` is called just before a file is replaced, and may raise an
    OutputError. `replaces` is the only state to replace, if given; raises OutputChanged if there is another one.
    `network` bounds how long a server may take to answer.
    """
    text, path = location.text, location.path
    shown = "standard output" if text == "-" else str(location)
    check_name(location)
    compressor = find_compressor(shown if path is None else path)
    if text == "-":
        opened = _standard_output(shown)
    elif path is None:
        settled = confirm if replaces is not None else _nothing  # it was checked before the source was read
        opened = _remote_file(location, storage_options or {}, network.timeout_seconds, settled, replaces)
    else:
        opened = _local_file(os.path.realpath(path), shown, confirm)
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
def _local_file(path: str, shown: str, confirm: Callable[[], None]) -> Iterator[Sink]:
    with told_as(shown):
        # A pipe or /dev/null is written to, because replacing it would be a surprise.
        beside = None if _is_device(path) else new_name_beside(path)
        # Not with tempfile, whose files only their owner may read.
        file = open(path, "wb") if beside is None else open(beside, "xb")  # noqa: SIM115
    try:
        yield _File(file, shown)
        with told_as(shown):
            file.flush()
            if beside is not None:
                os.fsync(file.fileno())
            file.close()
            if beside is not None:
                with locked(os.path.dirname(path)):
                    confirm()
                    os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            file.close()
        if beside is not None:
            with suppress(OSError):
                os.remove(beside)
        raise


def _nothing() -> None:
    pass


def _is_device(path: str) -> bool:
    """Return whether `path` exists and is not a regular file. Raises OSError for a directory."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


@contextmanager
def _remote_file(
    location: Location,
    storage_options: Mapping[str, Any],
    timeout_seconds: float,
    confirm: Callable[[], None],
    replaces: Identity | None,
) -> Iterator[Sink]:
    shown = str(location)
    # Into a file first: not every fsspec file system can abort an upload.
    with told_as(shown):
        filesystem, path = find_filesystem(location, storage_options)
        directory = tempfile.TemporaryDirectory(prefix="h5zarr-")
    with directory as name:
        local = os.path.join(name, "output")
        with open(local, "wb") as file:
            yield _File(file, shown)
            with told_as(shown):
                file.flush()
        nbytes = os.path.getsize(local)
        seconds = patience(timeout_seconds, nbytes)
        confirm()
        how = condition_of(filesystem, replaces, nbytes)
        act = partial(call_patiently, filesystem, "put_file", local, path, seconds=seconds, **how)
        or_output_error(act, shown, seconds)


def condition_of(filesystem: Any, replaces: Identity | None, nbytes: int) -> dict[str, Any]:
    """Return the arguments by which a server writes only if the present content is in a known state.

    S3 has such a condition. Elsewhere, the state is compared just before writing.
    """
    if replaces is None or replaces.etag is None or type(filesystem).__name__ != "S3FileSystem":
        return {}
    # In one request, however large: the parts of an upload have no condition.
    return {"IfMatch": replaces.etag, "chunksize": max(nbytes, 1 << 20)}


def find_filesystem(
    location: Location, storage_options: Mapping[str, Any], shown: str | None = None
) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Errors call the URL `shown`, if that is given."""
    settled = location.for_fsspec()
    # Imported here: importing fsspec takes longer than translating a small file.
    from h5zarr.io.filesystems import shared_filesystem

    filesystem, path = or_output_error(lambda: shared_filesystem(settled, storage_options), shown or str(location))
    return filesystem, path


def or_output_error(act: Callable[[], Any], shown: str, timeout_seconds: float = USUAL_NETWORK.timeout_seconds) -> Any:
    """Return the result of `act`. Its exceptions become an OutputError, which does not chain them."""
    try:
        return act()
    except H5ZarrError:
        raise
    except Exception as error:
        failure = _describe_remote(error, shown, timeout_seconds)
    raise failure


def _describe_remote(error: Exception, shown: str, timeout_seconds: float) -> OutputError:
    """Return what went wrong without the exception's text, which may quote a signed URL or a key."""
    if isinstance(error, ImportError):
        return OutputError(shown, f"a package for this protocol is missing: {error}", remedy="Install the package.")
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return OutputError(shown, "fsspec does not know this protocol", remedy="Check the beginning of the URL.")
    if isinstance(error, H5ZarrError):
        return OutputError(shown, str(error), remedy=error.remedy)
    if _is_precondition(error):
        return OutputChanged(shown, "somebody else has written there in the meantime")
    if isinstance(error, PermissionError):
        return OutputRefused(shown, "access was refused", remedy=_CHECK)
    if isinstance(error, FileNotFoundError):
        return OutputGone(shown, "there is no such bucket or directory", remedy="Create it first, or check its name.")
    if isinstance(error, TimeoutError):
        late = describe_failure(error, timeout_seconds)
        return OutputTimeout(shown, late.what, remedy=late.remedy)
    if isinstance(error, NotImplementedError):
        return OutputError(shown, "fsspec cannot write with this protocol")
    name = type(error).__name__
    reason = f"{name}, {os.strerror(error.errno)}" if isinstance(error, OSError) and error.errno else name
    return OutputError(shown, f"could not be written ({reason})", remedy=_CHECK)


def _is_precondition(error: Exception) -> bool:
    """Return whether a server did not write because the present content is in another state."""
    response = getattr(error.__cause__, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return code in ("PreconditionFailed", "ConditionalRequestConflict")


def output_timeout(late: SourceTimeout, shown: str) -> OutputTimeout:
    """Return the error for a server that does not answer while it is asked what is at the place of an output."""
    return OutputTimeout(shown, str(late).removeprefix(f"{late.filename}:").strip(), remedy=late.remedy)


@contextmanager
def told_as(shown: str) -> Iterator[None]:
    """Turn an OSError into an OutputError, except for a broken pipe: a reader that stops early is no failure."""
    try:
        yield
    except (BrokenPipeError, H5ZarrError):
        raise
    except OSError as error:
        raise _describe_local(error, shown) from None


def _describe_local(error: OSError, shown: str) -> OutputError:
    if error.errno in _FULL:
        return OutputError(shown, "there is no space left", remedy="Free some space, or write elsewhere.")
    if error.errno in _NOT_PERMITTED:
        what = "you do not have permission to write there"
        return OutputRefused(shown, what, remedy="Check the permissions of the directory.")
    if error.errno == errno.EROFS:
        what = "this file system is read-only"
        return OutputRefused(shown, what, remedy="Mount it for writing, or write elsewhere.")
    if error.errno == errno.ENOENT:
        return OutputGone(shown, "its directory does not exist", remedy="Create the directory first.")
    if error.errno == errno.ENOTDIR:
        what = "a part of this path is a file, not a directory"
        return OutputGone(shown, what, remedy="Give another path.")
    if error.errno == errno.EISDIR:
        return OutputIsDirectory(shown, "this is a directory", remedy="Give the name of a file in it.")
    if error.errno == errno.ENAMETOOLONG:
        return WrongOutput(shown, "this name is too long for the file system", remedy="Give a shorter name.")
    return OutputError(shown, f"could not be written ({error.strerror or type(error).__name__})")
