"""Fetching the ranges of one round through fsspec: at the same time where it can, else one after the other."""

from __future__ import annotations

import asyncio
from typing import Any

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.io.failure import FetchError, may_pass
from h5zarr.io.log import RequestLog
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.span import Span

_FIRST_PAUSE_SECONDS = 0.1


def fetch_at_once(filesystem: Any, path: str, spans: list[Span], policy: ReadPolicy, log: RequestLog) -> list[bytes]:
    """Return the body of the answer for each span, at most `policy.concurrency` of them under way at a time.

    `filesystem` is an asynchronous one of fsspec. The bodies may be shorter or longer than the spans.
    """
    bodies: list[bytes] = sync(filesystem.loop, _gather, filesystem, path, spans, policy, log)
    return bodies


def fetch_in_turn(filesystem: Any, path: str, spans: list[Span], log: RequestLog) -> list[bytes]:
    """Return the body of the answer for each span, which are sorted, through one file object.

    One object, since the members of an archive are decompressed from their beginning whenever they are opened.
    """
    bodies: list[bytes] = []
    span = spans[0]
    try:
        with filesystem.open(path, "rb") as file:
            for span in spans:
                log.requests += 1
                file.seek(span.address)
                body = bytes(file.read(span.nbytes))
                log.nbytes += len(body)
                bodies.append(body)
    except Exception as error:
        raise FetchError(span, error) from None
    return bodies


async def _gather(filesystem: Any, path: str, spans: list[Span], policy: ReadPolicy, log: RequestLog) -> list[bytes]:
    """Return the bodies for `spans`. The first failure ends the round: the requests under way are cancelled."""
    bodies = [b""] * len(spans)
    # The workers share one iterator, so that each takes the next span as soon as it is free.
    remaining = iter(enumerate(spans))

    async def work() -> None:
        for number, span in remaining:
            bodies[number] = await _fetch(filesystem, path, span, policy, log)

    workers = [asyncio.create_task(work()) for _ in range(min(policy.concurrency, len(spans)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return bodies


async def _fetch(filesystem: Any, path: str, span: Span, policy: ReadPolicy, log: RequestLog) -> bytes:
    """Return the body for `span`, asking again after failures that may pass."""
    for attempt in range(1, policy.attempts + 1):
        log.requests += 1
        try:
            async with asyncio.timeout(policy.timeout_seconds):
                body = bytes(await filesystem._cat_file(path, start=span.address, end=span.end))
        except Exception as error:
            if attempt == policy.attempts or not may_pass(error):
                raise FetchError(span, error) from None
            await asyncio.sleep(_FIRST_PAUSE_SECONDS * 4 ** (attempt - 1))
        else:
            log.nbytes += len(body)
            return body
    raise AssertionError("the last attempt returns or raises")
