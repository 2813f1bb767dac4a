"""Counts of the rounds, requests and bytes of a source."""

from __future__ import annotations

from dataclasses import dataclass, field

from h5zarr.display import counted, size


@dataclass(slots=True)
class RequestLog:
    """Counts of the requests to a source. A round is one wait for any number of parallel requests.

    `nbytes` counts all bytes that arrived, including read-ahead. `infos` counts the requests for size and identity,
    which are not part of `requests`. Reads from the cache are not counted.
    """

    rounds: int = 0
    requests: int = 0
    nbytes: int = 0
    infos: int = 0
    is_range_ignored: bool = field(default=False, compare=False)
    """Whether the server sent the whole file instead of a range."""
    is_local: bool = field(default=False, compare=False)
    """Whether all of it was read from local files, where rounds and requests cost nothing."""

    def __str__(self) -> str:
        return f"{_count(self.rounds, 'round')}, {_count(self.requests, 'request')}, {format_nbytes(self.nbytes)}"


def cost_text(log: RequestLog, nbytes: int) -> str:
    """Return what reading a file of `nbytes` cost. Rounds and requests to a local file cost nothing."""
    if log.is_local:
        return f"a file of {size(nbytes)}"
    return f"{counted(log.rounds, 'round')}, {counted(log.requests, 'request')}, {size(log.nbytes)} of {size(nbytes)}"


def format_nbytes(nbytes: int) -> str:
    """Return a readable size: "0.8 MB", "12.0 kB", "512 bytes". Units are powers of 1000."""
    if nbytes < 1000:
        return _count(nbytes, "byte")
    if nbytes < 100_000:
        return f"{nbytes / 1e3:.1f} kB"
    return f"{nbytes / 1e6:.1f} MB"


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
