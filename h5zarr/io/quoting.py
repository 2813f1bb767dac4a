"""URLs as they are sent: what a server gets, and what fsspec is given, for each way to write the same URL."""

from __future__ import annotations

import os
import re

from h5zarr.errors import SourceError
from h5zarr.io.grammar import PROTOCOL, grammar_of, split_chain
from h5zarr.io.url import display_url, find_local_path, has_two_readings

_PARTS = re.compile(r"([^:]+://)([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
# What may stand in a path or query as it is; RFC 3986, 3.3 and 3.4. All else is escaped.
_PATH = "/:@!$&'()*+,;=~"
_QUERY = _PATH + "?"
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")
# fsspec's file system for HTTP undoes these escapes, but for `encoded=True`: the server gets another URL. In a path it
# undoes others, too, which no server tells from the characters themselves; but a ";" begins parameters for some.
_UNDONE_IN_PATH = re.compile(r"%3[Bb]")
_UNDONE_IN_QUERY = re.compile(r"%(?:2[14789ACFacf]|3[AFaf]|40)")


class UnclearURL(SourceError):
    """A URL can be read in two ways, or fsspec would read it in another way than it is meant."""


def settle_url(url: str) -> str:
    """Return a URL, or a chain of them, that fsspec takes for what it means: escaped where it goes to a web server, and
    with the path of a local file in the place of a file:// URL.

    Raises UnclearURL where that cannot be done.
    """
    links = split_chain(url)
    if len(links) == 1:
        return settle_link(url)
    if len(links) < len(url.split("::")):
        what = 'the name of a file in a chain of URLs has "::" in it, which cannot be told from the next link'
        raise UnclearURL(f"{display_url(url)}: {what}", remedy="Rename that file, or copy it.")
    return "::".join([*map(settle_link, links[:-1]), _settle_last(links[-1])])


def _settle_last(link: str) -> str:
    """Return the last link of a chain, which may be a local file: that is an absolute path then."""
    path = find_local_path(link)
    return settle_link(link) if path is None else os.path.abspath(path)


def settle_link(link: str) -> str:
    """Return one link of a URL as fsspec should get it: its protocol in small letters, and escaped for a web server.

    "%" with two hexadecimal digits is an escape already and stays; every other character that may not stand in a URL is
    escaped as UTF-8. The rest is sent as it is. Raises UnclearURL for a "#", since nothing behind it would be sent.
    """
    if not (beginning := PROTOCOL.match(link)):
        return link
    link = link[: beginning.end()].lower() + link[beginning.end() :]
    if not grammar_of(link).is_quoted:
        return link
    match = _PARTS.fullmatch(link)
    assert match is not None
    scheme, host, path, query, fragment = match.groups(default="")
    if fragment:
        raise UnclearURL(
            f'{display_url(link)}: there is a "#" in the URL, and what follows it is not sent to a server',
            remedy='Write %23 for a "#" that is in the name of the file. If it is no part of the name, leave it out.',
        )
    query = "" if query == "?" else _escape(query, _QUERY)  # a "?" alone is not sent
    return scheme + _encode_host(host, link) + (_remove_dots(_escape(path, _PATH)) or "/") + query


def find_one_path(url: str) -> str | None:
    """Return the local path that `url` names, or None. Raises UnclearURL for a file:// URL that names two files."""
    if has_two_readings(url):
        what = "there is a file of this name, and another one of the name that the percent signs stand for"
        raise UnclearURL(f"{display_url(url)}: {what}", remedy="Give the path instead of a URL.")
    return find_local_path(url)


def quote_name(name: str, beside: str) -> str:
    """Return the name of a file as it stands in a URL like `beside`: all that has a meaning in URLs is escaped."""
    if not grammar_of(beside).is_quoted:
        return name
    from urllib.parse import quote  # needed by few, and start-up time is paid by all

    return quote(name, safe="/~!$&'()*+,;=@", errors="surrogateescape")


def is_rewritten(url: str) -> bool:
    """Return whether fsspec's file system for HTTP, without options, asks for another URL than this escaped one."""
    if not PROTOCOL.match(url) or not grammar_of(url).is_quoted:
        return False
    path, _, query = url.partition("?")
    return _UNDONE_IN_PATH.search(path) is not None or _UNDONE_IN_QUERY.search(query) is not None


def _escape(text: str, legal: str) -> str:
    from urllib.parse import quote

    parts = _ESCAPE.split(text)  # escapes have odd numbers
    return "".join(
        part if number % 2 else quote(part, safe=legal, errors="surrogateescape") for number, part in enumerate(parts)
    )


def _encode_host(host: str, url: str) -> str:
    """Return the host as it is looked up: in ASCII, whatever script it is written in."""
    if host.isascii():
        return host
    user, mark, name = host.rpartition("@")
    try:
        return _escape(user, ":!$&'()*+,;=~") + mark + name.encode("idna").decode()
    except UnicodeError:
        raise UnclearURL(f"{display_url(url)}: this is no name of a server", remedy="Check the URL.") from None


def _remove_dots(path: str) -> str:
    """Return a path without "." and "..", as every client sends it; RFC 3986, 5.2.4."""
    if not _DOTS.search(path):
        return path
    parts: list[str] = []
    segments = path.split("/")[1:]
    for number, part in enumerate(segments):
        is_last = number == len(segments) - 1
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ".."):
            parts.append(part)
        if part in (".", "..") and is_last:
            parts.append("")
    return "/" + "/".join(parts)
