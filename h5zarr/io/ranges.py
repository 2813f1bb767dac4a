"""Random access to the bytes of chunks, for any number of threads and processes.

A `Source` reads the metadata of one file once, in rounds. Readers in this module cache nothing, and deliver responses
as they arrive.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.failure import SHRUNK, source_error
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.io.span import Span

Column: TypeAlias = npt.NDArray[np.int64]
Deliver: TypeAlias = Callable[[Sequence[int], Sequence[memoryview]], None]
"""Receives the numbers of some spans and their bytes. Several threads may call it at the same time."""


class RangeReader(Protocol):
    """A file with random access. It is opened on first use, and opened again in another process."""

    @property
    def url(self) -> str: ...

    @property
    def is_fast(self) -> bool:
        """Whether reading is so fast that it is not worth waiting to combine requests."""
        ...

    @property
    def nbytes(self) -> int:
        """The size of the file. This may take a request."""
        ...

    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        """Pass the bytes of every span to `deliver`, exactly once, as they arrive. Return when all have arrived.

        `is_light` means that `deliver` does so little work that more threads would only slow each other down.

        Raises SourceError if any of the bytes cannot be read, SourceChanged if the file has changed since it was
        recorded, and any exception that `deliver` raises.
        """
        ...

    def read_whole(self) -> bytes:
        """Return the whole file with one request, whether or not its size is known."""
        ...

    def read_into(self, span: Span, out: memoryview) -> bool:
        """Read a span directly into `out`. Return False, without reading, if that is not faster."""
        ...

    def close(self) -> None:
        """Close the file and its connections. Later reads open it again."""
        ...


def read_one(reader: RangeReader, span: Span) -> memoryview:
    """Return the bytes of one span."""
    found: list[memoryview] = []
    columns = np.array([span], np.int64)
    reader.read(columns[:, 0], columns[:, 1], lambda _, buffers: found.extend(buffers))
    return found[0]


class HeldRanges:
    """A file that is completely in memory. Scans read small files whole."""

    is_fast = True

    def __init__(self, url: str, content: memoryview) -> None:
        self.url = str(Location.parse(url))
        self._content = content

    @property
    def nbytes(self) -> int:
        return len(self._content)

    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        spans = list(map(Span, address.tolist(), nbytes.tolist()))
        for span in spans:
            if not 0 <= span.address <= span.end <= len(self._content):
                raise source_error(self.url, SHRUNK, span)
        deliver(range(len(spans)), [self._content[span.address : span.end] for span in spans])

    def read_whole(self) -> bytes:
        return bytes(self._content)

    def read_into(self, span: Span, out: memoryview) -> bool:
        return False

    def close(self) -> None:
        pass


_readers: WeakValueDictionary[Any, RangeReader] = WeakValueDictionary()
_lock = threading.Lock()


def open_ranges(place: str | Location, access: Access = USUAL_ACCESS, expected: Identity | None = None) -> RangeReader:
    """Return the reader of a file. Calls with the same arguments return the same reader, to share connections.

    Nothing is opened yet. `expected` is the identity that the file must have; None accepts any.
    """
    location = Location.parse(place)
    options = access.options_for(location)
    path = location.find_path()
    if path is not None:
        path = os.path.abspath(path)
    # A memory map keeps showing the file it was made from. If the file was replaced, a new reader is needed.
    key = (
        path or location.text,
        repr(sorted(options.items())),
        access.network,
        expected,
        None if path is None else _state(path),
    )
    with _lock:
        reader = _readers.get(key)
        if reader is None:
            reader = _make_reader(location, path, access, expected)
            _readers[key] = reader
        return reader


def _make_reader(location: Location, path: str | None, access: Access, expected: Identity | None) -> RangeReader:
    if path is not None:
        from h5zarr.io.local_ranges import LocalRanges

        return LocalRanges(path, expected)
    from h5zarr.io.remote_ranges import RemoteRanges

    return RemoteRanges(location, access, expected)


def _state(path: str) -> tuple[int, ...] | None:
    """Return a value that differs if a local file was replaced, or None if there is no file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _forget() -> None:
    """Drop all readers: a child process must not share connections with its parent."""
    global _lock
    _lock = threading.Lock()
    _readers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
