"""What outputs are called: a name for each source, below the directory of the index, whatever the source is called.

Names of objects are anybody's: they may climb out of a directory with "..", differ in capitals only, or have letters
that no file system takes. What may not stand in a name is escaped as in URLs, so that different names stay different.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from string import Formatter

from h5zarr.indexing.place import STATE

FIELDS = ("path", "directory", "name", "stem", "hash")
# Besides control characters: what has a meaning to file systems, in patterns, in chains of URLs, or to readers of
# references.
_UNFIT = re.compile(r'[\x00-\x1f\x7f%\\:*?"<>|{}\[\]#\ud800-\udfff]')
_MOST_NBYTES = 200  # of one part of a name, which most file systems limit to 255
_MOST_WHOLE_NBYTES = 700  # of a name: keys of object stores have 1024 at most, with all that stands before
_DOTS = re.compile(r"\.+")


class UnclearTemplate(ValueError):
    """A template for names cannot be filled in."""


def check_template(template: str) -> None:
    """Raise UnclearTemplate unless a template has known fields only, and one that differs between sources."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise UnclearTemplate(f"{template!r} is no template: {error}") from None
    fields = [name for _, name, _, _ in parts if name is not None]
    for _, name, spec, conversion in parts:
        if name is not None and (name not in FIELDS or spec or conversion):
            known = ", ".join(f"{{{field}}}" for field in FIELDS)
            raise UnclearTemplate(f"{template!r} has a field {{{name}}}; there are {known}")
    if not {"path", "name", "stem", "hash"} & set(fields):
        raise UnclearTemplate(f"{template!r} gives all sources the same name; use {{path}}, {{name}} or {{hash}}")


class Names:
    """Gives names to sources, none of them twice, and none that is a directory in another."""

    def __init__(self, template: str, suffix: str, taken: Iterable[str] = ()) -> None:
        check_template(template)
        self._template = template
        self._suffix = suffix
        self._files: set[str] = set()
        self._directories: set[str] = set()
        for name in taken:
            self._take(name)

    def give(self, source: str, path: str) -> str:
        """Return the name for a source, which was found at `path` below the place where it was looked for."""
        plain = self._fill(source, path)
        name = plain + self._suffix
        mark = source
        if not self._files.isdisjoint(_above(_fold(name))):
            plain = plain.rpartition("/")[2]  # what would be its directory is an output
        while self._is_taken(name):  # more than once only where somebody has named a source after the name of another
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
    """Return a few letters that stand for a source."""
    return hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _fold(name: str) -> str:
    """Return what names have in common that are one to some file systems: capitals do not count, nor do accents apart.

    Those that differ in nothing else are one file there.
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _shorten(name: str, source: str) -> str:
    """Return a name that is not too long as a whole: its first directories, and letters that stand for the source."""
    if len(name.encode()) <= _MOST_WHOLE_NBYTES:
        return name
    parts = name.split("/")
    while len("/".join(parts).encode()) > _MOST_WHOLE_NBYTES - 13:
        parts.pop()
    return "/".join([*parts, digest(source)])


def _above(name: str) -> list[str]:
    """Return the directories that a name stands in."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _fit(part: str) -> str:
    """Return one part of a name as file systems take it."""
    escaped = _UNFIT.sub(_escape, part)
    if _DOTS.fullmatch(escaped):
        escaped = escaped.replace(".", "%2E")
    if len(escaped.encode()) > _MOST_NBYTES:
        # Cut between letters, and never inside an escape.
        start = re.sub(r"%[0-9A-F]?$", "", escaped.encode()[: _MOST_NBYTES - 13].decode("utf-8", "ignore"))
        return f"{start}-{digest(part)}"
    return escaped


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
