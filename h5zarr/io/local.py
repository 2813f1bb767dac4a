"""Memory-mapped local files. Reading returns views and copies nothing."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from h5zarr.errors import SourceError
from h5zarr.io.column import BlockColumn, SpanColumn
from h5zarr.io.failure import CLOSED, DIRECTORY, GONE, NOT_PERMITTED, SHRUNK, ZARR_DIRECTORY, Failure, source_error
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Identity
from h5zarr.io.span import Span
from h5zarr.signatures import is_zarr_directory

_NOT_A_FILE = Failure("this is not a regular file", "Give the path of a file.")
_TRUNCATED = Failure("the file became shorter while it was read", "Try again when nothing writes to it.")


class LocalSource:
    """A local file, mapped into memory.

    A buffer is a view of the file itself: if the file is truncated between `read_many` and the use of a buffer, the
    operating system may end the process. Files that are still being written should be copied first.
    """

    def __init__(self, path: str, *, url: str | None = None) -> None:
        self.url = path if url is None else url
        self.log = RequestLog(is_local=True)
        self._descriptor = _open_file(path, self.url)
        try:
            status = os.fstat(self._descriptor)
            self.nbytes = status.st_size
            self.identity = Identity(nbytes=self.nbytes, mtime=format_mtime(status.st_mtime_ns))
            # An empty file cannot be mapped.
            self._map = mmap.mmap(self._descriptor, self.nbytes, access=mmap.ACCESS_READ) if self.nbytes else None
        except (OSError, ValueError) as error:
            os.close(self._descriptor)
            raise _describe(self.url, error) from None
        self._view: memoryview | None = memoryview(self._map if self._map is not None else b"")

    @property
    def descriptor(self) -> int:
        """The file descriptor, for reading without the memory map."""
        return self._descriptor

    def read_many(self, spans: Sequence[Span]) -> Sequence[memoryview]:
        """Return a view of the file for each span, in the same order. Logged as one round, one request per span."""
        view = self._view
        if view is None:
            raise source_error(self.url, CLOSED)
        nbytes = self.nbytes
        if os.fstat(self._descriptor).st_size < nbytes:
            # Reading a page that is gone raises SIGBUS, which Python cannot catch.
            raise source_error(self.url, _TRUNCATED, spans[0] if spans else None)
        column = spans if isinstance(spans, SpanColumn) else None
        for address, count in spans if column is None else column.outermost():
            if address < 0 or count < 0 or address + count > nbytes:
                raise source_error(self.url, SHRUNK, Span(address, count))
        if spans:
            self.log.rounds += 1
            self.log.requests += len(spans)
        if column is not None:
            self.log.nbytes += len(column) * column.nbytes
            return BlockColumn(view, column)
        self.log.nbytes += sum([count for _, count in spans])
        return [view[address : address + count] for address, count in spans]

    @property
    def planner(self) -> None:
        """None: reading a memory map needs no planning."""
        return

    def held(self) -> None:
        """Return None: a memory map is not a copy."""
        return

    def close(self) -> None:
        """Close the file. It stays mapped while any of its buffers is in use."""
        if self._view is None:
            return
        self._view = self._map = None
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_view", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"LocalSource({self.url!r})"


def format_mtime(nanoseconds: int) -> str | None:
    """Return a time since 1970 in ISO 8601, UTC, to the nanosecond; None if `datetime` cannot represent it."""
    seconds, rest = divmod(nanoseconds, 10**9)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def _open_file(path: str, url: str) -> int:
    """Return the descriptor of the regular file at `path`."""
    try:
        mode = os.stat(path).st_mode
        # Check before opening, because opening a named pipe may wait forever.
        if stat.S_ISREG(mode):
            return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise _describe(url, error) from None
    if stat.S_ISDIR(mode):
        raise source_error(url, ZARR_DIRECTORY if is_zarr_directory(path) else DIRECTORY)
    raise source_error(url, _NOT_A_FILE)


def _describe(url: str, error: OSError | ValueError) -> SourceError:
    """Return the error to raise for the file at `url`."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return source_error(url, GONE)
    if isinstance(error, PermissionError):
        return source_error(url, NOT_PERMITTED)
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return source_error(url, Failure(f"could not be read ({reason})", SourceError.remedy))
