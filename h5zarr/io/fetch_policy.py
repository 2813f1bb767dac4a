"""How to fetch chunks from far away: what a request costs, and what follows from that."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPolicy:
    """A model of the cost: a request takes the latency, and then its bytes at the bandwidth that all requests share.

    While one request waits, latency × bandwidth bytes could have been moved; with the defaults, 4 MB. Who knows the
    network better, says so: the limits follow.
    """

    latency_seconds: float = 0.04
    """How long the first byte of an answer takes. 10 ms is a bucket in the same region, 100 ms one across an ocean."""

    bytes_per_second: float = 100e6
    """What all requests together can bring."""

    concurrency: int = 32
    """How many requests are under way at once."""

    gather_seconds: float = 0.001
    """How long the Zarr store waits for more requests before it sends those that it has."""

    timeout_seconds: float = 60.0
    """How long one request may take. Synchronous file systems of fsspec know no time-out but their own."""

    attempts: int = 3
    """How often a request is made that fails in a way that may pass: HTTP 429, 5xx, a time-out, a body cut short."""

    def __post_init__(self) -> None:
        for name in ("bytes_per_second", "concurrency", "timeout_seconds", "attempts"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be positive")
        for name in ("latency_seconds", "gather_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, but must not be negative")

    @property
    def request_nbytes(self) -> int:
        """The most that one request asks for, a chunk apart: as much as makes waiting half of its time, whole MiB."""
        return -int(-self.latency_seconds * self.bytes_per_second // MIB) * MIB or MIB

    @property
    def gap_nbytes(self) -> int:
        """What may lie between two chunks that one request brings.

        One more request costs its share of the latency, since others are under way meanwhile; a gap costs its bytes.
        """
        return int(self.latency_seconds * self.bytes_per_second / self.concurrency)
