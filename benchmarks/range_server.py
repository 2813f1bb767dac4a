"""A server of byte ranges with a known latency and bandwidth, which counts what it is asked.

    python benchmarks/range_server.py DIRECTORY [--latency SECONDS] [--bandwidth BYTES_A_SECOND] [--port PORT]

It listens on the loopback only, prints its port, and ends when standard input is closed. Every request waits for the
latency; all responses share a pipe of the bandwidth. `GET /-/counts` tells the counts, `POST /-/reset` clears them, and
`POST /-/network?latency=S&bandwidth=B` sets both anew; none of these is counted or delayed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from aiohttp import web

PIECE_NBYTES = 256 * 1024
MAX_CREDIT_SECONDS = 0.05


@dataclass(slots=True)
class Counts:
    """What was asked since the last reset. A wait begins whenever a request finds the server idle."""

    requests: int = 0
    heads: int = 0
    nbytes: int = 0
    waits: int = 0
    in_flight: int = 0
    max_in_flight: int = 0


class Pipe:
    """The bandwidth that all responses share: a piece may leave when those before it are through."""

    def __init__(self, bandwidth: float) -> None:
        self._bandwidth = bandwidth
        self._free_at = 0.0

    def begin(self) -> None:
        """Start a response: the pipe does not save up what it could have carried while nobody asked."""
        self._free_at = max(self._free_at, time.perf_counter())

    async def send(self, nbytes: int) -> None:
        """Wait until `nbytes` have passed; a late wake-up of this process is made up for by the next piece."""
        self._free_at = max(self._free_at, time.perf_counter() - MAX_CREDIT_SECONDS) + nbytes / self._bandwidth
        wait = self._free_at - time.perf_counter()
        if wait > 0.002:  # shorter sleeps are not kept; what is owed is paid with the next piece
            await asyncio.sleep(wait)


class RangeServer:
    """Serves the files of one directory."""

    def __init__(self, directory: Path, latency: float, bandwidth: float) -> None:
        self._directory = directory
        self._latency = latency
        self._pipe = Pipe(bandwidth)
        self.counts = Counts()

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/-/counts", self._tell)
        application.router.add_post("/-/reset", self._reset)
        application.router.add_post("/-/network", self._set_network)
        application.router.add_get("/{name}", self._serve)
        return application

    async def _tell(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(self.counts))

    async def _reset(self, request: web.Request) -> web.Response:
        # What is still under way was asked for by somebody who has been stopped.
        self.counts = Counts()
        return web.json_response({})

    async def _set_network(self, request: web.Request) -> web.Response:
        self._latency = float(request.query["latency"])
        self._pipe = Pipe(float(request.query["bandwidth"]))
        return web.json_response({})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        counts = self.counts
        counts.requests += 1
        counts.heads += request.method == "HEAD"
        counts.waits += counts.in_flight == 0
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        try:
            await asyncio.sleep(self._latency)
            return await self._respond(request)
        finally:
            counts.in_flight -= 1

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path = self._directory / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        nbytes = path.stat().st_size
        wanted = range(nbytes)
        try:
            wanted = range(nbytes)[request.http_range]
        except ValueError as error:
            raise web.HTTPRequestRangeNotSatisfiable from error
        partial = "Range" in request.headers
        if partial and not wanted:
            raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{nbytes}"})
        response = web.StreamResponse(status=206 if partial else 200)
        response.content_length = len(wanted)
        response.headers["Accept-Ranges"] = "bytes"
        response.headers["ETag"] = f'"{nbytes:x}-{path.stat().st_mtime_ns:x}"'
        if partial:
            response.headers["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{nbytes}"
        with suppress(ConnectionError):  # whoever asked may have been stopped
            await response.prepare(request)
            if request.method != "HEAD":
                await self._send(response, path, wanted)
            await response.write_eof()
        return response

    async def _send(self, response: web.StreamResponse, path: Path, wanted: range) -> None:
        self._pipe.begin()
        with path.open("rb", buffering=0) as file:
            for start in range(wanted.start, wanted.stop, PIECE_NBYTES):
                piece = os.pread(file.fileno(), min(PIECE_NBYTES, wanted.stop - start), start)
                await self._pipe.send(len(piece))
                self.counts.nbytes += len(piece)
                await response.write(piece)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server, as its client sees it."""

    url: str

    def counts(self) -> Counts:
        with urllib.request.urlopen(f"{self.url}/-/counts") as response:
            return Counts(**json.load(response))

    def reset(self) -> None:
        self._post("reset")

    def set_network(self, *, latency: float, bandwidth: float) -> None:
        self._post(f"network?latency={latency}&bandwidth={bandwidth}")

    def _post(self, what: str) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/-/{what}", method="POST")).close()


@contextmanager
def serving(directory: Path, *, latency: float, bandwidth: float) -> Iterator[Served]:
    """A server of `directory` in a process of its own, which ends with the block."""
    command = [sys.executable, __file__, str(directory), "--latency", str(latency), "--bandwidth", str(bandwidth)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Served(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


async def serve(server: RangeServer, port: int) -> None:
    """Serve until standard input is closed, so that a server never outlives the process that started it."""
    runner = web.AppRunner(server.application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve byte ranges of the files of a directory.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--latency", type=float, default=0.030)
    parser.add_argument("--bandwidth", type=float, default=100e6)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    server = RangeServer(arguments.directory, arguments.latency, arguments.bandwidth)
    asyncio.run(serve(server, arguments.port))


if __name__ == "__main__":
    main()
