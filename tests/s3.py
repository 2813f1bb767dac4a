"""An S3 server on a free loopback port, for the duration of a `with` block."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from io import StringIO
from typing import Any

with suppress(ImportError):
    # Clients of one process share what botocore knows of S3. Else each one reads and parses it again, 0.1 s each time.
    from botocore import session

    session.create_loader = cache(session.create_loader)

KEYS = {"key": "test", "secret": "test"}


@contextmanager
def s3_server() -> Iterator[dict[str, Any]]:
    """Start a server without buckets; yield the storage options with which s3fs reaches it."""
    from moto.server import ThreadedMotoServer  # not at the top: most tests need no server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    with redirect_stdout(StringIO()):
        server.start()
    host, port = server.get_host_and_port()
    try:
        yield {"endpoint_url": f"http://{host}:{port}", **KEYS}
    finally:
        server.stop()
