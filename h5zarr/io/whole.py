"""Small files read whole, with one request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from h5zarr.io.failure import describe_failure, source_error
from h5zarr.io.fetch import retry
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.local import LocalSource
from h5zarr.io.log import RequestLog
from h5zarr.io.span import Span
from h5zarr.io.url import display_url, find_local_path


def read_whole(url: str, storage_options: Mapping[str, Any] | None = None, policy: FetchPolicy | None = None) -> bytes:
    """Return the content of the file at `url`, whose size need not be known. Raises SourceError."""
    policy = policy or FetchPolicy()
    path = find_local_path(url)
    if path is not None:
        with LocalSource(path, url=url) as source:  # for its errors
            return bytes(source.read_many([Span(0, source.nbytes)])[0]) if source.nbytes else b""
    import fsspec  # type: ignore[import-untyped, unused-ignore]
    from fsspec.asyn import sync  # type: ignore[import-untyped, unused-ignore]

    from h5zarr.io.filesystems import complete_options

    try:
        filesystem, place = fsspec.url_to_fs(url, **complete_options(url, storage_options))
        if not filesystem.async_impl or "::" in url:
            return bytes(filesystem.cat_file(place))

        async def ask() -> bytes:
            async with asyncio.timeout(policy.timeout_seconds):
                return bytes(await filesystem._cat_file(place))

        content: bytes = sync(filesystem.loop, retry, ask, policy, RequestLog())
        return content
    except Exception as error:
        raise source_error(display_url(url), describe_failure(error, policy.timeout_seconds)) from None
