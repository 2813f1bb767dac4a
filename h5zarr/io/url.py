"""URLs: which of them are local files, and how to show one without its secrets."""

from __future__ import annotations

import os
import re

from h5zarr.io.grammar import LIKE_PASSWORD, PROTOCOL, grammar_of, is_chain, split_chain, split_query, strip_user

_FILE_URL = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?|(?=/))", re.IGNORECASE)
_DRIVE_AFTER_SLASH = re.compile(r"/[A-Za-z]:[/\\]")
_LIKE_QUERY = re.compile(r"\?[\w.\-]*=.*", re.DOTALL)
_LIKE_TOKEN = re.compile(r"#[^/]*=.*", re.DOTALL)


def find_local_path(url: str) -> str | None:
    """Return the local path that `url` names, or None if it names something for fsspec.

    A path is taken as it is written. Only where no such file exists is a leading ~ expanded, or a file:// URL read
    with its percent signs decoded: both readings of "%20" are in use.
    """
    if os.path.lexists(url):
        return url
    if is_chain(url):
        return None
    if match := _FILE_URL.match(url):
        path = _path_in(url, match)
        return path if "%" not in path or os.path.lexists(path) else _decode(path)
    if PROTOCOL.match(url):
        return None
    return os.path.expanduser(url)


def has_two_readings(url: str) -> bool:
    """Return whether a file:// URL names one file as it is written, and another one with percent signs decoded."""
    match = _FILE_URL.match(url)
    if match is None or "%" not in url or os.path.lexists(url):
        return False
    path = _path_in(url, match)
    decoded = _decode(path)
    return os.path.lexists(path) and os.path.lexists(decoded) and not os.path.samefile(path, decoded)


def display_url(url: str) -> str:
    """Return `url` without what may be secret: user, password and query, in every link of a chain."""
    return "::".join(map(_display_link, split_chain(url)))


def _display_link(link: str) -> str:
    grammar = grammar_of(link)
    if grammar.query and not grammar.is_version:
        return _LIKE_TOKEN.sub("", split_query(strip_user(link))[0])
    # Here "?" and "@" are in names. But somebody may have put the query of a signed URL there, or a password.
    address, version = split_query(link)
    return _LIKE_QUERY.sub("", LIKE_PASSWORD.sub("", address, count=1)) + version.partition("&")[0]


def _path_in(url: str, beginning: re.Match[str]) -> str:
    """Return the path of a file:// URL, as it is written there."""
    path = url[beginning.end() :]
    return path[1:] if os.name == "nt" and _DRIVE_AFTER_SLASH.match(path) else path


def _decode(path: str) -> str:
    """Return a path with escapes decoded, whatever bytes they are: names need not be UTF-8."""
    from urllib.parse import unquote  # needed by few, and start-up time is paid by all

    return unquote(path, errors="surrogateescape")
