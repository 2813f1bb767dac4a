"""URLs as text: their links, how to show one without its secrets, and what a server and fsspec are given.

A URL may be a chain of links, joined by "::". Nothing else in the package looks for special characters in URLs.
`Location` is what the rest of the package uses.
"""

from __future__ import annotations

import os
import re

from h5zarr.errors import SourceError
from h5zarr.io.protocols import PROTOCOL, grammar_of

_WORD = re.compile(r"[a-z][a-z0-9_]+")  # a link of a chain may be the name of a protocol alone
# Before the host; a password that should have been quoted, and is not, may have a slash or a question mark in it.
_USER_INFO = re.compile(r"(?<=://)(?:[^/?]*|[^/?#:@]*:(?!\d*(?:[/?#]|$)).*)@", re.DOTALL)
# Where no user belongs, and "@" is part of names, as that of a container: still nobody's name for a bucket.
LIKE_PASSWORD = re.compile(r"(?<=://)[^/?@]*:[^/?]*@")
_FILE_URL = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?|(?=/))", re.IGNORECASE)
_DRIVE_AFTER_SLASH = re.compile(r"/[A-Za-z]:[/\\]")
_LIKE_QUERY = re.compile(r"\?[\w.\-]*=.*", re.DOTALL)
_LIKE_TOKEN = re.compile(r"#[^/]*=.*", re.DOTALL)
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
_CACHES = re.compile(r"^(?:(?:simplecache|filecache|blockcache|cached)::)+")
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|authori[sz]ation|jwt"
    r"|^(?:sig|hmac|key|auth|pwd|code|ticket|session|se|sp|sv)$",
    re.IGNORECASE,
)


def is_chain(url: str) -> bool:
    """Return whether "::" in `url` joins links. In a path, or in the name of an object, it means itself."""
    head, mark, _ = url.partition("::")
    if not mark:
        return False
    return grammar_of(head).may_wrap if PROTOCOL.match(head) else _WORD.fullmatch(head) is not None


def split_chain(url: str) -> list[str]:
    """Return the links of a URL: one, if it is no chain."""
    links = []
    while is_chain(url):
        head, _, url = url.partition("::")
        links.append(head)
    return [*links, url]


def find_named(links: list[str]) -> int:
    """Return the number of the link that names a file: the first that is more than the name of a protocol."""
    return next((number for number, link in enumerate(links) if not _WORD.fullmatch(link)), len(links) - 1)


def split_query(link: str) -> tuple[str, str]:
    """Return one link of a URL without its query, and the query with the mark that begins it."""
    mark = grammar_of(link).query
    place = link.find(mark) if mark else -1
    return (link, "") if place < 0 else (link[:place], link[place:])


def strip_user(link: str) -> str:
    """Return one link of a URL without user and password."""
    grammar = grammar_of(link)
    if grammar.has_user:
        return _USER_INFO.sub("", link, count=1)
    return LIKE_PASSWORD.sub("", link, count=1) if grammar.is_version else link


def split_path(link: str) -> tuple[str, str]:
    """Return the protocol of one link, with the host or bucket if there is one, and the path behind it.

    The link must have a protocol, and no query. The path begins with a slash where there is a host.
    """
    match = PROTOCOL.match(link)
    assert match is not None
    end = match.end()
    if grammar_of(link).has_host:
        slash = link.find("/", end)
        end = len(link) if slash < 0 else slash
    return link[:end], link[end:]


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
    try:
        return os.path.expanduser(url)
    except ValueError:
        return url  # no user has such a name: it has a zero byte, or is no UTF-8


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


def reference_url(url: str) -> tuple[str, bool]:
    """Return the URL to write into references, and whether something that looks secret was left out of it.

    Local paths become absolute, and URLs of web servers are escaped; a cache in front of a URL is the concern of
    whoever reads. User names and passwords, and a query with a signature or a key in it, are left out.
    """
    if not os.path.lexists(url):
        url = _CACHES.sub("", url)
    if (path := find_local_path(url)) is not None:
        return os.path.abspath(path), False
    settled = settle_url(url)
    shown = hide_secrets(settled)
    return shown, shown != settled


def hide_secrets(url: str) -> str:
    """Return a URL without what looks secret. Unlike `display_url`, it leaves all that tells two files apart."""
    return "::".join(_without_secrets(link) if PROTOCOL.match(link) else link for link in split_chain(url))


def _without_secrets(link: str) -> str:
    """Return one link of a URL without user, password, and a query in which something looks secret.

    Where a "?" is part of names, only what has a value counts: somebody has put the query of a signed URL there.
    """
    link = strip_user(link)
    is_literal = grammar_of(link).query != "?"
    address, _, query = link.partition("?")
    if not query:
        return link
    parts = [part for part in re.split(r"[?&;#]", query) if "=" in part or not is_literal]
    return address if any(_SECRET.search(name) for name in _names(parts)) else link


def _names(parts: list[str]) -> list[str]:
    """Return the names of the parameters of a query."""
    from urllib.parse import unquote  # needed by few, and start-up time is paid by all

    return [unquote(part.partition("=")[0]) for part in parts]
