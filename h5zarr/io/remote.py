"""Files that fsspec opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.errors import SourceChanged
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.failure import DIRECTORY, NO_SIZE, is_final, is_temporary, or_source_error, source_error
from h5zarr.io.fetch import Watch, fetch_at_once, fetch_in_turn, retry
from h5zarr.io.filesystems import shared_filesystem
from h5zarr.io.location import Location
from h5zarr.io.planned import PlannedSource
from h5zarr.io.responses import (
    UNCONDITIONAL,
    Begun,
    Response,
    find_condition,
    interpret_identity,
    request_range,
    states_identity,
)
from h5zarr.io.source import Identity
from h5zarr.io.span import Span
from h5zarr.io.unchanged import check_unchanged, source_changed
from h5zarr.io.urls import is_chain

_SINCE = "it was opened"
_AGAIN = "Try again when nothing writes to it."


class RemoteSource(PlannedSource):
    """A file that fsspec opens. Connections belong to fsspec, which shares and closes them."""

    def __init__(self, place: str | Location, access: Access = USUAL_ACCESS) -> None:
        location = Location.parse(place)
        super().__init__(str(location), access.network)
        settled, options = location.for_fsspec(), access.options_for(location)
        or_source_error(self.url, self._network.timeout_seconds, lambda: self._connect(settled, options))

    def _connect(self, url: str, storage_options: Mapping[str, Any]) -> None:
        self._filesystem, self._path = shared_filesystem(url, storage_options)
        # A chain that contains a cache claims to be asynchronous, but asynchronous reads bypass the cache.
        self._asynchronous = bool(self._filesystem.async_impl) and not is_chain(url)
        if self._asynchronous and states_identity(self._filesystem) and self._begin():
            return
        stated = self._ask()
        if stated.get("type") == "directory":
            raise source_error(self.url, DIRECTORY)
        if stated.get("size") is None:
            raise source_error(self.url, NO_SIZE)
        self._open(interpret_identity(stated))

    def _begin(self) -> bool:
        """Read the start of the file, and its size from the response. Return False if the size must be requested."""
        span = Span(0, self._network.first_read_nbytes)
        if not span.nbytes:
            return False

        async def ask(begun: Begun) -> Response:
            return await request_range(self._filesystem, self._path, span, UNCONDITIONAL.options, begun)

        try:
            response: Response = sync(self._filesystem.loop, retry, ask, self._network, self.log)
        except Exception as error:
            # All attempts have failed, or the error is final. Requesting the size would fail in the same way.
            if is_temporary(error) or is_final(error):
                raise
            return False  # an empty file, or an error for which requesting the size gives a better message
        body, stated = response.body, response.stated
        self._note_pace(response)
        self.log.nbytes += len(body)
        self.log.is_range_ignored |= response.is_range_ignored
        self.log.rounds += 1
        if stated.get("size") is None or len(body) not in (int(stated["size"]), span.nbytes):
            return False
        if len(body) > self._network.cache_nbytes:
            return False
        self._open(interpret_identity(stated))
        self._cache.add(np.array([[0, len(body)]]), [body])
        self._begun = True
        return True

    def _open(self, identity: Identity) -> None:
        self._condition = find_condition(self._filesystem, self._path, identity)
        super()._open(identity)

    def _ask(self) -> dict[str, Any]:
        """Return the information that the file system has about the file, such as its size."""
        self.log.infos += 1
        if not self._asynchronous:
            return dict(self._filesystem.info(self._path))
        return dict(
            sync(self._filesystem.loop, self._filesystem._info, self._path, timeout=self._network.timeout_seconds)
        )

    def _request(self, spans: list[Span]) -> list[bytes]:
        if self._asynchronous:
            watch = Watch(self._check_response, self._condition, self._changed)
            return fetch_at_once(self._filesystem, self._path, spans, self._network, self.log, watch)
        return fetch_in_turn(self._filesystem, self._path, spans, self.log)

    def _check_response(self, response: Response) -> None:
        """Raise SourceChanged if a response comes from a different version of the file than the one that was opened."""
        self._note_pace(response)
        if response.stated.get("size") is not None:
            now = interpret_identity(response.stated)
            check_unchanged(self.url, self.identity, now, since=_SINCE, remedy=_AGAIN)

    def _changed(self, what: str) -> SourceChanged:
        return source_changed(self.url, what, since=_SINCE, remedy=_AGAIN)

    def _note_pace(self, response: Response) -> None:
        if response.wait_seconds is not None:
            self._meter.note_response(response.wait_seconds)
            self._meter.note_bytes(response.rest_nbytes, response.rest_seconds)
