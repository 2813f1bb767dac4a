"""A server of byte ranges with a known latency and bandwidth, which counts what it is asked.

    python benchmarks/range_server.py DIRECTORY [--latency SECONDS] [--bandwidth BYTES_A_SECOND] [--port PORT]

It listens on the loopback only, prints its port, and ends when standard input is closed. Every request waits for the
latency; all responses share a pipe of the bandwidth. `GET /-/counts` tells the counts, `POST /-/reset` clears them, and
`POST /-/network?latency=S&bandwidth=B` sets both anew; none of these is counted or delayed.

It speaks just enough of HTTP/1.1, by itself: a small answer takes 0.1 ms, where one by a library's server took 0.24.
Servers of objects are many; whoever asks this one for hundreds of ranges at once should not wait for its processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

PIECE_NBYTES = 256 * 1024
MAX_CREDIT_SECONDS = 0.05
_RANGE = re.compile(rb"\r\nrange: *bytes=(\d*)-(\d*)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


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


class File(NamedTuple):
    """A file that is served, which stays open."""

    number: int
    nbytes: int
    etag: str


class Asked(NamedTuple):
    """A request: its method and target, and its whole head."""

    method: str
    target: str
    head: bytes


class Connection(asyncio.Protocol):
    """A client, who sends one request after the other."""

    def __init__(self, server: RangeServer) -> None:
        self._server = server
        self._received = b""
        self._task: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._task is not None:  # whoever asked may have been stopped
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head, self._received = self._received[:end], self._received[end + 4 :]
            method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
            self._task = asyncio.create_task(self._answer(Asked(method, target, head)))

    async def _answer(self, asked: Asked) -> None:
        await self._server.answer(asked, self.transport)
        if _CLOSE.search(asked.head):
            self.transport.close()


class RangeServer:
    """Serves the files of one directory."""

    def __init__(self, directory: Path, latency: float, bandwidth: float) -> None:
        self._directory = directory
        self._latency = latency
        self._pipe = Pipe(bandwidth)
        self._files: dict[str, File] = {}
        self.counts = Counts()

    async def answer(self, asked: Asked, out: asyncio.Transport) -> None:
        """Answer a request."""
        if asked.target.startswith("/-/"):
            out.write(_head("200 OK", body := self._control(asked.target)) + body)
            return
        counts = self.counts
        counts.requests += 1
        counts.heads += asked.method == "HEAD"
        counts.waits += counts.in_flight == 0
        counts.in_flight += 1
        counts.max_in_flight = max(counts.max_in_flight, counts.in_flight)
        try:
            await asyncio.sleep(self._latency)
            await self._respond(asked, out)
        finally:
            counts.in_flight -= 1

    def _control(self, target: str) -> bytes:
        url = urlsplit(target)
        if url.path == "/-/reset":
            # What is still under way was asked for by somebody who has been stopped.
            self.counts = Counts()
        elif url.path == "/-/network":
            given = parse_qs(url.query)
            self._latency = float(given["latency"][0])
            self._pipe = Pipe(float(given["bandwidth"][0]))
        return json.dumps(asdict(self.counts)).encode()

    def _open(self, target: str) -> File | None:
        """Return a file of the directory itself; it is looked at once."""
        if target not in self._files:
            path = self._directory / Path(unquote(target)).name
            if not path.is_file():
                return None
            number = os.open(path, os.O_RDONLY)
            stated = os.fstat(number)
            self._files[target] = File(number, stated.st_size, f'"{stated.st_size:x}-{stated.st_mtime_ns:x}"')
        return self._files[target]

    async def _respond(self, asked: Asked, out: asyncio.Transport) -> None:
        if (file := self._open(asked.target)) is None:
            out.write(_head("404 Not Found"))
            return
        headers = f"Accept-Ranges: bytes\r\nETag: {file.etag}\r\n"
        wanted, status = range(file.nbytes), "200 OK"
        if found := _RANGE.search(asked.head):
            wanted, status = _cut(file.nbytes, found[1], found[2]), "206 Partial Content"
            if not wanted:
                out.write(_head("416 Range Not Satisfiable", headers=f"Content-Range: bytes */{file.nbytes}\r\n"))
                return
            headers += f"Content-Range: bytes {wanted.start}-{wanted.stop - 1}/{file.nbytes}\r\n"
        out.write(_head(status, wanted, headers))
        if asked.method == "HEAD":
            return
        self._pipe.begin()
        for start in range(wanted.start, wanted.stop, PIECE_NBYTES):
            piece = os.pread(file.number, min(PIECE_NBYTES, wanted.stop - start), start)
            await self._pipe.send(len(piece))
            self.counts.nbytes += len(piece)
            out.write(piece)


def _cut(nbytes: int, first: bytes, last: bytes) -> range:
    """Return the part of a file that a header asks for. RFC 9110, 14.1.2."""
    if not first:
        return range(nbytes)[-int(last or 0) or nbytes :]
    return range(nbytes)[int(first) : int(last) + 1 if last else nbytes]


def _head(status: str, body: Sized = b"", headers: str = "") -> bytes:
    """Return the head of an answer with such a body."""
    about = f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n"
    return f"HTTP/1.1 {status}\r\n{about}{headers}\r\n".encode("latin-1")


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
    listening = await asyncio.get_running_loop().create_server(lambda: Connection(server), "127.0.0.1", port)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    listening.close()


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
