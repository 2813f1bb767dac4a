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
    """The state of a source in the catalog. References are its own or, if the index writes none, those in its cubes.

    - `INDEXED`: references exist, of the source as last seen.
    - `INDEXED_WITH_PROBLEMS`: the same, but parts of the source are left out; `problems` names them.
    - `FAILED`: no references exist; the reason is recorded.
    - `STALE`: references of an earlier state exist: the source could not be indexed again after it changed.
    - `VANISHED`: references exist, but the source was no longer found.
    """

    INDEXED = "indexed"
    INDEXED_WITH_PROBLEMS = "indexed with problems"
    FAILED = "failed"
    STALE = "stale"
    VANISHED = "vanished"

    @property
    def has_output(self) -> bool:
        """Whether references exist."""
        return self is not Status.FAILED

    @property
    def is_indexed(self) -> bool:
        """Whether references exist and are up to date."""
        return self in (Status.INDEXED, Status.INDEXED_WITH_PROBLEMS)

    @property
    def is_failure(self) -> bool:
        """Whether the last attempt to index the source failed."""
        return self in (Status.FAILED, Status.STALE)

    @property
    def key(self) -> str:
        """The name in reports and metrics."""
        return self.replace(" ", "_")


def settings_of(digest: str, status: Status, *, strict: bool) -> str:
    """Return the `settings` of a row. `strict` matters only for sources that have problems or failed.

    So a strict run reads those again, and so does a run that is no longer strict; all others stay as they are.
    """
    return f"{digest}-strict" if strict and status is not Status.INDEXED else digest


UNWRITTEN = "unwritten"
"""The `settings` of a source whose references could not be written. The file may be fine, so it is never given up."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of one source.

    `source` has no secrets. `found_by` is the pattern or list that found it: only a run that lists the same can tell
    that it has vanished. `identity` is the state of the file when it was read, or when it was listed if reading failed.
    `related` holds the states of other files it refers to, as JSON by URL. `output` is relative to the directory of the
    index, and empty if nothing but cubes is made. `settings` is a digest of the options that affect it. `reason` and
    `remedy` describe the last failure, and `attempts` counts failures since the source changed. `problems` name what is
    left out of the references or, after a failure, why there are none.
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
    def known(self) -> Known:
        about = (self.output, self.settings, self.status, self.attempts, self.related)
        return Known(self.source, self.found_by, self.identity, *about)
