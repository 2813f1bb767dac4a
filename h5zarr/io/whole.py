"""Files read whole, with one request, whose size need not be known."""

from __future__ import annotations

import asyncio
from typing import Any

from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

from h5zarr.io.fetch import Patience, retry
from h5zarr.io.log import RequestLog


def fetch_whole(filesystem: Any, path: str, policy: Patience, log: RequestLog) -> bytes:
    """Return the content of a file, asking again after failures that may pass. Raises whatever the last one was."""
    if not filesystem.async_impl:
        with filesystem.open(path, "rb") as file:
            log.requests += 1
            return bytes(file.read())

    async def ask() -> bytes:
        async with asyncio.timeout(policy.timeout_seconds):
            return bytes(await filesystem._cat_file(path))

    content: bytes = sync(filesystem.loop, retry, ask, policy, log)
    return content
