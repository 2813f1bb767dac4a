"""Sources in an object store that the caller has opened: one of obstore, or one with the same methods.

Only methods of the store are called, so a wrapper that caches or traces requests works, too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from h5zarr.io.failure import FetchError, or_source_error
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.planned import PlannedSource
from h5zarr.io.responses import interpret_identity
from h5zarr.io.span import Span


class ObjectStore(Protocol):
    """The methods that h5zarr uses of a store."""

    def head(self, path: str) -> Any: ...

    def get_range(self, path: str, *, start: int, end: int) -> Any: ...


class ObjectSource(PlannedSource):
    """The file at `path` in `store`. The store stays open, and handles timeouts and retries itself."""

    def __init__(self, store: ObjectStore, path: str, *, url: str, network: NetworkPolicy = USUAL_NETWORK) -> None:
        super().__init__(str(Location.parse(url)), network)
        self._store = store
        self._path = path
        self.log.infos += 1
        stated = or_source_error(self.url, self._network.timeout_seconds, lambda: store.head(path))
        self._open(interpret_identity(stated))

    def _request(self, spans: list[Span]) -> list[bytes]:
        # Not `get_ranges`: it merges ranges that the plan keeps apart, and fetches only ten at a time.
        self.log.requests += len(spans)
        with ThreadPoolExecutor(min(self._network.scan_concurrency, len(spans))) as pool:
            bodies = list(pool.map(self._fetch_one, spans))
        self.log.nbytes += sum(map(len, bodies))
        return bodies

    def _fetch_one(self, span: Span) -> bytes:
        try:
            return bytes(self._store.get_range(self._path, start=span.address, end=span.end))
        except Exception as error:
            raise FetchError(span, error) from None
