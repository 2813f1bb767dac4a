"""Files that answer requests: each round is planned, fetched at once, and cached in blocks. How is the transport's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from types import TracebackType
from typing import Self

import numpy as np

from h5zarr.io.cache import BlockCache
from h5zarr.io.failure import CLOSED, SHRUNK, Failure, ignores_ranges, or_source_error, source_error
from h5zarr.io.log import RequestLog
from h5zarr.io.plan import Ranges, add_rest, plan_fetches
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.source import Identity
from h5zarr.io.span import LoneSpan, Span


class PlannedSource(ABC):
    """A file of which whole rounds are planned. Not to be used by several threads at once.

    A transport says how ranges are fetched, and calls `_open` as soon as it knows how large the file is.
    """

    identity: Identity

    def __init__(self, url: str, policy: ReadPolicy | None = None) -> None:
        self.url = url
        self.nbytes = 0
        self.log = RequestLog()
        self._policy = policy or ReadPolicy()
        self._cache = BlockCache()
        self._opened = False
        self._begun = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @abstractmethod
    def _request(self, spans: list[Span]) -> list[bytes]:
        """Return the body of the answer for each span, which are sorted, and count them. Raises FetchError.

        The bodies may be shorter or longer than the spans.
        """

    def _open(self, identity: Identity) -> None:
        self.identity = identity
        self.nbytes = identity.nbytes
        self._opened = True

    def read_many(self, spans: Sequence[Span]) -> list[memoryview]:
        """Return one buffer for each span, in their order. One round, or none if every byte is cached."""
        if not self._opened:
            raise source_error(self.url, CLOSED)
        wanted = self._locate(spans)
        lone = 2 * sum(isinstance(span, LoneSpan) for span in spans) > len(spans)
        held = self._cache.ranges
        fetches = plan_fetches(self._extend_first(wanted), held, self.nbytes, self._policy, lone=lone)
        fetches = add_rest(fetches, held, self.nbytes, self._policy)
        if len(fetches):
            self._fetch(fetches)
            self._begun = True
        buffers = self._cache.take(wanted)
        self._cache.trim(self._policy.cache_nbytes)
        return buffers

    def held(self) -> memoryview | None:
        """Return the whole file, where the cache has all of it."""
        if self._cache.nbytes < self.nbytes or not self.nbytes:
            return None
        return self._cache.take(np.array([[0, self.nbytes]]))[0]

    def close(self) -> None:
        """Forget what is cached. What was opened to read it belongs to the transport."""
        self._opened = False
        self._cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _locate(self, spans: Sequence[Span]) -> Ranges:
        """Return `spans` as ranges, all of which are inside the file."""
        try:
            columns = np.fromiter(chain.from_iterable(spans), dtype=np.int64, count=2 * len(spans)).reshape(-1, 2)
        except OverflowError:
            columns = None
        if columns is not None:
            address, count = columns[:, 0], columns[:, 1]
            # Compared with what is left, since the sum of the two may overflow.
            inside = (address >= 0) & (count >= 0) & (address <= self.nbytes) & (count <= self.nbytes - address)
            if inside.all():
                return np.column_stack((address, address + count))
        outside = next(span for span in spans if not 0 <= span[0] <= span[0] + span[1] <= self.nbytes)
        raise source_error(self.url, SHRUNK, Span(*outside))

    def _extend_first(self, wanted: Ranges) -> Ranges:
        """Return `wanted`, and with the first read also the beginning of the file, or all of a small one."""
        if self._begun or not bool((wanted[:, 1] > wanted[:, 0]).any()):
            return wanted
        small = self.nbytes <= self._policy.whole_file_nbytes
        beginning = self.nbytes if small else min(self.nbytes, self._policy.first_read_nbytes)
        return np.concatenate((wanted, np.array([[0, beginning]])))

    def _fetch(self, fetches: Ranges) -> None:
        """Put the bytes of `fetches` into the cache."""
        spans = [Span(address, end - address) for address, end in fetches.tolist()]
        self.log.rounds += 1
        bodies = or_source_error(self.url, self._policy.timeout_seconds, lambda: self._request(spans))
        for span, body in zip(spans, bodies, strict=True):
            if len(body) != span.nbytes:
                return self._accept_whole_file(span, body)
        self._cache.add(fetches, bodies)

    def _accept_whole_file(self, span: Span, body: bytes) -> None:
        """Put the whole file into the cache, if that is what a server that ignores ranges answered."""
        if len(body) != self.nbytes:
            failure = Failure(
                f"the answer has {len(body)} bytes instead of {span.nbytes}",
                "The file may have changed while it was read; try again, or compare its size with the original.",
            )
            raise source_error(self.url, failure, span)
        if self.nbytes > self._policy.cache_nbytes:
            raise source_error(self.url, ignores_ranges(self.nbytes), span)
        self._cache.clear()
        self._cache.add(np.array([[0, self.nbytes]]), [body])
