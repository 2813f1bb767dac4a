"""Fetch the ranges of one round through fsspec: in parallel if the file system is asynchronous, else one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.errors import SourceChanged
from h5zarr.io.failure import FetchError, ShortBody, is_condition_broken, is_temporary, was_retried
from h5zarr.io.log import RequestLog
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.responses import Begun, Condition, Response, request_range
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


class RetryPolicy(Protocol):
    """The part of a network policy that concerns failing requests."""

    @property
    def attempts(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...


async def fetch(filesystem: Any, path: str, span: Span, network: RetryPolicy, log: RequestLog, watch: Watch) -> bytes:
    """Return the body for `span`, with retries after temporary failures. It is not shorter than the span."""

    async def ask(begun: Begun) -> bytes:
        response = await request_range(filesystem, path, span, watch.condition.options, begun)
        log.nbytes += len(response.body)
        log.is_range_ignored |= response.is_range_ignored
        watch.check(response)
        if len(response.body) < span.nbytes:
            raise ShortBody(len(response.body), span.nbytes)
        return response.body

    try:
        return await retry(ask, network, log, turn=sharing().requests())
    except SourceChanged:
        raise
    except Exception as error:
        if not (watch.condition.options and is_condition_broken(error)):
            raise FetchError(span, error) from None
    raise watch.changed(watch.condition.broken)


async def retry(
    ask: Callable[[Begun], Awaitable[Result]],
    network: RetryPolicy,
    log: RequestLog,
    turn: AbstractAsyncContextManager[Any] | None = None,
) -> Result:
    """Return the result of `ask`, with retries after temporary failures and growing pauses between them.

    All attempts and pauses together take at most `network.timeout_seconds`. The response of an attempt must begin
    within an equal share of the remaining time, and may take all of the remaining time to complete. So a lost
    connection is retried, and a slow one can finish. `turn` limits the requests of this process; waiting for it does
    not count.
    """
    left_seconds = network.timeout_seconds
    for attempt in range(network.attempts):
        log.requests += 1
        async with turn or nullcontext():
            started = time.monotonic()
            try:
                return await _ask_within(ask, left_seconds / (network.attempts - attempt), left_seconds)
            except Exception as error:
                left_seconds -= time.monotonic() - started
                is_last = attempt + 1 == network.attempts or left_seconds <= 0
                if is_last or not is_temporary(error) or was_retried(error):
                    raise
                was_quick = not isinstance(error, TimeoutError)
        if was_quick:
            pause = min(_FIRST_PAUSE_SECONDS * 4**attempt, left_seconds / 2)
            await asyncio.sleep(pause)
            left_seconds -= pause
    raise AssertionError("there is at least one attempt")


async def _ask_within(ask: Callable[[Begun], Awaitable[Result]], begin_seconds: float, whole_seconds: float) -> Result:
    """Return the result of `ask`. Raises TimeoutError if the response begins or ends too late."""
    end = asyncio.get_running_loop().time() + whole_seconds
    async with asyncio.timeout(begin_seconds) as clock:

        def begun() -> None:
            if not clock.expired():
                clock.reschedule(end)

        return await ask(begun)


def fetch_whole(filesystem: Any, path: str, network: RetryPolicy, log: RequestLog) -> bytes:
    """Return the content of a file, with retries after temporary failures. Raises the last failure."""
    if not filesystem.async_impl:
        with filesystem.open(path, "rb") as file:
            log.requests += 1
            return bytes(file.read())

    async def ask(begun: Begun) -> bytes:
        begun()  # fsspec does not report when the response begins, so it may take all of the time
        return bytes(await filesystem._cat_file(path))

    content: bytes = sync(filesystem.loop, retry, ask, network, log)
    return content
