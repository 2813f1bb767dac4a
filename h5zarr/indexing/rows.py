"""What is known of each source: one row of the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from h5zarr.errors import Problem
from h5zarr.io.source import Identity


def writable(text: str) -> str:
    """Return text as tables take it: bytes in a name of a file that are no text are shown as what they are."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class Status(StrEnum):
    """What became of a source.

    - `INDEXED`: there are references, of the source as it was when it was last seen.
    - `FAILED`: there are none; the reason is known.
    - `STALE`: there are references, but of an earlier state: the source has changed since, and could not be read again.
    - `VANISHED`: there are references, and the source was not found any more.
    """

    INDEXED = "indexed"
    FAILED = "failed"
    STALE = "stale"
    VANISHED = "vanished"


class Known(NamedTuple):
    """What of a row it takes to tell whether there is something to do: there may be many."""

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
        """Whether there are references."""
        return self.status is not Status.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one source.

    `source` has no secrets. `found_by` is the pattern or list through which it was found: only those who list the same
    can say that it is gone. `identity` is that of the file as it was read, or, where that failed, as it was listed;
    `related` has those of other files that it refers to, as JSON by URL. `output` stands below the directory of the
    index. `settings` tells how it was translated. `reason` and `remedy` are those of the last failure, and `attempts`
    counts failures since the source changed.
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
        """Whether there are references."""
        return self.status is not Status.FAILED

    @property
    def known(self) -> Known:
        about = (self.output, self.settings, self.status, self.attempts, self.related)
        return Known(self.source, self.found_by, self.identity, *about)
