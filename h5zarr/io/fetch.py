"""Fetch the ranges of one round through fsspec: in parallel if the file system is asynchronous, else one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.errors import SourceChanged
from h5zarr.io.failure import FetchError, ShortBody, is_condition_broken, may_pass, was_repeated
from h5zarr.io.log import RequestLog
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.responses import Condition, Response, request_range
from h5zarr.io.sharing import sharing
from h5zarr.io.span import Span

_FIRST_PAUSE_SECONDS = 0.1


Result = TypeVar("Result")


class Watch(NamedTuple):
    """How to make sure that all responses come from one state of a file.

    `check` raises SourceChanged if a response comes from another state. Requests carry `condition`. If the server says
    that it no longer holds, `changed` makes the error.
    """

    check: Callable[[Response], None]
    condition: Condition
    changed: Callable[[str], SourceChanged]


def fetch_at_once(
    filesystem: Any, path: str, spans: list[Span], network: NetworkPolicy, log: RequestLog, watch: Watch
) -> list[bytes]:
    """Return the response body for each span, with at most `network.scan_concurrency` requests in flight.

    `filesystem` is an asynchronous fsspec file system. A body may be longer than its span, never shorter.
    """
    bodies: list[bytes] = sync(filesystem.loop, _gather, filesystem, path, spans, network, log, watch)
    return bodies


def fetch_in_turn(filesystem: Any, path: str, spans: list[Span], log: RequestLog) -> list[bytes]:
    """Return the body for each span. Spans are sorted. A body may be shorter than its span."""
    return list(fetch_one_by_one(filesystem, path, spans, log))


def fetch_one_by_one(filesystem: Any, path: str, spans: list[Span], log: RequestLog) -> Iterator[bytes]:
    """Yield the body for each span, read through one file object. Spans are sorted.

    One object, because opening a member of an archive means decompressing it from its start.
    """
    span = spans[0]
    try:
        with filesystem.open(path, "rb") as file:
            for span in spans:
                log.requests += 1
                file.seek(span.address)
                body = bytes(file.read(span.nbytes))
                log.nbytes += len(body)
                yield body
    except Exception as error:
        raise FetchError(span, error) from None


async def _gather(
    filesystem: Any, path: str, spans: list[Span], network: NetworkPolicy, log: RequestLog, watch: Watch
) -> list[bytes]:
    """Return the bodies for `spans`. The first failure ends the round and cancels the requests in flight."""
    bodies = [b""] * len(spans)
    # The workers share one iterator, so each takes the next span as soon as it is free.
    remaining = iter(enumerate(spans))

    async def work() -> None:
        for number, span in remaining:
            bodies[number] = await fetch(filesystem, path, span, network, log, watch)

    workers = [asyncio.create_task(work()) for _ in range(min(network.scan_concurrency, len(spans)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return bodies


class Patience(Protocol):
    """The part of a network policy that concerns failing requests."""

    @property
    def attempts(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...


async def fetch(filesystem: Any, path: str, span: Span, network: Patience, log: RequestLog, watch: Watch) -> bytes:
    """Return the body for `span`, with retries after temporary failures. It is not shorter than the span."""

    async def ask() -> bytes:
        # Waiting for other requests does not count towards the timeout.
        async with sharing().requests(), asyncio.timeout(network.timeout_seconds):
            response = await request_range(filesystem, path, span, watch.condition.options)
        log.nbytes += len(response.body)
        watch.check(response)
        if len(response.body) < span.nbytes:
            raise ShortBody(len(response.body), span.nbytes)
        return response.body

    try:
        return await retry(ask, network, log)
    except SourceChanged:
        raise
    except Exception as error:
        if not (watch.condition.options and is_condition_broken(error)):
            raise FetchError(span, error) from None
    raise watch.changed(watch.condition.broken)


async def retry(ask: Callable[[], Awaitable[Result]], network: Patience, log: RequestLog) -> Result:
    """Return the result of `ask`, with retries after temporary failures and growing pauses between them."""
    for attempt in range(1, network.attempts):
        log.requests += 1
        try:
            return await ask()
        except Exception as error:
            if not may_pass(error) or was_repeated(error):
                raise
        await asyncio.sleep(_FIRST_PAUSE_SECONDS * 4 ** (attempt - 1))
    log.requests += 1
    return await ask()


def fetch_whole(filesystem: Any, path: str, network: Patience, log: RequestLog) -> bytes:
    """Return the content of a file, with retries after temporary failures. Raises the last failure."""
    if not filesystem.async_impl:
        with filesystem.open(path, "rb") as file:
            log.requests += 1
            return bytes(file.read())

    async def ask() -> bytes:
        async with asyncio.timeout(network.timeout_seconds):
            return bytes(await filesystem._cat_file(path))

    content: bytes = sync(filesystem.loop, retry, ask, network, log)
    return content
