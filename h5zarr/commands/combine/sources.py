"""The files to join: names, patterns and directories, and the references of an index instead of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from typing import TypeAlias

from h5zarr.commands.catalog.catalog import CATALOG, PARTS, Catalog
from h5zarr.commands.catalog.listing import list_sources, nothing_found
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row
from h5zarr.commands.combine.pieces import CubePiece, open_piece, translated_piece
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.registry import container_of
from h5zarr.errors import ArgumentError, H5ZarrError, Problem, SourceError
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.protocols import require_protocols

_MAGIC = frozenset("*?[")
_NUMBER = re.compile(r"([0-9]+)")

OnFile: TypeAlias = Callable[[str, int], None]
"""Called for each file that has been opened, with its name and the number of all files."""

CubeSource: TypeAlias = str | os.PathLike[str] | Translation
CubeSources: TypeAlias = CubeSource | Iterable[CubeSource]


class NotIndexed(SourceError):
    """A file of an index has no references that are up to date."""

    kind = "not indexed"
    remedy = "Run h5zarr index again, or leave such files out with skip_broken=True."


@dataclass(frozen=True, slots=True)
class FoundSources:
    """What to open, what is translated already, and the files of an index that cannot be joined, with the reasons."""

    urls: tuple[str, ...]
    translated: tuple[Translation, ...] = ()
    unusable: tuple[tuple[str, H5ZarrError], ...] = ()

    @property
    def count(self) -> int:
        """The number of files to open."""
        return len(self.urls) + len(self.translated)

    def batches(self, size: int) -> Iterator[FoundSources]:
        """Yield the files in parts. The first has those that cannot be joined."""
        for first in range(0, self.count, size):
            behind = max(0, first - len(self.urls)), max(0, first + size - len(self.urls))
            unusable = () if first else self.unusable
            yield FoundSources(self.urls[first : first + size], self.translated[slice(*behind)], unusable)

    @property
    def locations(self) -> list[Location]:
        """Where all sources are. No output may replace one of them."""
        return [Location.parse(url) for url in (*self.urls, *[one.hierarchy.urls[0] for one in self.translated])]


def find_pieces(sources: CubeSources, access: Access) -> FoundSources:
    """Return what to open: files and references. The directory of an index stands for its references, if it has any,
    or its files.
    """
    given = [sources] if isinstance(sources, str | os.PathLike | Translation) else list(sources)
    urls: list[str] = []
    unusable: list[tuple[str, H5ZarrError]] = []
    plain: list[str | os.PathLike[str]] = []
    translated: list[Translation] = []
    for source in given:
        if isinstance(source, Translation):
            translated.append(source)
            continue
        place = index_at(Location.parse(source), access)
        if place is None:
            plain.append(source)
            continue
        for row in sorted(Catalog(place).rows(), key=lambda row: natural_order(row.source)):
            if row.status.is_indexed:
                urls.append(place.locate(row.output) if row.output else row.source)
            else:
                unusable.append((row.source, _explain(row)))
    if plain or not (urls or translated or unusable):
        urls = [*find_sources(plain, access), *urls]
    if not urls and not translated:
        raise unusable[0][1]
    return FoundSources(tuple(dict.fromkeys(urls)), tuple(translated), tuple(unusable))


def index_at(source: Location, access: Access) -> Place | None:
    """Return the directory of an index; None for anything else."""
    if source.path is None and not source.text.endswith("/"):
        return None
    if source.path is not None and not os.path.isdir(source.path):
        return None
    place = Place(source.text, access.options_for(source.text), access.network)
    is_index = place.read(CATALOG) is not None or any(True for _ in place.names(PARTS))
    return place if is_index else None


def _explain(row: Row) -> H5ZarrError:
    reason = f": {row.reason}" if row.reason else ""
    return NotIndexed(f"{row.source}: it is {row.status} in the index{reason}")


def open_pieces(
    found: FoundSources,
    access: Access,
    options: Options,
    *,
    at_once: int,
    skip_broken: bool,
    on_file: OnFile | None,
    total: int = 0,
) -> tuple[list[CubePiece], tuple[Problem, ...]]:
    """Return the pieces in the order of their names, and a problem for each that was skipped.

    Raises the error of the first file that cannot be read, unless `skip_broken`. `total` is the number of all files, if
    these are a part of them: then there may be no piece among them.
    """

    def work(url: str) -> tuple[str, CubePiece | H5ZarrError]:
        try:
            return url, open_piece(url, access, options)
        except H5ZarrError as error:
            return url, error

    if all(Location.parse(url).path is not None for url in found.urls):
        at_once = 1  # local files are mapped: there is nothing to wait for, and threads would only compete
    broken = dict(found.unusable)
    if broken and not skip_broken:
        raise next(iter(broken.values()))
    opened: dict[str, CubePiece] = {}
    for url, one in work_through(found.urls, work, at_once):
        if isinstance(one, CubePiece):
            opened[url] = one
        elif skip_broken:
            broken[url] = one
        else:
            _close(opened.values())
            raise one
        if on_file is not None:
            on_file(str(Location.parse(url)), total or len(found.urls))
    pieces = [opened[url] for url in found.urls if url in opened]
    pieces += [translated_piece(one, access, options) for one in found.translated]
    if not pieces and not total:
        raise next(iter(broken.values()))
    return pieces, tuple(_describe(broken))


def _describe(broken: dict[str, H5ZarrError]) -> Iterable[Problem]:
    for url, error in broken.items():
        shown = str(Location.parse(url))
        what = str(error).removeprefix(f"{shown}:").strip()
        yield Problem("/", error.kind, f"{shown} is left out: {what}", error.remedy)


def _close(pieces: Iterable[CubePiece]) -> None:
    for piece in pieces:
        piece.opened.close()


def close_pieces(pieces: Sequence[CubePiece]) -> None:
    """Close the files and connections of all pieces."""
    _close(pieces)


def find_sources(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], access: Access = USUAL_ACCESS
) -> list[str]:
    """Return the files, each once: the matches of patterns and the contents of directories in their natural order.

    Raises PackageMissing if a protocol needs a package that is not installed: every file would fail for that reason.
    """
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not given:
        raise ArgumentError("sources is empty, but must name at least one file")
    found: dict[str, None] = {}
    for source in map(Location.parse, given):
        require_protocols(source.text, str(source))
        if not is_many(source):
            found[source.text] = None
            continue
        listed = [_as_given(one.url, source) for one in list_sources(source.text, access).sources]
        listed += _matching_directories(source)
        if not listed:
            raise nothing_found([str(source)])
        found |= dict.fromkeys(sorted(listed, key=natural_order))
    return list(found)


def natural_order(name: str) -> tuple[list[str | int], str]:
    """Return a key that sorts names by the numbers in them: r2.nc is before r10.nc."""
    parts: list[str | int] = list(_NUMBER.split(name))  # text and digits alternate
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def _matching_directories(pattern: Location) -> list[str]:
    """Return the directories that match a local pattern and are references in Parquet."""
    if pattern.path is None or os.path.isdir(pattern.path):
        return []
    matches = [path for path in glob(pattern.path, recursive=True) if os.path.isdir(path)]
    return [path for path in matches if container_of(Location.parse(path)) is not None]


def _as_given(url: str, pattern: Location) -> str:
    """Return a file found through a relative path as a relative path."""
    return url if pattern.path is None or os.path.isabs(pattern.path) else os.path.relpath(url)


def is_many(source: Location) -> bool:
    """Return whether this is a directory or a pattern, rather than a file whose name looks like a pattern."""
    local = source.path
    if local is None:
        # The "?" that starts a URL's query does not make it a pattern.
        return any(_MAGIC & set(address) for address in source.addresses)
    if os.path.isdir(local):
        return container_of(source) is None  # references in Parquet are a directory
    return bool(_MAGIC & set(local)) and not os.path.lexists(local)
