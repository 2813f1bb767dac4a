"""Files that fsspec opens: each round is planned, fetched at once, and cached in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import chain
from types import TracebackType
from typing import Any, Self

import fsspec  # type: ignore[import-untyped, unused-ignore]
import numpy as np
from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.io.cache import BlockCache
from h5zarr.io.failure import CLOSED, SHRUNK, Failure, describe_failure, source_error
from h5zarr.io.fetch import FetchError, fetch_at_once, fetch_in_turn
from h5zarr.io.log import RequestLog, format_nbytes
from h5zarr.io.plan import Ranges, add_rest, plan_fetches
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.source import Identity
from h5zarr.io.span import LoneSpan, Span
from h5zarr.io.url import display_url

_NO_SIZE = Failure(
    "the server does not tell the size of the file", "Copy the file, or put simplecache:: in front of the URL."
)
_DIRECTORY = Failure("this is a directory", "Give the URL of a file in it.")


class RemoteSource:
    """A file that fsspec opens. Not to be used by several threads at once."""

    def __init__(
        self, url: str, storage_options: Mapping[str, Any] | None = None, policy: ReadPolicy | None = None
    ) -> None:
        self.url = display_url(url)
        self.log = RequestLog()
        self._policy = policy or ReadPolicy()
        self._cache = BlockCache()
        self._opened = False
        self._begun = False
        try:
            self._filesystem, self._path = fsspec.url_to_fs(url, **complete_options(url, storage_options))
            # A chain with a cache in it claims to be asynchronous, but then goes past the cache.
            self._asynchronous = bool(self._filesystem.async_impl) and "::" not in url
            stated = self._ask()
        except Exception as error:
            raise source_error(self.url, describe_failure(error, self._policy.timeout_seconds)) from None
        if stated.get("type") == "directory":
            raise source_error(self.url, _DIRECTORY)
        if stated.get("size") is None:
            raise source_error(self.url, _NO_SIZE)
        self.nbytes = int(stated["size"])
        self.identity = interpret_identity(stated)
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
        """Forget what is cached. Connections belong to fsspec, which shares and closes them."""
        self._opened = False
        self._cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RemoteSource({self.url!r})"

    def _ask(self) -> dict[str, Any]:
        """Return what the file system says of the file: its size, and what else it knows."""
        self.log.infos += 1
        if not self._asynchronous:
            return dict(self._filesystem.info(self._path))
        return dict(
            sync(self._filesystem.loop, self._filesystem._info, self._path, timeout=self._policy.timeout_seconds)
        )

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
        try:
            if self._asynchronous:
                bodies = fetch_at_once(self._filesystem, self._path, spans, self._policy, self.log)
            else:
                bodies = fetch_in_turn(self._filesystem, self._path, spans, self.log)
        except FetchError as failed:
            failure = describe_failure(failed.error, self._policy.timeout_seconds)
            raise source_error(self.url, failure, failed.span) from None
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
            failure = Failure(
                f"the server ignores byte ranges and sends the whole file of {format_nbytes(self.nbytes)}",
                "Copy the file, or put simplecache:: in front of the URL.",
            )
            raise source_error(self.url, failure, span)
        self._cache.clear()
        self._cache.add(np.array([[0, self.nbytes]]), [body])


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
        version=None if version is None else str(version),
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


def complete_options(url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options for fsspec. Over HTTP, compression is declined: it would change what a range means."""
    options = dict(storage_options or {})
    if url.startswith(("http://", "https://")) and "::" not in url:
        options["headers"] = {"Accept-Encoding": "identity", **options.get("headers", {})}
    return options
