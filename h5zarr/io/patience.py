"""Call methods of fsspec file systems that list or write, and give up if the server does not answer in time.

Listing a large bucket takes many requests, so the time starts again with every response. Without this limit, a server
that hangs costs the time of the client library: botocore repeats a request five times and waits a minute each time.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_SLOWEST_BYTES_PER_SECOND = 1_000_000  # an upload gets this much more time, because its only response comes at its end


def patience(timeout_seconds: float, nbytes: int = 0) -> float:
    """Return how many seconds a server may take for its next response while `nbytes` bytes are uploaded."""
    return timeout_seconds + nbytes // _SLOWEST_BYTES_PER_SECOND


def call_patiently(filesystem: Any, method: str, *arguments: Any, seconds: float, **options: Any) -> Any:
    """Return the result of a method of a file system. Raises TimeoutError after `seconds` without a response.

    File systems without coroutines have their own time limits instead.
    """
    call = getattr(filesystem, f"_{method}", None) if filesystem.async_impl else None
    if not inspect.iscoroutinefunction(call):
        return getattr(filesystem, method)(*arguments, **options)
    # Not at the top: writing to a local file needs neither.
    import asyncio

    from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

    async def act() -> Any:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(seconds) as clock:

            def note_response(**_: Any) -> None:
                if not clock.expired():
                    clock.reschedule(loop.time() + seconds)

            if (client := await _find_s3_client(filesystem, arguments)) is None:
                return await _Noted(call(*arguments, **options), note_response)
            async with _noting(client, note_response):
                return await call(*arguments, **options)

    return sync(filesystem.loop, act)


def finish_within(act: Callable[[], T], seconds: float) -> T:
    """Return the result of `act`, which another thread runs. Raises TimeoutError if it takes longer.

    For libraries that wait without a limit and cannot be interrupted. The thread is left behind, and ends with the
    process.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(act())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="h5zarr-waiting", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


async def _find_s3_client(filesystem: Any, arguments: tuple[Any, ...]) -> Any:
    """Return botocore's client for the bucket in the last path among `arguments`; None for other file systems."""
    if not any(kind.__name__ == "S3FileSystem" for kind in type(filesystem).__mro__):
        return None
    await filesystem.set_session()
    paths = [path for argument in arguments for path in (argument if isinstance(argument, dict) else [argument])]
    return await filesystem.get_s3(filesystem.split_path([path for path in paths if isinstance(path, str)][-1])[0])


@asynccontextmanager
async def _noting(client: Any, note_response: Callable[..., None]) -> AsyncIterator[None]:
    """Have a client of botocore call `note_response` after every response. Its own retries are not responses."""
    client.meta.events.register("after-call.s3", note_response)
    try:
        yield
    finally:
        client.meta.events.unregister("after-call.s3", note_response)


class _Noted:
    """A coroutine that calls `note_progress` whenever what it waits for has happened."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], note_progress: Callable[[], None]) -> None:
        self._coroutine = coroutine
        self._note_progress = note_progress

    def __await__(self) -> Generator[Any, Any, Any]:
        waiting = self._coroutine.__await__()
        try:
            awaited = next(waiting)
            while True:
                try:
                    sent = yield awaited
                except BaseException as error:
                    awaited = waiting.throw(error)
                else:
                    self._note_progress()
                    awaited = waiting.send(sent)
        except StopIteration as finished:
            return finished.value
