"""Icechunk's locations of referenced files, and the prefixes under which it may read them.

A location is a URL. When Icechunk stores a reference, it compares the escaped location with the prefixes of the
containers; when it reads, it compares the unescaped location. So a prefix contains no character that is ever escaped.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from h5zarr.containers.provenance import Provenance
from h5zarr.errors import OutputError
from h5zarr.io.location import Location
from h5zarr.io.protocols import grammar_of, protocol_of
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy
from h5zarr.zarr_model.joined_manifest import is_late

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LEGAL = "/-._~!$&'()*+,;=:@"
_PLAIN = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@]*")
# A local path that is its own absolute path, and needs no escapes. Most are, and a cube may have many.
_USUAL = re.compile(r"(?:/(?!\.{1,2}/)[A-Za-z0-9\-._~!$&'()*+,;=@]+){2,}")
_MOST_DIRECTORIES = 16
_FILE = "file://"
_FRACTION = re.compile(r"\.\d+")
_BUCKETS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_WEB = ("http", "https")
_WEAK = "W/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A file as Icechunk sees it: its location, its prefix, and what distinguishes this state from a later one.

    At most one of `etag` and `modified` is set. `modified` is in whole seconds.
    """

    location: str
    prefix: str
    etag: str | None = None
    modified: datetime | None = None


class LocatedFiles(dict[int, Located]):
    """Files as Icechunk sees them, by the number of their URL. Each is located when it is first used."""

    def __init__(self, hierarchy: Hierarchy, provenance: Provenance) -> None:
        super().__init__()
        self._urls, self._provenance = hierarchy.urls, provenance

    def __missing__(self, number: int) -> Located:
        url = self._urls[number]
        location, prefix = _locate(url)
        etag, modified = _state(url, _identity(number, url, self._provenance))
        self[number] = Located(location=location, prefix=prefix, etag=etag, modified=modified)
        return self[number]

    def prefixes(self, used: Iterable[int], shown: str) -> set[str]:
        """Return the prefixes of files that are used.

        Raises OutputError, with `shown` for the output, naming each file that Icechunk cannot refer to.
        """
        refused = [f"{Location.parse(url)}: {why}" for number in used if (why := _refuse(url := self._urls[number]))]
        if refused:
            remedy = "Give a location that Icechunk can read with target_url=URL, or write JSON."
            raise OutputError(shown, f"Icechunk cannot refer to {'; '.join(refused)}", remedy=remedy)
        return {self[number].prefix for number in used}


def used_files(hierarchy: Hierarchy) -> list[int]:
    """Return the numbers of the URLs that contain chunks: all of them, if the chunks are too many to be in memory."""
    used: set[int] = set()
    for node in hierarchy.nodes.values():
        if isinstance(node, ArrayNode) and is_late(node.manifest):
            return list(range(len(hierarchy.urls)))
        if isinstance(node, ArrayNode) and node.manifest.count:
            used |= set(np.unique(node.manifest.source).tolist())
    return sorted(used)


def _refuse(url: str) -> str:
    """Return why Icechunk cannot refer to a URL, or ""."""
    if _is_usual(url):
        return ""
    if _CONTROL.search(url):
        return "the name contains a control character"
    if not _is_text(url):
        return "the name is not UTF-8"
    location = Location.parse(url)
    if location.path is not None:
        above = _plain_directory(location.absolute())
        return "" if above != "/" else "no parent directory has a plain name, of ASCII letters, digits and - . _ ~"
    if location.is_chain:
        return "it cannot follow a chain of URLs"
    protocol = protocol_of(url)
    if protocol not in (*_BUCKETS, *_WEB):
        return f"h5zarr knows no container for {protocol}://"
    if location.query:
        return "it drops the query after the question mark"
    return "" if location.without_secrets() == url else "the URL contains a user name or password"


def _locate(url: str) -> tuple[str, str]:
    """Return the location of a URL, and the prefix of its container."""
    if _is_usual(url):
        return f"{_FILE}{url}", _prefix_of(url.rpartition("/")[0])
    location = Location.parse(url)
    if location.path is not None:
        path = location.absolute()
        return f"{_FILE}{_escape(path)}", f"{_FILE}{_plain_directory(path)}"
    root, name = location.split_root()
    protocol = location.protocol
    root = f"{_BUCKETS.get(protocol, protocol)}://{root.partition('://')[2]}"
    return root + (name if grammar_of(url).is_quoted else _escape(name)), f"{root}/"


def restore_url(location: str) -> str:
    """Return a location in h5zarr's form: a path for a local file, and bucket names without escapes."""
    protocol = protocol_of(location)
    if protocol != "file" and protocol not in _BUCKETS:
        return location
    from urllib.parse import unquote  # rarely needed, and importing it would slow every start

    plain = unquote(location, errors="surrogateescape")
    return plain.removeprefix("file://") if protocol == "file" else plain


def find_location(url: str) -> str | None:
    """Return the location of a URL; None if Icechunk cannot refer to it."""
    return None if _refuse(url) else _locate(url)[0]


def _is_usual(url: str) -> bool:
    return _USUAL.fullmatch(url) is not None and not url.endswith(("/.", "/.."))


@lru_cache(maxsize=1024)
def _prefix_of(directory: str) -> str:
    # Cached, so that all files of a directory share the text.
    return f"{_FILE}{directory}/"


def _is_text(url: str) -> bool:
    try:
        url.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(path: str) -> str:
    from urllib.parse import quote  # rarely needed, and importing it would slow every start

    return quote(path, safe=_LEGAL)


def _plain_directory(path: str) -> str:
    """Return the nearest parent directory of `path` whose whole path needs no escapes."""
    names = path.split("/")[:-1]
    odd = next((number for number, name in enumerate(names) if not _PLAIN.fullmatch(name)), len(names))
    return "/".join(names[:odd]) + "/"


def _identity(number: int, url: str, provenance: Provenance) -> Identity | None:
    """Return the state in which a file was read; None if it was not read at the referenced URL."""
    if number >= len(provenance.sources) or provenance.sources[number].url != url:
        return None
    return provenance.sources[number].identity


def _state(url: str, identity: Identity | None) -> tuple[str | None, datetime | None]:
    """Return the ETag or modification time that Icechunk should compare when it reads.

    ETags are for S3 alone: Icechunk sends them without quotes, so a web server may report a change. No server accepts a
    weak one. Times are rounded up: Icechunk has whole seconds, and file systems have fractions.
    """
    if identity is None:
        return None, None
    if identity.etag and _BUCKETS.get(protocol_of(url)) == "s3" and not identity.etag.startswith(_WEAK):
        return identity.etag, None
    if identity.mtime is None:
        return None, None
    return None, _round_up(identity.mtime)


def _round_up(mtime: str) -> datetime:
    """Return an ISO 8601 time in UTC, which may have nanoseconds, rounded up to a whole second."""
    fraction = _FRACTION.search(mtime)
    moment = datetime.fromisoformat(_FRACTION.sub("", mtime)).astimezone(UTC)
    return moment + timedelta(seconds=1) if fraction and fraction[0].strip(".0") else moment


def lacking_prefixes(prefixes: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the prefixes that need a container: those that no `known` container covers.

    Instead of many directories, that is the one that contains all of them: Icechunk compares files with each container.
    """
    lacking: list[str] = []
    for prefix in sorted(prefixes, key=len):
        if not prefix.startswith((*known, *lacking)):
            lacking.append(prefix)
    local = [prefix for prefix in lacking if prefix.startswith(_FILE)]
    every = [*local, *(prefix for prefix in known if prefix.startswith(_FILE))]
    if local and len(every) > _MOST_DIRECTORIES:
        above = posixpath.commonpath([prefix.removeprefix(_FILE) for prefix in every])
        if above != "/":
            return [*(prefix for prefix in lacking if prefix not in local), f"{_FILE}{above}/"]
    return lacking
