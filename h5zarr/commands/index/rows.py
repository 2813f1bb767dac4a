"""The rows of the catalog: one per source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from h5zarr.errors import Problem
from h5zarr.io.source import Identity


def writable(text: str) -> str:
    """Return text that tables can store: undecodable bytes of a file name are escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class Status(StrEnum):
    """The state of a source in the catalog.

    - `INDEXED`: references exist, of the source as last seen.
    - `FAILED`: no references exist; the reason is recorded.
    - `STALE`: references of an earlier state exist: the source has changed since, and could not be read again.
    - `VANISHED`: references exist, but the source was no longer found.
    """

    INDEXED = "indexed"
    FAILED = "failed"
    STALE = "stale"
    VANISHED = "vanished"


class Known(NamedTuple):
    """The part of a row that planning needs. There may be many of these."""

    source: str
    found_by: str
    identity: Identity | None
    output: str
    settings: str
    status: Status
    attempts: int
    related: str = ""

    @property
    def has_output(self) -> bool:
        """Whether references exist."""
        return self.status is not Status.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of one source.

    `source` has no secrets. `found_by` is the pattern or list that found it: only a run that lists the same can tell
    that it has vanished. `identity` is the state of the file when it was read, or when it was listed if reading failed.
    `related` holds the states of other files it refers to, as JSON by URL. `output` is relative to the directory of the
    index. `settings` is a digest of the translation's options. `reason` and `remedy` describe the last failure, and
    `attempts` counts failures since the source changed.
    """

    source: str
    found_by: str
    identity: Identity | None
    output: str
    settings: str
    status: Status
    related: str = ""
    reason: str = ""
    remedy: str = ""
    attempts: int = 0
    problems: tuple[Problem, ...] = ()
    arrays: int = 0
    chunks: int = 0
    requests: int = 0
    bytes_read: int = 0
    seconds: float = 0.0
    tool_version: str = ""
    time: datetime

    @property
    def has_output(self) -> bool:
        """Whether references exist."""
        return self.status is not Status.FAILED

    @property
    def known(self) -> Known:
        about = (self.output, self.settings, self.status, self.attempts, self.related)
        return Known(self.source, self.found_by, self.identity, *about)
