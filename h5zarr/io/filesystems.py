"""fsspec file systems. Those for reading chunks belong to h5zarr, so that it can close their connections."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import fsspec  # type: ignore[import-untyped, unused-ignore]

from h5zarr.io.protocols import grammar_of, protocol_of, require_protocols, rules_of
from h5zarr.io.sharing import MOST_REQUESTS
from h5zarr.io.urls import display_url, is_chain, split_chain, split_query

_lock = threading.Lock()
_filesystems: WeakValueDictionary[Any, Any] = WeakValueDictionary()


def shared_filesystem(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """Return fsspec's own file system for a settled URL, and the path of `url` in it.

    fsspec splits only URLs that are chains. It would otherwise split every URL that contains "::".
    """
    require_protocols(url, display_url(url))
    options = complete_options(url, storage_options)
    if is_chain(url):
        filesystem, path = fsspec.url_to_fs(url, **options)
        return filesystem, str(path)
    kind = fsspec.get_filesystem_class(protocol_of(url))
    return kind(**{**kind._get_kwargs_from_urls(url), **options}), kind._strip_protocol(url)


def find_filesystem(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """Return a file system, and the path of a settled `url` in it. The last user to release it closes its connections.

    Calls with the same options in the same process share it. Other users of fsspec do not.
    """
    require_protocols(url, display_url(url))
    options = complete_options(url, storage_options)
    if is_chain(url):
        # A chain that contains a cache claims to be asynchronous, but asynchronous reads bypass the cache.
        filesystem, path = fsspec.url_to_fs(url, **options)
        return Synchronous(filesystem), path
    kind = fsspec.get_filesystem_class(protocol_of(url))
    options = {**kind._get_kwargs_from_urls(url), **options}
    key = (os.getpid(), kind, repr(sorted(options.items())))
    with _lock:
        filesystem = _filesystems.get(key)
        if filesystem is None:
            filesystem = kind(**options, skip_instance_cache=True)
            _filesystems[key] = filesystem
    return filesystem, kind._strip_protocol(url)


class Synchronous:
    """The synchronous methods of a file system."""

    async_impl = False

    def __init__(self, filesystem: Any) -> None:
        self.info, self.open = filesystem.info, filesystem.open


def complete_options(url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options with which fsspec opens a settled URL.

    HTTP requests decline compression, which would change the meaning of ranges. The URL is already escaped, and fsspec
    must not escape it again. A version in a URL is respected.
    """
    options = dict(storage_options or {})
    links = split_chain(url)
    if len(links) == 1:
        if grammar_of(url).is_quoted:
            options["headers"] = {"Accept-Encoding": "identity", **options.get("headers", {})}
        return _with_connections(protocol_of(url), options) | _options_in(url)
    for link in links:
        if needed := _options_in(link):
            options[protocol_of(link)] = {**options.get(protocol_of(link), {}), **needed}
    return options


def _options_in(link: str) -> dict[str, Any]:
    """Return the options that fsspec needs to understand a link correctly."""
    grammar = grammar_of(link)
    if grammar.is_quoted:
        return {"encoded": True}
    return {"version_aware": True} if grammar.is_version and split_query(link)[1] else {}


def _with_connections(protocol: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that permit as many connections as there may be requests in flight."""
    if (pool := rules_of(protocol).pool_option) is None:
        return options
    name, key = pool
    stated = options.get(name, fsspec.config.conf.get(protocol, {}).get(name, {}))
    return {**options, name: {key: MOST_REQUESTS, **stated}}


def _forget() -> None:
    """Make a new lock in a child process, which must not use the parent's file systems."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
