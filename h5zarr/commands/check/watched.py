"""A source that records what is requested. Local files are read as if they were remote."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np

from h5zarr.commands.check.thresholds import BYTES_PER_SECOND, LATENCY_SECONDS, PLACE_GAP_NBYTES
from h5zarr.io.access import Access
from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.local import LocalSource
from h5zarr.io.log import RequestLog
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.plan import Ranges, unite_ranges
from h5zarr.io.source import Identity, Source, open_source
from h5zarr.io.span import Pages, Span
from h5zarr.io.steps import Hints, Partial, Planner

_NONE: Ranges = np.empty((0, 2), np.int64)


class WatchedSource:
    """A source that wraps another: it answers in the same way, and records the ranges and hints."""

    def __init__(self, inner: Source, planner: Planner | None) -> None:
        self._inner = inner
        self._planner = planner
        self.asked = _NONE
        self.is_paged = False

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes

    @property
    def identity(self) -> Identity:
        return self._inner.identity

    @property
    def log(self) -> RequestLog:
        return self._inner.log

    @property
    def planner(self) -> Self:
        return self

    def read_many(self, spans: Sequence[Span]) -> Sequence[memoryview]:
        self._note(spans)
        return self._inner.read_many(spans)

    def peek(self, spans: Sequence[Span]) -> Sequence[memoryview] | Partial | None:
        self._note(spans)
        # A file that arrived whole with the first response is local from then on.
        return self._inner.read_many(spans) if self._planner is None else self._planner.peek(spans)

    def take_hints(self, hints: Hints) -> None:
        self.is_paged |= any(isinstance(hint, Pages) for hint in hints)
        if self._planner is not None:
            self._planner.take_hints(hints)

    def held(self) -> memoryview | None:
        return self._inner.held()

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def places(self) -> Ranges:
        """Return the requested ranges, with nearby ones merged."""
        if not len(self.asked):
            return self.asked
        starts, ends = self.asked[1:, 0], self.asked[:-1, 1]
        first = np.concatenate(([True], starts - ends > PLACE_GAP_NBYTES))
        return np.column_stack((self.asked[first, 0], self.asked[np.append(first[1:], True), 1]))

    def _note(self, spans: Sequence[Span]) -> None:
        # Ranges outside the file are not recorded: the wrapped source reports them.
        ends = [
            (address, address + count) for address, count in spans if 0 <= address <= self.nbytes - count <= self.nbytes
        ]
        self.asked = unite_ranges(np.concatenate((self.asked, np.array(ends, np.int64).reshape(-1, 2))))


@contextmanager
def open_watched(url: str, access: Access) -> Iterator[WatchedSource]:
    """Open a source to be watched. A local file is read like an object in a nearby bucket, unless the policy
    differs.
    """
    with ExitStack() as stack:
        opened = stack.enter_context(open_source(url, access))
        if isinstance(opened, LocalSource):
            file = stack.enter_context(os.fdopen(os.dup(opened.descriptor), "rb", buffering=0))
            modelled = stack.enter_context(FileObjectSource(file, url=opened.url, network=_modelled(access.network)))
            yield WatchedSource(modelled, modelled)
        else:
            yield WatchedSource(opened, opened.planner)


def _modelled(given: NetworkPolicy) -> NetworkPolicy:
    """Return the policy with explicit latency and bandwidth, so that nothing is measured."""
    latency = LATENCY_SECONDS if given.latency_seconds is None else given.latency_seconds
    bandwidth = BYTES_PER_SECOND if given.bytes_per_second is None else given.bytes_per_second
    return replace(given, latency_seconds=latency, bytes_per_second=bandwidth)
