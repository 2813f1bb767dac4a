"""A source: a local or remote file that is read many ranges at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.span import Span
from h5zarr.io.steps import Planner


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identifies one state of a file. Fields are None if the source does not provide them.

    `mtime` is ISO 8601 in UTC. `etag` and `version` are as the server sends them, including quotes.
    """

    nbytes: int
    etag: str | None = None
    mtime: str | None = None
    version: str | None = None


class Source(Protocol):
    """A file of `nbytes` bytes. `url` is safe to show: it has neither user information nor a query."""

    @property
    def url(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def identity(self) -> Identity: ...

    @property
    def log(self) -> RequestLog: ...

    def read_many(self, spans: Sequence[Span]) -> Sequence[memoryview]:
        """Return one buffer for each span, in the same order and exactly as long. This takes at most one round.

        Raises SourceError if any of the bytes cannot be read.
        """
        ...

    @property
    def planner(self) -> Planner | None:
        """Helps `run` to read in few rounds; None if rounds cost nothing."""
        ...

    def held(self) -> memoryview | None:
        """Return the whole file if all of it was fetched from a remote source and is still in memory, else None."""
        ...

    def close(self) -> None:
        """Close the file. Buffers that were returned stay valid."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


Opener: TypeAlias = Callable[[str], Source]
"""Opens the file at a URL. Raises SourceError if there is no such file."""


def open_source(place: str | os.PathLike[str] | Location, access: Access = USUAL_ACCESS) -> Source:
    """Return the source at `place`: a path, a file:// URL, or any URL or chain of URLs that fsspec opens.

    Storage options and network policy do not matter for local files. Raises SourceError if there is no such file, or
    if its size is unknown.
    """
    location = Location.parse(place)
    path = location.find_path()
    if path is not None:
        from h5zarr.io.local import LocalSource

        return LocalSource(path, url=location.text)
    # Not at the top: fsspec and asyncio take longer to import than a small local file takes to read.
    from h5zarr.io.remote import RemoteSource

    return RemoteSource(location, access)
