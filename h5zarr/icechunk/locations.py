"""What Icechunk calls the files that references lead to, and under which prefixes it may read them.

A location is a URL. When Icechunk takes a reference it compares the location, with all escapes, with the prefixes of
the containers; when it reads it compares the location without them. So a prefix has no character that is ever escaped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from h5zarr.errors import OutputError
from h5zarr.hierarchy import ArrayNode, Hierarchy
from h5zarr.io.grammar import PROTOCOL, grammar_of, is_chain, protocol_of, split_path, split_query
from h5zarr.io.reference_url import hide_secrets
from h5zarr.io.source import Identity
from h5zarr.io.url import display_url, find_local_path
from h5zarr.refs.provenance import Provenance

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LEGAL = "/-._~!$&'()*+,;=:@"
_PLAIN = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@]*")
_FRACTION = re.compile(r"\.\d+")
_BUCKETS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_WEB = ("http", "https")
_WEAK = "W/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A file as Icechunk knows it: where it is, under which prefix, and what tells this state of it from a later one.

    Of `etag` and `modified` at most one is there. `modified` is in whole seconds.
    """

    location: str
    prefix: str
    etag: str | None = None
    modified: datetime | None = None


def locate_sources(hierarchy: Hierarchy, provenance: Provenance, shown: str) -> dict[int, Located]:
    """Return the files that chunks of `hierarchy` are in, by the number of their URL.

    Raises OutputError, with `shown` for the place of the output, naming each that Icechunk cannot refer to.
    """
    found, refused = {}, []
    for number in sorted(_used(hierarchy)):
        url = hierarchy.urls[number]
        if why := _refuse(url):
            refused.append(f"{display_url(url)}: {why}")
            continue
        location, prefix = _locate(url)
        etag, modified = _state(url, _identity(number, url, provenance))
        found[number] = Located(location=location, prefix=prefix, etag=etag, modified=modified)
    if refused:
        remedy = "Name a place that Icechunk reads from with --target-url, or write JSON references."
        raise OutputError(shown, f"Icechunk cannot refer to {'; '.join(refused)}", remedy=remedy)
    return found


def _used(hierarchy: Hierarchy) -> set[int]:
    """Return the numbers of the URLs that chunks are in."""
    used: set[int] = set()
    for node in hierarchy.nodes.values():
        if isinstance(node, ArrayNode) and node.manifest.count:
            used |= set(np.unique(node.manifest.source).tolist())
    return used


def _refuse(url: str) -> str:
    """Return why Icechunk cannot refer to a URL, or nothing."""
    if _CONTROL.search(url):
        return "there is a control character in the name"
    if not _is_text(url):
        return "the name is no UTF-8"
    path = find_local_path(url)
    if path is not None:
        above = _plain_directory(os.path.abspath(path))
        return "" if above != "/" else "no directory above it has a plain name, of ASCII letters, digits and - . _ ~"
    if is_chain(url):
        return "it does not follow a chain of URLs"
    protocol = protocol_of(url)
    if protocol not in (*_BUCKETS, *_WEB):
        return f"h5zarr knows no container for {protocol}://"
    if split_query(url)[1]:
        return "it leaves out what stands behind the question mark"
    return "" if hide_secrets(url) == url else "there is a user or a password in the URL"


def _locate(url: str) -> tuple[str, str]:
    """Return the location of a URL, and the prefix of the container for it."""
    path = find_local_path(url)
    if path is not None:
        path = os.path.abspath(path)
        return f"file://{_escape(path)}", f"file://{_plain_directory(path)}"
    match = PROTOCOL.match(url)
    assert match is not None
    protocol = protocol_of(url)
    url = f"{_BUCKETS.get(protocol, protocol)}://{url[match.end() :]}"
    host, name = split_path(url)
    return host + (name if grammar_of(url).is_quoted else _escape(name)), f"{host}/"


def restore_url(location: str) -> str:
    """Return a location as h5zarr writes URLs: a path for a local file, and names in buckets without escapes."""
    protocol = protocol_of(location)
    if protocol != "file" and protocol not in _BUCKETS:
        return location
    from urllib.parse import unquote  # needed by few, and start-up time is paid by all

    plain = unquote(location, errors="surrogateescape")
    return plain.removeprefix("file://") if protocol == "file" else plain


def find_location(url: str) -> str | None:
    """Return the location of a URL; None where Icechunk cannot refer to it."""
    return None if _refuse(url) else _locate(url)[0]


def _is_text(url: str) -> bool:
    try:
        url.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(path: str) -> str:
    from urllib.parse import quote  # needed by few, and start-up time is paid by all

    return quote(path, safe=_LEGAL)


def _plain_directory(path: str) -> str:
    """Return the directory of `path`, or the nearest one above it whose name, and all before it, need no escapes."""
    names = path.split("/")[:-1]
    odd = next((number for number, name in enumerate(names) if not _PLAIN.fullmatch(name)), len(names))
    return "/".join(names[:odd]) + "/"


def _identity(number: int, url: str, provenance: Provenance) -> Identity | None:
    """Return the state in which a file was read; None for one that was not read where the references lead to."""
    if number >= len(provenance.sources) or provenance.sources[number].url != url:
        return None
    return provenance.sources[number].identity


def _state(url: str, identity: Identity | None) -> tuple[str | None, datetime | None]:
    """Return the ETag, or the time of the last change, that Icechunk should compare when it reads.

    ETags are for S3 alone: Icechunk sends them without their quotes, and a web server may then say that the file has
    changed. No server takes a weak one. Times are rounded up: Icechunk has whole seconds, and file systems have more.
    """
    if identity is None:
        return None, None
    if identity.etag and _BUCKETS.get(protocol_of(url)) == "s3" and not identity.etag.startswith(_WEAK):
        return identity.etag, None
    if identity.mtime is None:
        return None, None
    return None, _round_up(identity.mtime)


def _round_up(mtime: str) -> datetime:
    """Return a time of ISO 8601 in UTC, which may have nanoseconds, as the end of its second."""
    fraction = _FRACTION.search(mtime)
    moment = datetime.fromisoformat(_FRACTION.sub("", mtime)).astimezone(UTC)
    return moment + timedelta(seconds=1) if fraction and fraction[0].strip(".0") else moment


def prefixes_of(located: Sequence[Located], known: Sequence[str]) -> list[str]:
    """Return the prefixes that containers must be made for: those that no `known` container has already."""
    lacking: list[str] = []
    for one in sorted(located, key=lambda each: len(each.prefix)):
        if not one.prefix.startswith((*known, *lacking)):
            lacking.append(one.prefix)
    return lacking
