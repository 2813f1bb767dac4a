"""Sources that plan their requests. Each round is planned, fetched in parallel, and cached in blocks.

A subclass implements the transport.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from types import TracebackType
from typing import Self

import numpy as np

from h5zarr.io.cache import BlockCache
from h5zarr.io.failure import CLOSED, SHRUNK, Failure, ignores_ranges, or_source_error, source_error
from h5zarr.io.log import RequestLog
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy, PaceMeter
from h5zarr.io.plan import Ranges, plan_fetches, subtract_ranges, total_nbytes, unite_ranges
from h5zarr.io.sharing import sharing
from h5zarr.io.source import Identity
from h5zarr.io.span import AmongData, Pages, Rounds, Span
from h5zarr.io.steps import Hints, Partial


class ReadAhead:
    """Counts the bytes of a source that were read ahead, and how many of them were used later."""

    def __init__(self) -> None:
        self.used_nbytes = 0
        self.spent_nbytes = 0
        self._wanted: Ranges = np.empty((0, 2), dtype=np.int64)

    def note_wanted(self, wanted: Ranges, held: Ranges) -> None:
        """Record that the bytes of `wanted` are needed. Both arguments are tidy."""
        fresh = subtract_ranges(wanted, self._wanted)
        if len(fresh):
            self.used_nbytes += total_nbytes(fresh) - total_nbytes(subtract_ranges(fresh, held))
            self._wanted = unite_ranges(np.concatenate((self._wanted, fresh)))

    def credit(self, per_use: float) -> int:
        """Return how many bytes may be read ahead, if each used byte pays for `per_use` bytes."""
        return max(0, int(per_use * self.used_nbytes) - self.spent_nbytes)


class PlannedSource(ABC):
    """A file that is read in planned rounds. Not thread-safe.

    A transport implements `_request`, and calls `_open` as soon as it knows the size of the file.
    """

    identity: Identity

    def __init__(self, url: str, network: NetworkPolicy = USUAL_NETWORK) -> None:
        self.url = url
        self.nbytes = 0
        self.log = RequestLog()
        self._network = network
        self._cache = BlockCache()
        self._meter = PaceMeter(self._network.latency_seconds, self._network.bytes_per_second)
        self._ahead = ReadAhead()
        self._hints: Ranges = np.empty((0, 2), dtype=np.int64)
        self._among_data: Ranges = np.empty((0, 2), dtype=np.int64)
        self._is_paged = False
        self._chain_count = 0
        self._opened = False
        self._begun = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @abstractmethod
    def _request(self, spans: list[Span]) -> list[bytes]:
        """Return the response body for each span, and count the requests. Raises FetchError.

        The spans are sorted. Bodies may be shorter or longer than their spans.
        """

    def _open(self, identity: Identity) -> None:
        self.identity = identity
        self.nbytes = identity.nbytes
        self._opened = True
        sharing().join(self)

    def read_many(self, spans: Sequence[Span]) -> Sequence[memoryview]:
        """Return one buffer per span, in the same order. This takes one round, or none if all bytes are cached."""
        whole = self._whole()
        if whole is not None:
            self._check_inside(spans)
            return [whole[address : address + count] for address, count in spans]
        wanted = self._locate(spans)
        tidy, held = unite_ranges(wanted), self._cache.ranges
        self._ahead.note_wanted(tidy, held)
        lacking = subtract_ranges(tidy, held)
        if len(lacking):
            self._fetch(self._plan(lacking))
            self._begun = True
        self._pass_link()
        buffers = self._cache.take(wanted)
        self._cache.trim(self._cache_nbytes)
        return buffers

    @property
    def _cache_nbytes(self) -> int:
        """How many bytes this source may keep between rounds: a share of the limit for all sources."""
        return sharing().cache_nbytes(self._network.cache_nbytes)

    def _whole(self) -> memoryview | None:
        """Return the whole file if a single response contained it and it may stay in the cache, else None.

        Small files are in memory from the start. Planning their rounds took half as long as parsing them.
        """
        return self._cache.only(self.nbytes) if self._opened and self.nbytes <= self._cache_nbytes else None

    def peek(self, spans: Sequence[Span]) -> Sequence[memoryview] | Partial | None:
        """Return the cached buffers, with None for spans that are not cached. Return None if no span is cached."""
        wanted = self._locate(spans)
        is_held = self._cache.holds(wanted)
        if is_held.all():
            return self.read_many(spans)
        if not is_held.any():
            return None
        self._pass_link()
        self._ahead.note_wanted(unite_ranges(wanted[is_held]), self._cache.ranges)
        buffers: Partial = Partial([None] * len(spans))
        for number, buffer in zip(np.flatnonzero(is_held).tolist(), self._cache.take(wanted[is_held]), strict=True):
            buffers[number] = buffer
        return buffers

    def take_hints(self, hints: Hints) -> None:
        """Remember spans that will be needed later. Spans outside the file are ignored."""
        spans = [hint for hint in hints if isinstance(hint, Span)]
        for hint in hints if len(spans) < len(hints) else ():
            self._is_paged |= isinstance(hint, Pages)
            self._chain_count = max(self._chain_count, hint.to_come if isinstance(hint, Rounds) else 0)
            if self._is_paged and isinstance(hint, AmongData):
                self._among_data = np.concatenate((self._among_data, self._inside(hint.spans)))
        self._hints = np.concatenate((self._hints, self._inside(spans)))

    def _inside(self, spans: Iterable[Span]) -> Ranges:
        """Return the spans that are inside the file, as ranges."""
        ends = [(span.address, span.end) for span in spans if 0 <= span.address <= span.end <= self.nbytes]
        return np.array(ends, dtype=np.int64).reshape(-1, 2)

    def _pass_link(self) -> None:
        """Shorten the announced chain of rounds by one."""
        self._chain_count = max(0, self._chain_count - 1)

    @property
    def planner(self) -> Self | None:
        """This source if planning its reads is worthwhile, or None if the whole file is in memory."""
        return self if self._whole() is None else None

    def held(self) -> memoryview | None:
        """Return the whole file if all of it is cached, else None."""
        if self._cache.nbytes < self.nbytes or not self.nbytes:
            return None
        return self._cache.take(np.array([[0, self.nbytes]]))[0]

    def close(self) -> None:
        """Clear the cache. Connections belong to the transport."""
        self._opened = False
        self._cache.clear()
        sharing().leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _locate(self, spans: Sequence[Span]) -> Ranges:
        """Return `spans` as ranges. Raises SourceError if one of them is not inside the file."""
        if not self._opened:
            raise source_error(self.url, CLOSED)
        try:
            columns = np.fromiter(chain.from_iterable(spans), dtype=np.int64, count=2 * len(spans)).reshape(-1, 2)
        except OverflowError:
            columns = None
        if columns is not None:
            address, count = columns[:, 0], columns[:, 1]
            # Compare with the remaining size, because the sum of the two may overflow.
            inside = (address >= 0) & (count >= 0) & (address <= self.nbytes) & (count <= self.nbytes - address)
            if inside.all():
                return np.column_stack((address, address + count))
        self._check_inside(spans)
        raise AssertionError("one of the spans is not inside the file")

    def _check_inside(self, spans: Sequence[Span]) -> None:
        nbytes = self.nbytes
        for address, count in spans:
            if not 0 <= address <= address + count <= nbytes:
                raise source_error(self.url, SHRUNK, Span(address, count))

    def _plan(self, lacking: Ranges) -> Ranges:
        """Return the ranges to fetch for `lacking`, including hinted ranges if they are cheap."""
        held, network, pace = self._cache.ranges, self._network, self._meter.pace
        asked = total_nbytes(lacking)
        hinted = subtract_ranges(unite_ranges(self._hints), held)
        if total_nbytes(hinted) <= pace.round_trip_nbytes:
            lacking = unite_ranges(np.concatenate((lacking, hinted)))
            self._hints = self._hints[:0]
            if self._is_paged:
                self._among_data = np.concatenate((self._among_data, hinted))
        credit = self._ahead.credit(network.ahead_per_use)
        # The start of a file says whether it has pages. Until that is read, assume that it has.
        is_paged = self._is_paged or not self._begun
        limits = replace(network, cache_nbytes=self._cache_nbytes).round_limits(
            pace, asked, credit, chain_count=self._chain_count, is_paged=is_paged
        )
        lacking = subtract_ranges(unite_ranges(self._extend_first(lacking)), held)
        fetches = plan_fetches(lacking, held, self.nbytes, limits, alone=unite_ranges(self._among_data))
        self._ahead.spent_nbytes += total_nbytes(fetches) - asked
        return fetches

    def _extend_first(self, lacking: Ranges) -> Ranges:
        """Return `lacking`, plus the start of the file if nothing was read yet."""
        if self._begun:
            return lacking
        return np.concatenate((lacking, np.array([[0, min(self.nbytes, self._network.first_read_nbytes)]])))

    def _fetch(self, fetches: Ranges) -> None:
        """Fetch ranges into the cache."""
        spans = [Span(address, end - address) for address, end in fetches.tolist()]
        self.log.rounds += 1
        started = time.perf_counter()
        with sharing().in_flight.reserve(total_nbytes(fetches)):
            bodies = or_source_error(self.url, self._network.timeout_seconds, lambda: self._request(spans))
        seconds = time.perf_counter() - started - self._meter.pace.latency_seconds
        self._meter.note_bytes(sum(map(len, bodies)), seconds)
        for span, body in zip(spans, bodies, strict=True):
            if len(body) != span.nbytes:
                return self._accept_whole_file(span, body)
        self._cache.add(fetches, bodies)

    def _accept_whole_file(self, span: Span, body: bytes) -> None:
        """Cache the whole file if a server that ignores ranges has sent it, else raise SourceError."""
        if len(body) != self.nbytes:
            failure = Failure(
                f"the response has {len(body)} bytes instead of {span.nbytes}",
                "The file may have changed while it was read; try again, or compare its size with the original.",
            )
            raise source_error(self.url, failure, span)
        if self.nbytes > self._cache_nbytes:
            raise source_error(self.url, ignores_ranges(self.nbytes), span)
        self._cache.clear()
        self._cache.add(np.array([[0, self.nbytes]]), [body])
