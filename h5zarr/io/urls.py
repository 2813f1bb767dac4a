"""URLs as text: splitting, escaping, and removing secrets. The rest of the package uses `Location`.

A URL may be a chain of links, joined by "::". Only this module looks for special characters in URLs.
"""

from __future__ import annotations

import os
import re

from h5zarr.errors import WrongSource
from h5zarr.io.protocols import PROTOCOL, grammar_of

_WORD = re.compile(r"[a-z][a-z0-9_]+")  # a link of a chain may be just the name of a protocol
# Before the host. A password that was not escaped as it should be may contain a slash or a question mark.
_USER_INFO = re.compile(r"(?<=://)(?:[^/?]*|[^/?#:@]*:(?!\d*(?:[/?#]|$)).*)@", re.DOTALL)
# For protocols without users, where "@" may be part of a name, such as that of a container. No bucket has such a name.
LIKE_PASSWORD = re.compile(r"(?<=://)[^/?@]*:[^/?]*@")
_FILE_URL = re.compile(r"(?:file|local):(?://(?:localhost(?=/))?|(?=/))", re.IGNORECASE)
_DRIVE_AFTER_SLASH = re.compile(r"/[A-Za-z]:[/\\]")
_LIKE_QUERY = re.compile(r"\?[\w.\-]*=.*", re.DOTALL)
_LIKE_TOKEN = re.compile(r"#[^/]*=.*", re.DOTALL)
_PARTS = re.compile(r"([^:]+://)([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
# Legal characters in a path or query; RFC 3986, 3.3 and 3.4. All others are escaped.
_PATH = "/:@!$&'()*+,;=~"
_QUERY = _PATH + "?"
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2})")
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")
# Without `encoded=True`, fsspec's HTTP file system decodes these escapes, and the server gets another URL. It decodes
# others in paths, too, but servers treat those like the characters themselves. For some servers ";" begins parameters.
_UNDONE_IN_PATH = re.compile(r"%3[Bb]")
_UNDONE_IN_QUERY = re.compile(r"%(?:2[14789ACFacf]|3[AFaf]|40)")
_CACHES = re.compile(r"^(?:(?:simplecache|filecache|blockcache|cached)::)+")
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|authori[sz]ation|jwt"
    r"|^(?:sig|hmac|key|auth|pwd|code|ticket|session|se|sp|sv)$",
    re.IGNORECASE,
)


def is_chain(url: str) -> bool:
    """Return whether "::" in `url` joins links. It may also be part of a path or of an object's name."""
    head, mark, _ = url.partition("::")
    if not mark:
        return False
    return grammar_of(head).may_wrap if PROTOCOL.match(head) else _WORD.fullmatch(head) is not None


def split_chain(url: str) -> list[str]:
    """Return the links of a URL; a single link if it is not a chain."""
    links = []
    while is_chain(url):
        head, _, url = url.partition("::")
        links.append(head)
    return [*links, url]


def find_named(links: list[str]) -> int:
    """Return the index of the link that names a file: the first that is more than a protocol's name."""
    return next((number for number, link in enumerate(links) if not _WORD.fullmatch(link)), len(links) - 1)


def split_query(link: str) -> tuple[str, str]:
    """Return one link of a URL without its query, and the query including its leading mark."""
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
    """Return the protocol of one link, including the host or bucket if there is one, and the path after it.

    The link must have a protocol and no query. The path begins with a slash if there is a host.
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

    A path is first taken literally. If no such file exists, a leading ~ is expanded, and percent escapes in a file://
    URL are decoded, because both readings of "%20" are in use.
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
        return url  # not a user name: it contains a zero byte, or is not UTF-8


def has_two_readings(url: str) -> bool:
    """Return whether a file:// URL names one file if taken literally, and another if percent escapes are decoded."""
    match = _FILE_URL.match(url)
    if match is None or "%" not in url or os.path.lexists(url):
        return False
    path = _path_in(url, match)
    decoded = _decode(path)
    return os.path.lexists(path) and os.path.lexists(decoded) and not os.path.samefile(path, decoded)


def display_url(url: str) -> str:
    """Return `url` without the parts that may be secret: user, password and query, in every link of a chain."""
    return "::".join(map(_display_link, split_chain(url)))


def _display_link(link: str) -> str:
    grammar = grammar_of(link)
    if grammar.query and not grammar.is_version:
        return _LIKE_TOKEN.sub("", split_query(strip_user(link))[0])
    # Names may contain "?" and "@" here. But a user may also have added the query of a signed URL, or a password.
    address, version = split_query(link)
    return _LIKE_QUERY.sub("", LIKE_PASSWORD.sub("", address, count=1)) + version.partition("&")[0]


def _path_in(url: str, beginning: re.Match[str]) -> str:
    """Return the path of a file:// URL, not decoded."""
    path = url[beginning.end() :]
    return path[1:] if os.name == "nt" and _DRIVE_AFTER_SLASH.match(path) else path


def _decode(path: str) -> str:
    """Return a path with escapes decoded to any bytes: names need not be UTF-8."""
    from urllib.parse import unquote  # imported here because it is rarely needed, and slows start-up

    return unquote(path, errors="surrogateescape")


class UnclearURL(WrongSource):
    """A URL is ambiguous, or fsspec would misunderstand it."""


def settle_url(url: str) -> str:
    """Return a URL or chain in the form that fsspec understands correctly.

    Links to web servers are escaped, and a file:// URL becomes a local path. Raises UnclearURL if no form works.
    """
    links = split_chain(url)
    if len(links) == 1:
        return settle_link(url)
    if len(links) < len(url.split("::")):
        what = 'the name of a file in a chain of URLs contains "::", which also separates links'
        raise UnclearURL(f"{display_url(url)}: {what}", remedy="Rename that file, or copy it.")
    return "::".join([*map(settle_link, links[:-1]), _settle_last(links[-1])])


def _settle_last(link: str) -> str:
    """Return the last link of a chain; an absolute path if it names a local file."""
    path = find_local_path(link)
    return settle_link(link) if path is None else os.path.abspath(path)


def settle_link(link: str) -> str:
    """Return one link of a URL as fsspec should get it: its protocol in lower case, and escaped for a web server.

    "%" with two hexadecimal digits is already an escape and stays. Every other illegal character is escaped as UTF-8.
    Raises UnclearURL for a "#", because clients do not send anything after it.
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
            f'{display_url(link)}: the URL contains a "#", and clients do not send the text after it to the server',
            remedy='If the "#" is part of the file name, write %23. Otherwise leave it out.',
        )
    query = "" if query == "?" else _escape(query, _QUERY)  # a "?" alone is not sent
    return scheme + _encode_host(host, link) + (_remove_dots(_escape(path, _PATH)) or "/") + query


def find_one_path(url: str) -> str | None:
    """Return the local path that `url` names, or None. Raises UnclearURL for a file:// URL that names two files."""
    if has_two_readings(url):
        what = "one file has this name, and another one has this name with percent escapes decoded"
        raise UnclearURL(f"{display_url(url)}: {what}", remedy="Give the path instead of a URL.")
    return find_local_path(url)


def quote_name(name: str, beside: str) -> str:
    """Return the name of a file as it is written in a URL like `beside`, with special characters escaped."""
    if not grammar_of(beside).is_quoted:
        return name
    from urllib.parse import quote  # imported here because it is rarely needed, and slows start-up

    return quote(name, safe="/~!$&'()*+,;=@", errors="surrogateescape")


def is_rewritten(url: str) -> bool:
    """Return whether fsspec's HTTP file system, without options, would request another URL than this escaped one."""
    if not PROTOCOL.match(url) or not grammar_of(url).is_quoted:
        return False
    path, _, query = url.partition("?")
    return _UNDONE_IN_PATH.search(path) is not None or _UNDONE_IN_QUERY.search(query) is not None


def decode_escapes(url: str) -> str:
    """Return the URL of a web server with the escapes before its query decoded, and any other URL unchanged."""
    if not grammar_of(url).is_quoted:
        return url
    address, query = split_query(url)
    return _decode(address) + query


def _escape(text: str, legal: str) -> str:
    from urllib.parse import quote

    parts = _ESCAPE.split(text)  # escapes have odd numbers
    return "".join(
        part if number % 2 else quote(part, safe=legal, errors="surrogateescape") for number, part in enumerate(parts)
    )


def _encode_host(host: str, url: str) -> str:
    """Return the host in ASCII, as it is looked up in the DNS."""
    if host.isascii():
        return host
    user, mark, name = host.rpartition("@")
    try:
        return _escape(user, ":!$&'()*+,;=~") + mark + name.encode("idna").decode()
    except UnicodeError:
        raise UnclearURL(f"{display_url(url)}: the host name is not valid", remedy="Check the URL.") from None


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

    Local paths become absolute, and URLs of web servers are escaped. Caches in front of a URL are left out: readers
    choose their own. So are user names, passwords, and a query that contains a signature or a key.
    """
    if not os.path.lexists(url):
        url = _CACHES.sub("", url)
    if (path := find_local_path(url)) is not None:
        return os.path.abspath(path), False
    settled = settle_url(url)
    shown = hide_secrets(settled)
    return shown, shown != settled


def hide_secrets(url: str) -> str:
    """Return a URL without parts that look secret. Unlike `display_url`, it keeps all other parts, such as a query."""
    return "::".join(_without_secrets(link) if PROTOCOL.match(link) else link for link in split_chain(url))


def _without_secrets(link: str) -> str:
    """Return one link of a URL without user, password, and a query that looks secret.

    If "?" may be part of a name, only parameters with a value count: then it is the query of a signed URL.
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
    from urllib.parse import unquote  # imported here because it is rarely needed, and slows start-up

    return [unquote(part.partition("=")[0]) for part in parts]
