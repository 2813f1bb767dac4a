"""Files whose chunks are read at any place, by any number of threads and processes: the way to the bulk data.

`Source` reads the metadata of one file once, in rounds; here nothing is kept, and answers are handed on as they arrive.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.quoting import find_one_path
from h5zarr.io.source import Identity
from h5zarr.io.span import Span

Column: TypeAlias = npt.NDArray[np.int64]
Deliver: TypeAlias = Callable[[Sequence[int], Sequence[memoryview]], None]
"""Takes the numbers of some spans, and their bytes. It is called by several threads at once."""


class RangeReader(Protocol):
    """A file that is read at any place. It opens itself when it is needed, and again in another process."""

    @property
    def url(self) -> str: ...

    @property
    def is_near(self) -> bool:
        """Whether reading takes no time worth mentioning, so that there is no use in waiting for more to read."""
        ...

    @property
    def nbytes(self) -> int:
        """The size of the file; asking may take a request."""
        ...

    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        """Hand the bytes of every span to `deliver`, each exactly once, as they come; return when all are there.

        `is_light` says that `deliver` has so little to do that more threads would only be in each other's way.

        Raises SourceError if any of the bytes cannot be had, SourceChanged if the file is not the one that was
        recorded, and whatever `deliver` raises.
        """
        ...

    def read_whole(self) -> bytes:
        """Return all of the file, with one request, whether or not its size is known."""
        ...

    def read_into(self, span: Span, out: memoryview) -> bool:
        """Read a span straight to where it belongs; False where that is no gain, and nothing was done."""
        ...

    def close(self) -> None:
        """Let go of the file and of connections to it. What is read afterwards opens it again."""
        ...


def read_one(reader: RangeReader, span: Span) -> memoryview:
    """Return the bytes of one span."""
    found: list[memoryview] = []
    columns = np.array([span], np.int64)
    reader.read(columns[:, 0], columns[:, 1], lambda _, buffers: found.extend(buffers))
    return found[0]


_readers: WeakValueDictionary[Any, RangeReader] = WeakValueDictionary()
_lock = threading.Lock()


def open_ranges(
    url: str,
    storage_options: Mapping[str, Any] | None = None,
    policy: FetchPolicy | None = None,
    expected: Identity | None = None,
) -> RangeReader:
    """Return the reader of a file, the same for all that ask in the same way: so they share connections.

    Nothing is opened yet. `expected` is what the file must be; None is anything.
    """
    options, policy = dict(storage_options or {}), policy or FetchPolicy()
    path = find_one_path(url)
    if path is not None:
        path = os.path.abspath(path)
    # A map stays that of the file that was there when it was made: who asks for the one that replaced it needs another.
    key = (path or url, repr(sorted(options.items())), policy, expected, None if path is None else _state(path))
    with _lock:
        reader = _readers.get(key)
        if reader is None:
            reader = _make_reader(url, path, options, policy, expected)
            _readers[key] = reader
        return reader


def _make_reader(
    url: str, path: str | None, options: dict[str, Any], policy: FetchPolicy, expected: Identity | None
) -> RangeReader:
    if path is not None:
        from h5zarr.io.local_ranges import LocalRanges

        return LocalRanges(path, expected)
    from h5zarr.io.remote_ranges import RemoteRanges

    return RemoteRanges(url, options, policy, expected)


def _state(path: str) -> tuple[int, ...] | None:
    """Return what tells a local file from one that was there before; None where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _forget() -> None:
    """A child process shares no connection with its parent."""
    global _lock
    _lock = threading.Lock()
    _readers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
