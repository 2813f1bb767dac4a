"""What the characters of a URL mean, which depends on its protocol: one table, and what follows from it.

fsspec takes most URLs literally: "%20", "#" and "?" are part of the name. Only with web servers they have the meaning
that RFC 3986 gives them; buckets have versions of objects behind a "?"; and what stands before an "@" is sometimes the
name of a user, sometimes that of a bucket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# One letter before a colon is a Windows drive.
PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_WORD = re.compile(r"[a-z][a-z0-9_]+")  # a link of a chain may be the name of a protocol alone
# Before the host; a password that should have been quoted, and is not, may have a slash or a question mark in it.
_USER_INFO = re.compile(r"(?<=://)(?:[^/?]*|[^/?#:@]*:(?!\d*(?:[/?#]|$)).*)@", re.DOTALL)
# Where no user belongs, and "@" is part of names, as that of a container: still nobody's name for a bucket.
LIKE_PASSWORD = re.compile(r"(?<=://)[^/?@]*:[^/?]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How URLs of a protocol are read.

    - `is_quoted`: percent signs begin escapes. Elsewhere they mean themselves.
    - `query`: how a query begins that is no part of the name; "" where nothing is.
    - `is_version`: the query is the version of an object, and not for the files beside it.
    - `has_host`: a host, or a bucket, stands before the path.
    - `has_user`: the host may have a user and a password before it.
    - `may_wrap`: "::" and another URL may follow, in which this one is found.
    """

    is_quoted: bool = False
    query: str = ""
    is_version: bool = False
    has_host: bool = True
    has_user: bool = False
    may_wrap: bool = False


_WEB = Grammar(is_quoted=True, query="?", has_user=True)
_NAME = Grammar(has_host=False)
_INSIDE = Grammar(has_host=False, may_wrap=True)
_OTHER = Grammar(query="?", has_user=True, may_wrap=True)
_GRAMMARS = {
    **dict.fromkeys(("http", "https"), _WEB),
    **dict.fromkeys(("s3", "s3a"), Grammar(query="?versionId=", is_version=True)),
    **dict.fromkeys(("gs", "gcs"), Grammar(query="?generation=", is_version=True)),
    **dict.fromkeys(("abfs", "abfss", "az"), Grammar(query="?versionid=", is_version=True)),
    **dict.fromkeys(("file", "local", "memory"), _NAME),
    **dict.fromkeys(("zip", "tar", "libarchive"), _INSIDE),
    # What is before the "@" of these is no user: it is a repository, or a bucket.
    **dict.fromkeys(("github", "oci", "ocilake"), Grammar()),
    **dict.fromkeys(("ftp", "sftp", "ssh", "smb", "hdfs", "webhdfs"), Grammar(query="?", has_user=True)),
}


def protocol_of(link: str) -> str:
    """Return the protocol of one link of a URL; "file" for paths."""
    match = PROTOCOL.match(link)
    return match[1].lower() if match else "file"


def grammar_of(link: str) -> Grammar:
    """Return how one link of a URL is read."""
    return _GRAMMARS.get(protocol_of(link), _OTHER)


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
