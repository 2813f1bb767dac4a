"""Files that fsspec opens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np
from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.errors import SourceChanged
from h5zarr.io.answers import Answer, ask_range, states_identity
from h5zarr.io.condition import UNCONDITIONAL, find_condition
from h5zarr.io.failure import NO_SIZE, Failure, is_final, may_pass, or_source_error, source_error
from h5zarr.io.fetch import Watch, fetch_at_once, fetch_in_turn, retry
from h5zarr.io.filesystems import shared_filesystem
from h5zarr.io.grammar import is_chain
from h5zarr.io.planned import PlannedSource
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.quoting import settle_url
from h5zarr.io.source import Identity
from h5zarr.io.span import Span
from h5zarr.io.url import display_url
from h5zarr.io.verify import check_unchanged, source_changed

# S3's, of all that was written while a bucket kept no versions: each such object replaces the last.
_NO_VERSION = "null"
_SINCE = "it was opened"
_AGAIN = "Try again when nothing writes to it any more."
_DIRECTORY = Failure("this is a directory", "Give the URL of a file in it.")


class RemoteSource(PlannedSource):
    """A file that fsspec opens. Connections belong to fsspec, which shares and closes them."""

    def __init__(
        self, url: str, storage_options: Mapping[str, Any] | None = None, policy: ReadPolicy | None = None
    ) -> None:
        super().__init__(display_url(url), policy)
        settled = settle_url(url)
        or_source_error(self.url, self._policy.timeout_seconds, lambda: self._connect(settled, storage_options))

    def _connect(self, url: str, storage_options: Mapping[str, Any] | None) -> None:
        self._filesystem, self._path = shared_filesystem(url, storage_options)
        # A chain with a cache in it claims to be asynchronous, but then goes past the cache.
        self._asynchronous = bool(self._filesystem.async_impl) and not is_chain(url)
        if self._asynchronous and states_identity(self._filesystem) and self._begin():
            return
        stated = self._ask()
        if stated.get("type") == "directory":
            raise source_error(self.url, _DIRECTORY)
        if stated.get("size") is None:
            raise source_error(self.url, NO_SIZE)
        self._open(interpret_identity(stated))

    def _begin(self) -> bool:
        """Read the beginning of the file, with which its size is told; False where that must be asked for."""
        span = Span(0, self._policy.first_read_nbytes)
        if not span.nbytes:
            return False

        async def ask() -> Answer:
            async with asyncio.timeout(self._policy.timeout_seconds):
                return await ask_range(self._filesystem, self._path, span, UNCONDITIONAL.options)

        try:
            answer: Answer = sync(self._filesystem.loop, retry, ask, self._policy, self.log)
        except Exception as error:
            # All attempts are used up, or there is nobody to let us in: the question would meet with the same.
            if may_pass(error) or is_final(error):
                raise
            return False  # an empty file, or whatever the question will tell better
        body, stated = answer.body, answer.stated
        self._note_pace(answer)
        self.log.nbytes += len(body)
        self.log.rounds += 1
        if stated.get("size") is None or len(body) not in (int(stated["size"]), span.nbytes):
            return False
        if len(body) > self._policy.cache_nbytes:
            return False
        self._open(interpret_identity(stated))
        self._cache.add(np.array([[0, len(body)]]), [body])
        self._begun = True
        return True

    def _open(self, identity: Identity) -> None:
        self._condition = find_condition(self._filesystem, self._path, identity)
        super()._open(identity)

    def _ask(self) -> dict[str, Any]:
        """Return what the file system says of the file: its size, and what else it knows."""
        self.log.infos += 1
        if not self._asynchronous:
            return dict(self._filesystem.info(self._path))
        return dict(
            sync(self._filesystem.loop, self._filesystem._info, self._path, timeout=self._policy.timeout_seconds)
        )

    def _request(self, spans: list[Span]) -> list[bytes]:
        if self._asynchronous:
            watch = Watch(self._look, self._condition, self._changed)
            return fetch_at_once(self._filesystem, self._path, spans, self._policy, self.log, watch)
        return fetch_in_turn(self._filesystem, self._path, spans, self.log)

    def _look(self, answer: Answer) -> None:
        """Raise unless an answer is of the file that was opened: a mixture of two would be neither."""
        self._note_pace(answer)
        if answer.stated.get("size") is not None:
            now = interpret_identity(answer.stated)
            check_unchanged(self.url, self.identity, now, since=_SINCE, remedy=_AGAIN)

    def _changed(self, what: str) -> SourceChanged:
        return source_changed(self.url, what, since=_SINCE, remedy=_AGAIN)

    def _note_pace(self, answer: Answer) -> None:
        if answer.wait_seconds is not None:
            self._meter.note_answer(answer.wait_seconds)
            self._meter.note_bytes(answer.rest_nbytes, answer.rest_seconds)


def interpret_identity(stated: Mapping[str, Any]) -> Identity:
    """Return the identity in what a file system states, under the names that the various ones use."""

    def find(*names: str) -> Any:
        return next((stated[name] for name in names if stated.get(name) is not None), None)

    etag = find("ETag", "etag", "e_tag")
    version = find("VersionId", "version_id", "generation", "version")
    mtime = find("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "modified", "created")
    return Identity(
        nbytes=int(stated["size"]),
        etag=None if etag is None else str(etag),
        mtime=_format_moment(mtime),
        version=None if version in (None, _NO_VERSION) else str(version),
    )


def _format_moment(moment: Any) -> str | None:
    """Return a moment, as a datetime, seconds since 1970 or text, in ISO 8601 and UTC; None if it cannot be read."""
    try:
        if isinstance(moment, int | float):
            moment = datetime.fromtimestamp(moment, UTC)
        elif isinstance(moment, str):
            moment = datetime.fromisoformat(moment) if moment[:4].isdigit() else parsedate_to_datetime(moment)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(moment, datetime):
        return None
    # A datetime without a zone is in UTC: so are those of the file systems that give one.
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")
