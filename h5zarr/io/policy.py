"""How to read the metadata of a source that is far away: a model of what that costs, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from h5zarr.io.pace import Pace
from h5zarr.io.round_limits import RoundLimits

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """The trade between rounds, requests and bytes. Local files are memory-mapped and need none of it.

    A round takes the latency, then its bytes at the bandwidth, and some time of this process for each request. While
    one round trip waits, latency x bandwidth bytes could have come: 3 MB at 30 ms and 100 MB/s. All limits follow from
    these; see docs/remote.md for the reasons and for what was measured.
    """

    latency_seconds: float | None = None
    """How long an answer takes to begin. Measured, unless it is stated."""

    bytes_per_second: float | None = None
    """What all requests together can bring. Measured, unless it is stated."""

    request_seconds: float = 0.0006
    """What one more request takes of this process. Bytes that come in less time are fetched rather than left out."""

    concurrency: int = 96
    """How many requests are under way at once. Below the 100 connections that aiohttp opens."""

    whole_round_trips: float = 2.0
    """A file, or what is left of it, is read whole where that takes no longer than so many round trips.

    Or than those that are known to come: where not even the names of the objects are at the beginning of the file.
    """

    whole_seconds: float = 0.1
    """The same where it takes no longer than this."""

    ahead_round_trips: float = 0.5
    """Any round may read ahead as many bytes as come in this part of a round trip."""

    ahead_share: float = 1.0
    """Or, where that is more, this many times the bytes that it lacks."""

    ahead_per_use: float = 16.0
    """It may also read ahead this many times the bytes that were read ahead before and then wanted."""

    block_nbytes: int = 128 * KIB
    """What is fetched grows to multiples of this, as far as a round may read ahead. A power of two."""

    first_read_nbytes: int = 1 * MIB
    """How much of the file's beginning is fetched with the first read; most metadata is there."""

    request_nbytes: int = 4 * MIB
    """No request is larger; what is larger is fetched in pieces, at the same time."""

    cache_nbytes: int = 128 * MIB
    """What is kept between rounds. What one round asks for may exceed it, but is not kept."""

    timeout_seconds: float = 60.0
    """How long one request may take. Synchronous file systems of fsspec know no time-out but their own."""

    attempts: int = 3
    """How often a request is made that fails in a way that may pass: HTTP 429, 500, 502-504, a lost connection."""

    def __post_init__(self) -> None:
        positive = ("bytes_per_second", "block_nbytes", "request_nbytes", "concurrency", "timeout_seconds", "attempts")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value}, but must be positive")
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value >= 0:
                raise ValueError(f"{field.name} is {value}, but must not be negative")

    def limits(
        self, pace: Pace, lacking_nbytes: int, credit_nbytes: int, *, chain_count: int = 0, is_paged: bool
    ) -> RoundLimits:
        """Return the limits of a round that lacks `lacking_nbytes`.

        `credit_nbytes` is what reading ahead has earned so far; `chain_count` rounds are to come at least, with this.
        """
        bandwidth = pace.bytes_per_second
        round_trips = max(self.whole_round_trips, chain_count if self.whole_round_trips else 0)
        whole_seconds = max(self.whole_seconds, round_trips * pace.latency_seconds)
        ahead_nbytes = round(self.ahead_round_trips * pace.round_trip_nbytes)
        return RoundLimits(
            # With many requests, each also costs its share of the latency, since others are under way meanwhile.
            gap_nbytes=round(bandwidth * max(self.request_seconds, pace.latency_seconds / self.concurrency)),
            ahead_nbytes=credit_nbytes + max(ahead_nbytes, round(self.ahead_share * lacking_nbytes)),
            behind_nbytes=ahead_nbytes,
            whole_nbytes=0 if is_paged else min(round(bandwidth * whole_seconds), self.cache_nbytes),
            block_nbytes=self.block_nbytes,
            request_nbytes=self.request_nbytes,
        )
