"""An HTTP server for tests. It serves byte ranges, on request slowly or wrongly, and counts requests."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

LAST_MODIFIED = "Wed, 01 Jan 2020 12:00:00 GMT"
ETAG = '"abc123"'


@dataclass(kw_only=True)
class Faults:
    """Faults of the server. GET requests are counted from 1, over all files."""

    statuses: Mapping[int, int] = field(default_factory=dict)
    """The nth GET is answered with this status."""
    every: int | None = None
    """Every request of any method is answered with this status."""
    short: frozenset[int] = frozenset()
    """The nth GET is answered with half of the range, and states that."""
    cut: frozenset[int] = frozenset()
    """The nth GET announces everything, sends half, and closes the connection."""
    hang: frozenset[int] = frozenset()
    """The nth GET is not answered."""
    trickle: frozenset[int] = frozenset()
    """The nth GET is answered at once, but its last byte comes `trickle_seconds` later."""
    etags: Mapping[int, str] = field(default_factory=dict)
    """The nth GET is answered with this ETag."""
    shifted: frozenset[int] = frozenset()
    """The nth GET is answered with a range one byte later, and states that."""
    hide_total: bool = False
    """Responses with a range do not state the size of the file."""
    vanish_after: int | None = None
    """After this many GETs there is no such file."""
    ignore_range: bool = False
    """Every GET is answered with the whole file."""
    hide_size: bool = False
    """No response states the size of the file."""
    ignore_condition: bool = False
    """Conditions are ignored."""


@dataclass
class Counts:
    """The requests to the server. `gets` has the requested ranges, first and last byte, in order of arrival.

    `headers` has the headers of all requests, with names in lower case. `urls` has their paths and queries.
    """

    heads: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    gets: list[tuple[int, int]] = field(default_factory=list)
    nbytes: int = 0
    in_flight: int = 0
    max_in_flight: int = 0


class RangeServer:
    """A server on a free loopback port, in its own thread, for the duration of a `with` block.

    It is also a read-only object store: S3 objects are at /bucket/key, Azure's at
    /account/container/blob, Google's at /download/storage/v1/b/bucket/o/key. `headers` are added to all responses.
    Conditions are respected: the header If-Match, and Google's parameter ifGenerationMatch.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        *,
        latency: float = 0.0,
        faults: Faults | None = None,
        is_literal: bool = False,
    ) -> None:
        """With `is_literal`, files are found by the literal request target with its query, else by the decoded path."""
        self.files = dict(files)
        self.headers: dict[str, str] = {}
        self.is_literal = is_literal
        self.latency = latency
        self.faults = faults or Faults()
        self.counts = Counts()
        self.etag = ETAG
        self.trickle_seconds = 0.0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="range-server", daemon=True)

    def url(self, path: str) -> str:
        """Return the URL of the file at `path`, which begins with a slash."""
        return f"http://127.0.0.1:{self.port}{path}"

    def set_faults(self, faults: Faults) -> None:
        """Use `faults` from now on, and count GETs from 1 again.

        Call it while no request is in flight, and not after a failed read: its abandoned requests may still
        arrive, and would be counted.
        """
        self.faults, self.counts.gets = faults, []

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        application = web.Application(middlewares=[self._record])
        application.router.add_get("/{path:(?s:.*)}", self._get, allow_head=False)
        application.router.add_head("/{path:(?s:.*)}", self._head)
        self._stopping = asyncio.Event()
        application.on_shutdown.append(self._stop_hanging)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    @web.middleware
    async def _record(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.counts.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.counts.urls.append(request.path_qs)
        if self.faults.every is not None:
            return web.Response(status=self.faults.every)
        answer: web.StreamResponse = await handler(request)
        return answer

    def _name(self, request: web.Request) -> str:
        return request.raw_path if self.is_literal else request.path

    async def _stop_hanging(self, application: web.Application) -> None:
        self._stopping.set()

    async def _head(self, request: web.Request) -> web.StreamResponse:
        self.counts.heads += 1
        await asyncio.sleep(self.latency)
        body = self.files.get(self._name(request))
        if body is None:
            return web.Response(status=404)
        headers = {"ETag": self.etag, "Last-Modified": LAST_MODIFIED, "Accept-Ranges": "bytes", **self.headers}
        if not self.faults.hide_size:
            headers["Content-Length"] = str(len(body))
        return web.Response(headers=headers)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        counts = self.counts
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        try:
            return await self._answer(request)
        finally:
            counts.in_flight -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = self._name(request)
        faults, body = self.faults, self.files.get(name, b"")
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("x-ms-range", request.headers.get("Range", "")))
        first = int(match[1]) if match else 0
        last = min(int(match[2]) if match and match[2] else len(body) - 1, len(body) - 1)
        self.counts.gets.append((first, last))
        number = len(self.counts.gets)
        await asyncio.sleep(self.latency)
        if number in faults.hang:
            await self._stopping.wait()
        if name not in self.files or (faults.vanish_after is not None and number > faults.vanish_after):
            return web.Response(status=404)
        if number in faults.statuses:
            return web.Response(status=faults.statuses[number])
        etag = faults.etags.get(number, self.etag)
        if not faults.ignore_condition and not self._is_met(request, etag):
            return web.Response(status=412, headers={"x-ms-error-code": "ConditionNotMet"})
        if first >= len(body):
            return web.Response(status=416)
        whole = faults.ignore_range or match is None
        part = body if whole else body[first : last + 1]
        if number in faults.short:
            part = part[: len(part) // 2]
        if number in faults.cut or faults.hide_size:
            return await self._send_strangely(request, part)
        if number in faults.shifted:
            first, last, part = first + 1, last + 1, body[first + 1 : last + 2]
        self.counts.nbytes += len(part)
        total = "*" if faults.hide_total else len(body)
        headers = {"ETag": etag, "Last-Modified": LAST_MODIFIED, **self.headers}
        if not whole:
            headers["Content-Range"] = f"bytes {first}-{last}/{total}"
        if number in faults.trickle:
            return await self._trickle(request, part, headers, 200 if whole else 206)
        return web.Response(body=part, headers=headers, status=200 if whole else 206)

    async def _trickle(
        self, request: web.Request, part: bytes, headers: dict[str, str], status: int
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(part))})
        await response.prepare(request)
        await response.write(part[:-1])
        await asyncio.sleep(self.trickle_seconds)
        await response.write(part[-1:])
        return response

    def _is_met(self, request: web.Request, etag: str) -> bool:
        """Return whether the file meets the condition of a request. A weak ETag never matches: RFC 9110, 13.1.1."""
        wanted = request.headers.get("If-Match", "*")
        generation = request.query.get("ifGenerationMatch")
        is_current = generation is None or generation == self.headers.get("x-goog-generation")
        return is_current and (wanted == "*" or (wanted == etag and not etag.startswith("W/")))

    async def _send_strangely(self, request: web.Request, part: bytes) -> web.StreamResponse:
        """Send `part` without its size, or with its size but only half of it."""
        response = web.StreamResponse(status=200 if self.faults.hide_size else 206)
        if self.faults.hide_size:
            response.enable_chunked_encoding()
            await response.prepare(request)
            await response.write(part)
            await response.write_eof()
            return response
        response.content_length = len(part)
        await response.prepare(request)
        await response.write(part[: len(part) // 2])
        assert request.transport is not None
        request.transport.close()
        return response


def is_closed_soon(session: Any) -> bool:
    """Return whether an aiohttp session is closed, after the event loop has released its last task."""
    for _ in range(100):
        gc.collect()
        if session.closed:
            return True
        time.sleep(0.02)
    return False


class SilentServer:
    """A server on a free loopback port that accepts connections and never answers, for the duration of a `with` block.

    `connection_count` is the number of connections so far.
    """

    def __init__(self) -> None:
        self.connection_count = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._accepted: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, name="silent-server", daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # ends `accept`
        self._thread.join(10)
        for one in (self._listening, *self._accepted):
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._accepted.append(self._listening.accept()[0])
                self.connection_count += 1
