"""Read chunks of files that fsspec opens: few requests, many in flight, each decoded while others arrive."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, NamedTuple, TypeVar

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.errors import SourceChanged
from h5zarr.io.access import Access
from h5zarr.io.failure import (
    NO_SIZE,
    SHRUNK,
    FetchError,
    ShortBody,
    advising_readers,
    describe_failure,
    or_source_error,
    source_error,
)
from h5zarr.io.fetch import Watch, fetch, fetch_one_by_one, fetch_whole
from h5zarr.io.filesystems import find_filesystem
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.network import MIB
from h5zarr.io.plan import Request, plan_requests
from h5zarr.io.ranges import Column, Deliver
from h5zarr.io.responses import Condition, Response, find_condition, interpret_identity, states_identity
from h5zarr.io.sharing import MOST_REQUESTS
from h5zarr.io.source import Identity
from h5zarr.io.span import Span
from h5zarr.io.threads import decoding_threads
from h5zarr.io.unchanged import check_unchanged, source_changed

# Limit of the bytes in flight and not yet decoded; at least LEAST_WORKERS requests are always allowed. More is slower:
# requests that are sent together arrive together, and then the network is idle until the next ones begin to arrive.
# Reading 252 MB in requests of 4 MiB took 2.60 s with 8 in flight, 2.64 s with 16, and 2.75 s with 32. The optimum for
# that network is 2.58 s.
IN_FLIGHT_NBYTES = 32 * MIB
LEAST_WORKERS = 8
_SHORT_NBYTES = 16 << 10


T = TypeVar("T")


class _Opened(NamedTuple):
    filesystem: Any
    path: str
    process: int
    condition: Condition

    @property
    def asynchronous(self) -> bool:
        return bool(self.filesystem.async_impl)


class Turn(NamedTuple):
    """A request of `nbytes` bytes, which `take` sends."""

    nbytes: int
    take: Callable[[], Awaitable[None]]


class RemoteRanges:
    """A file that fsspec opens."""

    is_fast = False

    def __init__(self, location: Location, access: Access, expected: Identity | None) -> None:
        self.url = str(location)
        self.log = RequestLog()
        self._url = location.for_fsspec()
        self._options = access.options_for(location)
        self._network = access.network
        self._expected = expected
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._verified = expected is None
        self._nbytes: int | None = None
        self._is_sized = False

    @advising_readers()
    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        self._check_end(address, nbytes)
        delivery, plan = self._plan(address, nbytes, deliver)
        if not plan:
            return
        opened = self._open()
        try:
            return (self._run if opened.asynchronous else self._read_in_turn)(opened, plan, delivery)
        except FetchError as failed:  # exceptions that `deliver` raises are passed on
            failure, span = describe_failure(failed.error, self._network.timeout_seconds), failed.span
        raise source_error(self.url, failure, span)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the file system; None if it has none."""
        opened = self._open()
        return opened.filesystem.loop if opened.asynchronous else None

    @property
    def most_requests(self) -> int:
        """How many requests for this and other files may be in flight at once."""
        return MOST_REQUESTS if self._network.concurrency is None else self._network.concurrency

    @advising_readers()
    def turns(self, address: Column, nbytes: Column, deliver: Deliver) -> list[Turn]:
        """Return the requests of `read`, to be sent in the event loop, among those for other files."""
        self._check_end(address, nbytes)
        delivery, plan = self._plan(address, nbytes, deliver)
        opened, left = self._open(), len(plan)

        async def take(request: Request) -> None:
            nonlocal left
            with advising_readers():
                failed = await self._take(opened, request, delivery)
                left -= 1
                if failed is not None or not left:
                    await self._verify(opened)
                if failed is not None:
                    failure = describe_failure(failed.error, self._network.timeout_seconds)
                    raise source_error(self.url, failure, failed.span)

        return [Turn(request.span.nbytes, partial(take, request)) for request in plan]

    async def _take(self, opened: _Opened, request: Request, delivery: _Delivery) -> FetchError | None:
        """Fetch and deliver a request. Return why that failed, if it did."""
        try:
            body = await self._fetch(opened, request.span)
        except FetchError as error:
            return error
        await _decode(delivery, request, body)
        return None

    def _check_end(self, address: Column, nbytes: Column) -> None:
        if self._expected is not None:
            self._check_inside(Span(0, int((address + nbytes).max(initial=0))), self._expected.nbytes)

    def _plan(self, address: Column, nbytes: Column, deliver: Deliver) -> tuple[_Delivery, list[Request]]:
        """Return the requests, and what delivers their bytes. Empty ranges are delivered now."""
        if empty := [number for number, count in enumerate(nbytes.tolist()) if count == 0]:
            deliver(empty, [memoryview(b"")] * len(empty))
        return _Delivery(address, nbytes, deliver), plan_requests(address, nbytes, self._network)

    @advising_readers()
    def read_whole(self) -> bytes:
        opened = self._open()
        return self._translate_errors(lambda: fetch_whole(opened.filesystem, opened.path, self._network, self.log))

    def read_into(self, span: Span, out: memoryview) -> bool:
        return False

    def close(self) -> None:
        """Release the file system. It closes its connections when its last user releases it."""
        with self._lock:
            self._opened = None

    def _open(self) -> _Opened:
        with self._lock:
            if self._opened is None or self._opened.process != os.getpid():
                self._opened = self._translate_errors(self._find)
            return self._opened

    def _find(self) -> _Opened:
        filesystem, path = find_filesystem(self._url, self._options)
        return _Opened(filesystem, path, os.getpid(), find_condition(filesystem, path, self._expected))

    def _translate_errors(self, act: Callable[[], T]) -> T:
        """Return the result of `act`. Its exceptions become SourceError."""
        return or_source_error(self.url, self._network.timeout_seconds, act)

    @property
    @advising_readers()
    def nbytes(self) -> int:
        """The size of the file. Takes a request."""
        opened = self._open()
        if opened.asynchronous:
            size = sync(opened.filesystem.loop, self._ask, opened).get("size")
        else:
            self.log.infos += 1
            size = self._translate_errors(lambda: opened.filesystem.info(opened.path).get("size"))
        if size is None:
            raise source_error(self.url, NO_SIZE)
        return int(size)

    def _run(self, opened: _Opened, plan: list[Request], delivery: _Delivery) -> None:
        """Read in the event loop of the file system. Ctrl-C cancels the requests in flight."""
        tasks: list[asyncio.Task[Any] | None] = []

        async def read() -> None:
            tasks.append(asyncio.current_task())
            await self._read_in_parallel(opened, plan, delivery)

        try:
            sync(opened.filesystem.loop, read)
        except (KeyboardInterrupt, SystemExit):
            for task in filter(None, tasks):
                opened.filesystem.loop.call_soon_threadsafe(task.cancel)
            raise

    async def _read_in_parallel(self, opened: _Opened, plan: list[Request], delivery: _Delivery) -> None:
        """Read with as many workers as are useful. The first failure cancels all of them."""
        largest = max(request.span.nbytes for request in plan)
        count = min(self._network.chunk_concurrency, len(plan), max(LEAST_WORKERS, IN_FLIGHT_NBYTES // largest))
        remaining = iter(plan)
        tasks = [asyncio.create_task(self._work(opened, remaining, delivery)) for _ in range(count)]
        if not states_identity(opened.filesystem):
            tasks.append(asyncio.create_task(self._verify(opened)))
        failed: FetchError | None = None
        try:
            await asyncio.gather(*tasks)
        except FetchError as error:
            failed = error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._verify(opened)  # if the file has changed, SourceChanged explains the failure better
        if failed is not None:
            raise failed

    async def _work(self, opened: _Opened, remaining: Any, delivery: _Delivery) -> None:
        """Fetch the remaining requests one by one. Each response is decoded before the next request is sent."""
        for request in remaining:
            body = await self._fetch(opened, request.span)
            await asyncio.get_running_loop().run_in_executor(decoding_threads(), delivery.deliver, request, body)

    async def _fetch(self, opened: _Opened, span: Span) -> memoryview:
        """Return the bytes of `span`. A span much larger than a request is fetched in parallel pieces."""
        step = self._network.chunk_request_nbytes
        if span.nbytes < 2 * step:
            return await self._fetch_piece(opened, span)
        if self._expected is None and span.nbytes > IN_FLIGHT_NBYTES:
            # Check before allocating memory: sizes in references are untrusted.
            self._check_inside(span, await self._ask_nbytes(opened))
        pieces = [Span(at, min(step, span.end - at)) for at in range(span.address, span.end, step)]
        whole = memoryview(bytearray(span.nbytes))
        limit = asyncio.Semaphore(self._network.chunk_concurrency)

        async def fetch_into_place(piece: Span) -> None:
            async with limit:
                begin = piece.address - span.address
                whole[begin : begin + piece.nbytes] = await self._fetch_piece(opened, piece)

        tasks = [asyncio.create_task(fetch_into_place(piece)) for piece in pieces]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return whole

    async def _ask_nbytes(self, opened: _Opened) -> int | None:
        """Return the size of the file, or None if the server does not state it. Takes a request the first time."""
        if not self._is_sized:
            stated = await self._ask(opened)
            self._nbytes, self._is_sized = stated.get("size"), True
        return self._nbytes

    def _check_inside(self, span: Span, nbytes: int | None) -> None:
        if nbytes is not None and span.end > nbytes:
            raise source_error(self.url, SHRUNK, span)

    async def _fetch_piece(self, opened: _Opened, span: Span) -> memoryview:
        watch = Watch(self._check_response, opened.condition, self._changed)
        body = await fetch(opened.filesystem, opened.path, span, self._network, self.log, watch)
        return self._cut(memoryview(body), span)

    def _cut(self, body: memoryview, span: Span) -> memoryview:
        """Return the bytes of `span`. If a server ignores ranges and sends the whole file, cut them out of it."""
        if len(body) == span.nbytes:
            return body
        if self._expected is not None and len(body) == self._expected.nbytes:
            return body[span.address : span.end]
        raise FetchError(span, ShortBody(len(body), span.nbytes))

    async def _verify(self, opened: _Opened) -> None:
        """Check that the file is unchanged, unless a response has shown it. Reads return only after this check."""
        if self._verified or self._expected is None:
            return
        self._check(await self._ask(opened))

    async def _ask(self, opened: _Opened) -> Mapping[str, Any]:
        """Return the file system's information about the file."""
        self.log.infos += 1
        try:
            async with asyncio.timeout(self._network.timeout_seconds):
                stated: Mapping[str, Any] = await opened.filesystem._info(opened.path)
                return stated
        except Exception as error:
            failure = describe_failure(error, self._network.timeout_seconds)
        raise source_error(self.url, failure)

    def _check_response(self, response: Response) -> None:
        if response.stated.get("size") is not None:
            self._check(response.stated)

    def _changed(self, what: str) -> SourceChanged:
        return source_changed(self.url, what)

    def _check(self, stated: Mapping[str, Any]) -> None:
        if self._expected is not None and stated.get("size") is not None:
            check_unchanged(self.url, self._expected, interpret_identity(stated))
        self._verified = True

    def _read_in_turn(self, opened: _Opened, plan: list[Request], delivery: _Delivery) -> None:
        """Read one request after the other, and decode in other threads meanwhile."""
        if not self._verified:
            self.log.infos += 1
            self._check(self._translate_errors(lambda: opened.filesystem.info(opened.path)))
        futures: list[Future[None]] = []
        spans = [request.span for request in plan]
        try:
            bodies = fetch_one_by_one(opened.filesystem, opened.path, spans, self.log)
            for request, body in zip(plan, bodies, strict=True):
                view = self._cut(memoryview(body), request.span)
                futures.append(decoding_threads().submit(delivery.deliver, request, view))
            for future in futures:
                future.result()
        finally:
            for future in futures:
                future.cancel()
            wait(futures)


async def _decode(delivery: _Delivery, request: Request, body: memoryview) -> None:
    """Deliver a response: in this thread if it is so short that handing it over would take longer."""
    if len(body) <= _SHORT_NBYTES:
        delivery.deliver(request, body)
    else:
        await asyncio.get_running_loop().run_in_executor(decoding_threads(), delivery.deliver, request, body)


class _Delivery:
    """Splits the body of a request into its spans and delivers them."""

    def __init__(self, address: Column, nbytes: Column, deliver: Deliver) -> None:
        self._address, self._nbytes, self._deliver = address, nbytes, deliver

    def deliver(self, request: Request, body: memoryview) -> None:
        begins = self._address[request.numbers] - request.span.address
        ends = begins + self._nbytes[request.numbers]
        buffers = [body[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        self._deliver(request.numbers.tolist(), buffers)
