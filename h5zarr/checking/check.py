"""The hallway of a check: find the files, look at each, several at a time, and compare them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from h5zarr import __version__
from h5zarr.checking.combining import Combining, compare_files
from h5zarr.checking.files import CheckedFile, check_file
from h5zarr.errors import H5ZarrError, SourceGone
from h5zarr.hierarchy import Json
from h5zarr.indexing.listing import list_sources
from h5zarr.io.grammar import split_chain, split_query
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.url import display_url, find_local_path
from h5zarr.many import work_through
from h5zarr.translating import Options

_MAGIC = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of which nothing could be read, and why."""

    source: str
    kind: str
    message: str
    remedy: str

    def to_json(self) -> dict[str, Json]:
        """Return it for machines."""
        return {"source": self.source, "kind": self.kind, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found: files in the order in which they were given. `combining` is None where it was not asked."""

    files: tuple[CheckedFile, ...]
    unreadable: tuple[Unreadable, ...] = ()
    combining: Combining | None = None
    seconds: float = 0.0

    @property
    def is_virtualisable(self) -> bool:
        """Whether everything in all files can be had through references, and they can be combined."""
        is_combinable = self.combining is None or self.combining.is_possible
        return is_combinable and not self.unreadable and all(file.is_virtualisable for file in self.files)

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines."""
        return {
            "version": __version__,
            "virtualisable": self.is_virtualisable,
            "files": [file.to_json() for file in self.files],
            "unreadable": [one.to_json() for one in self.unreadable],
            "combining": None if self.combining is None else self.combining.to_json(),
            "seconds": round(self.seconds, 3),
        }


def check(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    combine: bool | None = None,
    along: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    options: Options | None = None,
    at_once: int = 8,
    on_file: Callable[[str, int], None] | None = None,
) -> CheckReport:
    """Say what becomes of each variable of files, what it costs to read them, and what keeps them from being combined.

    `sources` are paths, URLs, directories or patterns; only their metadata are read. Several are compared with each
    other, unless `combine` is False, as they would be joined `along` a dimension, in this order; they are then looked
    at as arrays that are to be joined are: see `Options.joinable`. A file that cannot be read is in `unreadable`, and
    the others go on. `on_file` is told of each file when it is done, and how many there are. Raises H5ZarrError where
    a pattern matches nothing, or cannot be looked up.
    """
    started = time.perf_counter()
    urls = find_sources(sources, storage_options)
    is_compared = len(urls) > 1 if combine is None else combine
    chosen = options or Options()
    if is_compared:
        chosen = replace(chosen, joinable=True, inlining=replace(chosen.inlining, array_nbytes=0))

    def work(url: str) -> tuple[str, CheckedFile | Unreadable]:
        try:
            return url, check_file(url, chosen, storage_options, policy)
        except H5ZarrError as error:
            return url, Unreadable(display_url(url), error.kind, str(error), error.remedy)

    found: dict[str, CheckedFile | Unreadable] = {}
    for url, one in work_through(urls, work, at_once):
        found[url] = one
        if on_file is not None:
            on_file(display_url(url), len(urls))
    files = tuple(one for url in urls if isinstance(one := found[url], CheckedFile))
    combining = compare_files([(file.source, file.facts) for file in files], along) if is_compared else None
    return CheckReport(
        files=files,
        unreadable=tuple(one for url in urls if isinstance(one := found[url], Unreadable)),
        combining=combining,
        seconds=time.perf_counter() - started,
    )


def find_sources(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the files that are meant, each once: what patterns match and directories hold, in the order of names."""
    given = [sources] if isinstance(sources, str | os.PathLike) else sources
    found: dict[str, None] = {}
    for source in (os.fspath(one) for one in given):
        if not _is_many(source):
            found[source] = None
            continue
        listed = list_sources(source, storage_options).sources
        if not listed:
            raise SourceGone(f"{display_url(source)}: there is no such file", remedy="Check the pattern or directory.")
        found |= dict.fromkeys(_as_given(one.url, source) for one in listed)
    return list(found)


def _as_given(url: str, pattern: str) -> str:
    """Return what was found by a relative path as a relative path, too."""
    local = find_local_path(pattern)
    return url if local is None or os.path.isabs(local) else os.path.relpath(url)


def _is_many(source: str) -> bool:
    """Return whether this is a directory or a pattern, rather than the name of a file, which may look like one."""
    local = find_local_path(source)
    if local is None:
        # The mark of a query is none of a pattern.
        return any(_MAGIC & set(split_query(link)[0]) for link in split_chain(source))
    return os.path.isdir(local) or (bool(_MAGIC & set(local)) and not os.path.lexists(local))
