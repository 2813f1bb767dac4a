"""What an answer says of the network: only bytes whose coming was watched tell how fast they come."""

from __future__ import annotations

import socket
import threading
import time

import fsspec  # type: ignore[import-untyped, unused-ignore]
from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.io.responses import Response, request_range
from h5zarr.io.span import Span

EARLY, LATE, PAUSE_SECONDS = 400_000, 300_000, 0.3


def answer_in_two_parts(listening: socket.socket) -> None:
    """Answer one request: send the head and most of the body at once, and the rest after a pause."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(65536)
        total = EARLY + LATE
        head = f"HTTP/1.1 206 Partial Content\r\nContent-Length: {total}\r\nContent-Range: bytes 0-{total - 1}/{total}"
        connection.sendall(f"{head}\r\n\r\n".encode() + b"e" * EARLY)
        time.sleep(PAUSE_SECONDS)
        connection.sendall(b"l" * LATE)


def test_bytes_that_came_with_the_beginning_do_not_count_as_fast() -> None:
    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=answer_in_two_parts, args=(listening,))
        server.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/file.h5"
        answer: Response = sync(filesystem.loop, request_range, filesystem, url, Span(0, EARLY + LATE), {})
        server.join()
    assert answer.body == b"e" * EARLY + b"l" * LATE
    assert answer.wait_seconds is not None
    assert answer.wait_seconds < PAUSE_SECONDS
    assert answer.rest_seconds >= 0.9 * PAUSE_SECONDS
    # Some of what was sent at once may be seen only later, but never all of it.
    assert LATE <= answer.rest_nbytes < EARLY + LATE
