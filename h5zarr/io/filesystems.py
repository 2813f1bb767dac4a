"""File systems of fsspec that belong to h5zarr, so that it can close their connections; one for all files alike."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import fsspec  # type: ignore[import-untyped, unused-ignore]

_lock = threading.Lock()
_filesystems: WeakValueDictionary[Any, Any] = WeakValueDictionary()


def find_filesystem(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """Return a file system, and the path of `url` in it. Connections are closed when nobody has it any more.

    It is shared by all who ask with the same options in the same process, but not with others that use fsspec.
    """
    options = complete_options(url, storage_options)
    if "::" in url:
        # A chain with a cache in it claims to be asynchronous, but then goes past the cache.
        filesystem, path = fsspec.url_to_fs(url, **options)
        return Synchronous(filesystem), path
    kind = fsspec.get_filesystem_class(fsspec.core.split_protocol(url)[0] or "file")
    options = {**kind._get_kwargs_from_urls(url), **options}
    key = (os.getpid(), kind, repr(sorted(options.items())))
    with _lock:
        filesystem = _filesystems.get(key)
        if filesystem is None:
            filesystem = kind(**options, skip_instance_cache=True)
            _filesystems[key] = filesystem
    return filesystem, kind._strip_protocol(url)


class Synchronous:
    """A file system that is only to be used in the synchronous way."""

    async_impl = False

    def __init__(self, filesystem: Any) -> None:
        self.info, self.open = filesystem.info, filesystem.open


def complete_options(url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options for fsspec. Over HTTP, compression is declined: it would change what a range means."""
    options = dict(storage_options or {})
    if url.startswith(("http://", "https://")) and "::" not in url:
        options["headers"] = {"Accept-Encoding": "identity", **options.get("headers", {})}
    return options


def _forget() -> None:
    """A child process makes its own: connections stay with the parent."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
