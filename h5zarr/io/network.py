"""How to read over a network: one policy for scanning files and for reading chunks, and the limits that follow from it.

This module does not import numpy, so that a local file can be opened without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

KIB = 1024
MIB = 1024 * KIB

_SCAN_CONCURRENCY = 96  # fewer than the 100 connections that aiohttp opens
_CHUNK_CONCURRENCY = 32
_SCAN_REQUEST_NBYTES = 4 * MIB

# Assumed until something has been measured: an object store in another region.
USUAL_LATENCY_SECONDS = 0.04
USUAL_BYTES_PER_SECOND = 100e6

_LATENCY_RANGE = 0.0005, 2.0
_BANDWIDTH_RANGE = 1e6, 10e9
_LEAST_NBYTES = 256 * 1024  # most of a smaller response has arrived before its pace can be measured

_POSITIVE = ("bytes_per_second", "block_nbytes", "request_nbytes", "concurrency", "timeout_seconds", "attempts")


@dataclass(frozen=True, slots=True)
class Pace:
    """The time until a response begins, and the bandwidth of all responses together."""

    latency_seconds: float
    bytes_per_second: float

    @property
    def round_trip_nbytes(self) -> int:
        """How many bytes could arrive during the wait of one round trip."""
        return round(self.latency_seconds * self.bytes_per_second)


class PaceMeter:
    """Measures the pace of responses. Values that the caller states are not measured."""

    def __init__(self, latency_seconds: float | None = None, bytes_per_second: float | None = None) -> None:
        self._stated = latency_seconds, bytes_per_second
        self._shortest: float | None = None
        self._fastest: float | None = None

    @property
    def pace(self) -> Pace:
        """The best pace so far. Slower responses had to wait for each other, or for this process."""
        latency, bandwidth = self._stated
        if latency is None:
            latency = _within(_LATENCY_RANGE, self._shortest or USUAL_LATENCY_SECONDS)
        if bandwidth is None:
            bandwidth = _within(_BANDWIDTH_RANGE, self._fastest or USUAL_BYTES_PER_SECOND)
        return Pace(latency, bandwidth)

    def note_response(self, wait_seconds: float) -> None:
        """Record how long a response took to begin."""
        self._shortest = wait_seconds if self._shortest is None else min(self._shortest, wait_seconds)

    def note_bytes(self, nbytes: int, seconds: float) -> None:
        """Record how long bytes took to arrive after the response began."""
        if nbytes >= _LEAST_NBYTES and seconds > 0:
            self._fastest = max(self._fastest or 0.0, nbytes / seconds)


def _within(limits: tuple[float, float], measured: float) -> float:
    return min(max(measured, limits[0]), limits[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLimits:
    """What one round of a scan may fetch.

    A gap of up to `gap_nbytes` costs less than a request, so it may be closed to save one. A round may read
    `ahead_nbytes` near the bytes it asks for, or `behind_nbytes` after a range if only bytes after it can be useful.
    """

    gap_nbytes: int
    ahead_nbytes: int
    behind_nbytes: int
    whole_nbytes: int
    block_nbytes: int
    request_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """The trade between rounds, requests and bytes. Local files are memory-mapped and do not use it.

    A request takes the latency, and then its bytes at the bandwidth that all requests share. While one request waits,
    latency × bandwidth bytes could have arrived: 3 MB at 30 ms and 100 MB/s. All limits follow from these numbers;
    docs/remote.md explains them and lists measurements.
    """

    latency_seconds: float | None = None
    """Time until a response begins: 10 ms for a bucket in the same region, 100 ms across an ocean.

    None: a scan measures it; chunks are read as if it were 40 ms.
    """

    bytes_per_second: float | None = None
    """Bandwidth of all requests together. None: a scan measures it; chunks are read as if it were 100 MB/s."""

    request_seconds: float = 0.0006
    """Processor time of one more request. A scan fetches a gap if its bytes arrive in less time than this."""

    concurrency: int | None = None
    """Most requests in flight at once. None: 96 during a scan or for many files, 32 while reading the chunks of one."""

    whole_round_trips: float = 2.0
    """A scan reads a file, or the rest of it, whole if that takes no longer than this many round trips.

    The number of round trips known to follow counts instead, if it is larger.
    """

    whole_seconds: float = 0.1
    """A scan also reads a file whole if that takes no longer than this."""

    ahead_round_trips: float = 0.5
    """Any round of a scan may read ahead as many bytes as arrive in this fraction of a round trip."""

    ahead_share: float = 1.0
    """It may instead read ahead this many times the bytes it needs, if that is more."""

    ahead_per_use: float = 16.0
    """It may also read ahead this many times the bytes that were read ahead earlier and then used."""

    block_nbytes: int = 128 * KIB
    """A scan extends its requests to multiples of this, as far as it may read ahead. A power of two."""

    first_read_nbytes: int = 1 * MIB
    """How much of the start of a file the first request of a scan fetches; most metadata is there."""

    request_nbytes: int | None = None
    """Largest request; larger ranges are fetched in parallel pieces.

    None: 4 MiB during a scan. For chunks, latency × bandwidth in whole MiB, so that waiting takes half the time.
    """

    cache_nbytes: int = 128 * MIB
    """How much a scan keeps between rounds. A single round may ask for more, but that is not kept."""

    prefetch_nbytes: int = 64 * MIB
    """How many bytes of values a loop along an axis may read ahead, in all arrays together. 0: none.

    It reads ahead more if it had to wait, and nothing if reading is fast.
    """

    gather_seconds: float = 0.001
    """How long the Zarr store waits for more requests before it sends the ones it has."""

    timeout_seconds: float = 60.0
    """Longest time that one request may take, with all of its attempts and the pauses between them.

    An attempt has an equal share of it until its response begins. Listing and writing have this time for each response.
    Synchronous fsspec file systems have their own timeouts.
    """

    attempts: int = 3
    """How often a request is tried if its failure may be temporary: HTTP 408, 429, 500, 502-504, a lost connection."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, name = getattr(self, field.name), field.name
            if value is None and "None" in str(field.type):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, not {type(value).__name__}")
            if "int" in str(field.type) and value != int(value):
                raise ValueError(f"{name} is {value}, but must be a whole number")
            if name in _POSITIVE and not value > 0:
                raise ValueError(f"{name} is {value}, but must be positive")
            if not value >= 0:
                raise ValueError(f"{name} is {value}, but must not be negative")

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Return the policy with these fields. Raises ValueError or TypeError for a wrong one."""
        known = [field.name for field in fields(cls)]
        if unknown := [str(name) for name in values if name not in known]:
            raise ValueError(f"network has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
        # Numbers from the command line are floats.
        whole = {name: int(one) for name, one in values.items() if isinstance(one, float) and one.is_integer()}
        return cls(**{**values, **whole})

    @property
    def scan_concurrency(self) -> int:
        """Most requests of one scan in flight at once."""
        return _SCAN_CONCURRENCY if self.concurrency is None else self.concurrency

    @property
    def chunk_concurrency(self) -> int:
        """Most requests for the chunks of one file in flight at once."""
        return _CHUNK_CONCURRENCY if self.concurrency is None else self.concurrency

    @property
    def chunk_request_nbytes(self) -> int:
        """Largest request for several chunks; a single chunk may be larger."""
        if self.request_nbytes is not None:
            return self.request_nbytes
        return -int(-self._round_trip_nbytes // MIB) * MIB or MIB

    @property
    def chunk_gap_nbytes(self) -> int:
        """Largest gap between two chunks that one request fetches.

        One more request costs its share of the latency, since others are in flight meanwhile; a gap costs its bytes.
        """
        return int(self._round_trip_nbytes / self.chunk_concurrency)

    @property
    def _round_trip_nbytes(self) -> float:
        latency = USUAL_LATENCY_SECONDS if self.latency_seconds is None else self.latency_seconds
        return latency * (USUAL_BYTES_PER_SECOND if self.bytes_per_second is None else self.bytes_per_second)

    def round_limits(
        self, pace: Pace, lacking_nbytes: int, credit_nbytes: int, *, chain_count: int = 0, is_paged: bool
    ) -> RoundLimits:
        """Return the limits of a round of a scan that lacks `lacking_nbytes`.

        `credit_nbytes` is how much may be read ahead because earlier read-ahead was used. At least `chain_count` rounds
        are still to come, including this one.
        """
        bandwidth = pace.bytes_per_second
        round_trips = max(self.whole_round_trips, chain_count if self.whole_round_trips else 0)
        whole_seconds = max(self.whole_seconds, round_trips * pace.latency_seconds)
        ahead_nbytes = round(self.ahead_round_trips * pace.round_trip_nbytes)
        return RoundLimits(
            # With many requests, each also costs its share of the latency, since others are in flight meanwhile.
            gap_nbytes=round(bandwidth * max(self.request_seconds, pace.latency_seconds / self.scan_concurrency)),
            ahead_nbytes=credit_nbytes + max(ahead_nbytes, round(self.ahead_share * lacking_nbytes)),
            behind_nbytes=ahead_nbytes,
            whole_nbytes=0 if is_paged else min(round(bandwidth * whole_seconds), self.cache_nbytes),
            block_nbytes=self.block_nbytes,
            request_nbytes=_SCAN_REQUEST_NBYTES if self.request_nbytes is None else self.request_nbytes,
        )


USUAL_NETWORK = NetworkPolicy()
