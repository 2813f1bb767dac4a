"""Output names: a name below the directory of the index for each source, whatever the source is called.

Object names are untrusted: they may climb out of a directory with "..", differ only in case, or contain characters that
file systems reject. Such characters are percent-encoded as in URLs, so that different names stay different.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from string import Formatter

from h5zarr.commands.catalog.place import STATE
from h5zarr.errors import ArgumentError

FIELDS = ("path", "directory", "name", "stem", "hash")
# Besides control characters: characters with a meaning in file systems, patterns, URL chains or reference readers.
_UNFIT = re.compile(r'[\x00-\x1f\x7f%\\:*?"<>|{}\[\]#\ud800-\udfff]')
_MOST_NBYTES = 200  # in one path component; most file systems allow 255
_MOST_WHOLE_NBYTES = 700  # in a name; object stores allow keys of 1024, including the prefix
_DOTS = re.compile(r"\.+")


class UnclearTemplate(ArgumentError):
    """A name template cannot be filled in."""


def check_template(template: str) -> None:
    """Raise UnclearTemplate unless a template uses known fields only, at least one of which differs between sources."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise UnclearTemplate(f"{template!r} is not a valid template: {error}") from None
    fields = [name for _, name, _, _ in parts if name is not None]
    for _, name, spec, conversion in parts:
        if name is not None and (name not in FIELDS or spec or conversion):
            known = ", ".join(f"{{{field}}}" for field in FIELDS)
            raise UnclearTemplate(f"{template!r} has an unknown field {{{name}}}; known fields are {known}")
    if not {"path", "name", "stem", "hash"} & set(fields):
        raise UnclearTemplate(f"{template!r} gives all sources the same name; use {{path}}, {{name}} or {{hash}}")


class Names:
    """Gives each source a unique name that is not the directory of another name.

    Without a suffix, nothing is written for a source, and its name is empty.
    """

    def __init__(self, template: str, suffix: str, taken: Iterable[str] = ()) -> None:
        check_template(template)
        self._template = template
        self._suffix = suffix
        self._files: set[str] = set()
        self._directories: set[str] = set()
        for name in taken:
            self._take(name)

    def give(self, source: str, path: str) -> str:
        """Return the name for a source found at `path` below the directory that was searched."""
        if not self._suffix:
            return ""
        plain = self._fill(source, path)
        name = plain + self._suffix
        mark = source
        if not self._files.isdisjoint(_above(_fold(name))):
            plain = plain.rpartition("/")[2]  # its directory would be an output
        while self._is_taken(name):  # loops only if a source is named after another source's digest
            mark = digest(mark)
            name = f"{plain}-{mark}{self._suffix}"
        self._take(name)
        return name

    def _fill(self, source: str, path: str) -> str:
        directory, _, last = path.rpartition("/")
        stem = last.rpartition(".")[0] or last
        values = {"path": path, "directory": directory, "name": last, "stem": stem, "hash": digest(source)}
        filled = self._template.format(**values)
        parts = [_fit(part) for part in filled.split("/") if part]
        if parts and parts[0].casefold() == STATE:
            parts[0] = f"%5F{parts[0][1:]}"
        return _shorten("/".join(parts), source) or digest(source)

    def _is_taken(self, name: str) -> bool:
        folded = _fold(name)
        return folded in self._files or folded in self._directories or not self._files.isdisjoint(_above(folded))

    def _take(self, name: str) -> None:
        folded = _fold(name)
        self._files.add(folded)
        self._directories.update(_above(folded))


def digest(source: str) -> str:
    """Return a short hash of a source."""
    return hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _fold(name: str) -> str:
    """Return a name with case and Unicode composition folded.

    Some file systems treat names that differ in nothing else as one file.
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _shorten(name: str, source: str) -> str:
    """Return a name of limited total length: its first directories and the hash of the source."""
    if len(name.encode()) <= _MOST_WHOLE_NBYTES:
        return name
    parts = name.split("/")
    while len("/".join(parts).encode()) > _MOST_WHOLE_NBYTES - 13:
        parts.pop()
    return "/".join([*parts, digest(source)])


def _above(name: str) -> list[str]:
    """Return the parent directories of a name."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _fit(part: str) -> str:
    """Return one path component in a form that file systems accept."""
    escaped = _UNFIT.sub(_escape, part)
    if _DOTS.fullmatch(escaped):
        escaped = escaped.replace(".", "%2E")
    if len(escaped.encode()) > _MOST_NBYTES:
        # Cut between characters, never inside an escape.
        start = re.sub(r"%[0-9A-F]?$", "", escaped.encode()[: _MOST_NBYTES - 13].decode("utf-8", "ignore"))
        return f"{start}-{digest(part)}"
    return escaped


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
