"""The files to join: names, patterns and directories, and the references of an index instead of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from h5zarr.commands.check.check import find_sources
from h5zarr.commands.combine.pieces import CubePiece, open_piece
from h5zarr.commands.index.catalog import CATALOG, PARTS, Catalog
from h5zarr.commands.index.place import Place
from h5zarr.commands.index.rows import Row
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import Options
from h5zarr.errors import H5ZarrError, Problem, SourceError
from h5zarr.io.access import Access
from h5zarr.io.location import Location

Names = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class NotIndexed(SourceError):
    """A file of an index has no references that are up to date."""

    kind = "not indexed"
    remedy = "Run h5zarr index again, or leave such files out with skip_broken=True."


@dataclass(frozen=True, slots=True)
class FoundSources:
    """What to open, and the files of an index that cannot be joined, with the reasons."""

    urls: tuple[str, ...]
    unusable: tuple[tuple[str, H5ZarrError], ...] = ()


def find_pieces(sources: Names, access: Access) -> FoundSources:
    """Return what to open: files and references. The directory of an index stands for its references."""
    given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    urls: list[str] = []
    unusable: list[tuple[str, H5ZarrError]] = []
    plain: list[str | os.PathLike[str]] = []
    for source in given:
        place = _index_at(Location.parse(source), access)
        if place is None:
            plain.append(source)
            continue
        for row in sorted(Catalog(place).rows(), key=lambda row: row.source):
            if row.status.is_indexed:
                urls.append(place.locate(row.output))
            else:
                unusable.append((row.source, _explain(row)))
    if plain or not given:
        urls = [*find_sources(plain, access), *urls]
    return FoundSources(tuple(dict.fromkeys(urls)), tuple(unusable))


def _index_at(source: Location, access: Access) -> Place | None:
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
    on_file: Callable[[str, int], None] | None,
) -> tuple[list[CubePiece], tuple[Problem, ...]]:
    """Return the pieces in the order of their names, and a problem for each that was skipped.

    Raises the error of the first file that cannot be read, unless `skip_broken`.
    """

    def work(url: str) -> tuple[str, CubePiece | H5ZarrError]:
        try:
            return url, open_piece(url, access, options)
        except H5ZarrError as error:
            return url, error

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
            on_file(str(Location.parse(url)), len(found.urls))
    if not opened:
        raise next(iter(broken.values()))
    return [opened[url] for url in found.urls if url in opened], tuple(_describe(broken))


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
