"""Locate the chunks of the arrays in a snapshot when they are needed, manifest by manifest.

A snapshot says which manifests an array has, and which part of the chunk grid is in each. So opening a snapshot reads
no manifest, and a selection reads those that cover it. Manifests and chunk files never change, and have the same place
in all versions of Icechunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os.path import join as join_path

import numpy as np

from h5zarr.containers.chunk_runs import Run, join_runs
from h5zarr.containers.icechunk.locations import find_location, restore_url
from h5zarr.containers.icechunk.manifest_file import (
    NATIVE,
    VIRTUAL,
    ListedChunks,
    decode_manifest,
    join_rows,
    no_chunks,
)
from h5zarr.containers.icechunk.storage import Place
from h5zarr.containers.late_manifest import KnownRecords, LateManifest
from h5zarr.containers.record_totals import decode_records
from h5zarr.containers.references import naming_errors
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import MalformedFile, Problem, Unsupported
from h5zarr.io.ranges import RangeReader, open_ranges, read_one
from h5zarr.io.span import Span
from h5zarr.read.sources import Sources, in_each
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.grid import ChunkGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest

MOST_HELD_NBYTES = Inlining().total_nbytes
_MOST_WANTED_FIRST = 256


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """A manifest, and the part of an array's chunk grid that it covers: the first chunk, and the one after the last."""

    name: str
    begin: tuple[int, ...]
    end: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayManifests:
    """The manifests of an array, and its identifier in them."""

    node: str
    parts: tuple[ManifestPart, ...]


def find_manifests(snapshot: Json) -> dict[str, ArrayManifests]:
    """Return the manifests of each array that has any, by path, from the description of a snapshot."""
    return {
        node["path"]: ArrayManifests(node["id"], tuple(map(_decode_part, references)))
        for node in snapshot["nodes"]
        if (references := node.get("manifest_refs"))
    }


def _decode_part(reference: Json) -> ManifestPart:
    begin, end = zip(*reference["extents"], strict=True) if reference["extents"] else ((), ())
    return ManifestPart(reference["id"], begin, end)


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of a repository, and how to access them. It can be pickled."""

    place: Place
    sources: Sources

    def open(self, folder: str, name: str) -> RangeReader:
        """Return the reader of a file."""
        if self.place.directory is not None:
            return open_ranges(join_path(self.place.directory, folder, name))
        inside = f"{self.place.bucket}/{self.place.prefix}".rstrip("/")
        reader = open_ranges(f"s3://{inside}/{folder}/{name}", self.sources.access)
        self.sources.keep(reader)
        return reader

    def read_manifests(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of manifests, by name."""
        contents: dict[str, bytes] = {}

        def read(name: str) -> None:
            contents[name] = self.open("manifests", name).read_whole()

        in_each([partial(read, name) for name in dict.fromkeys(names)])
        return contents

    def read_chunks(self, spans: Sequence[tuple[str, Span]]) -> list[bytes]:
        """Return chunks that the repository holds: parts of chunk files."""
        contents = [b""] * len(spans)

        def read(place: int) -> None:
            name, span = spans[place]
            contents[place] = bytes(read_one(self.open("chunks", name), span))

        in_each([partial(read, place) for place in range(len(spans))])
        return contents


class SourceNumbers:
    """The numbers of source files, by Icechunk's locations of them."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._by_url: dict[str, int] = {}
        self._by_location: dict[str | None, int] = {}

    def find(self, location: str) -> int | None:
        """Return the number of the source at a location; None if it is not a source."""
        if not self._by_url:
            self._by_url = {url: number for number, url in reversed(list(enumerate(self._urls)))}
        number = self._by_url.get(restore_url(location))
        if number is None:  # some URLs have a location that does not lead back to them
            if not self._by_location:
                self._by_location = {
                    find_location(url): number for number, url in reversed(list(enumerate(self._urls)))
                }
            number = self._by_location.get(location)
        return number

    def __reduce__(self) -> tuple[type[SourceNumbers], tuple[Sequence[str]]]:
        return SourceNumbers, (self._urls,)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateArrays:
    """The arrays of a snapshot that h5zarr wrote. `urls` are all files that it refers to.

    `totals` says what the records of large arrays have, by path, and `snapshot` is the identifier of the snapshot.
    """

    manifests: Mapping[str, ArrayManifests]
    files: RepositoryFiles
    urls: Sequence[str]
    totals: Mapping[str, Json] = field(default_factory=dict)
    snapshot: str = ""

    def locate(self, nodes: Mapping[str, object]) -> dict[str, ArrayNode]:
        """Return the arrays among `nodes` with their chunks, which are read when they are used.

        Readers of remote references need the coordinates first, so these are read together.
        """
        numbers = SourceNumbers(self.urls)
        arrays = {path: node for path, node in nodes.items() if isinstance(node, ArrayNode) and path in self.manifests}
        late = {path: self._manifest(path, node, numbers) for path, node in arrays.items()}
        if self.files.place.directory is None:
            wanted = [path for path, node in arrays.items() if _is_coordinate(path, node)][:_MOST_WANTED_FIRST]
            in_each([partial(_read_all, late[path]) for path in wanted])
        return {path: replace(node, manifest=late[path]) for path, node in arrays.items()}

    def _manifest(self, path: str, node: ArrayNode, numbers: SourceNumbers) -> LateManifest:
        size, known = None, None
        if (described := self.totals.get(path)) is not None:
            size, totals = decode_records(path, described)
            known = KnownRecords(totals, f"{self.snapshot}{path}")
        table = _PartTable(path, self.manifests[path], node.grid, size)
        return LateManifest(partial(_load_manifests, table, self.files, numbers), table.record_size, known)


def _is_coordinate(path: str, node: ArrayNode) -> bool:
    """Return whether readers load an array when they open a dataset."""
    return node.dimension_names == (path.rpartition("/")[2],) and node.grid.chunk_count == 1


def _read_all(manifest: LateManifest) -> None:
    _ = manifest.count


class _PartTable:
    """The manifests of an array, and the range of chunk numbers in each.

    Records have `record_size` chunks. If that is not known, most have the size of a manifest.
    """

    def __init__(self, path: str, manifests: ArrayManifests, grid: ChunkGrid, record_size: int | None = None) -> None:
        self.path, self.manifests, self.grid = path, manifests, grid
        parts = manifests.parts
        rank = len(grid.shape)
        if any(len(part.begin) != rank for part in parts):
            raise MalformedFile(f"{path}: its manifests have another number of dimensions")
        begin = np.array([part.begin for part in parts], np.int64).reshape(len(parts), rank)
        end = np.array([part.end for part in parts], np.int64).reshape(len(parts), rank)
        self.first, self.last = grid.number(begin), grid.number(end - 1)
        self.record_size = record_size or self._usual_size()

    def _usual_size(self) -> int:
        steps, times = np.unique(np.diff(np.sort(self.first)), return_counts=True)
        usual = int(steps[np.argmax(times)]) if len(steps) else self.grid.chunk_count
        return max(1, usual)

    def touched(self, record: int) -> list[ManifestPart]:
        """Return the manifests with chunks of a record."""
        first = record * self.record_size
        rows = np.flatnonzero((self.first < first + self.record_size) & (self.last >= first))
        return [self.manifests.parts[row] for row in rows.tolist()]


def _load_manifests(
    table: _PartTable, files: RepositoryFiles, numbers: SourceNumbers, records: Sequence[int] | None
) -> list[Manifest]:
    """Return the chunks of each of these records of an array; for None, of all records together."""
    groups = [table.manifests.parts] if records is None else [table.touched(record) for record in records]
    contents = files.read_manifests([part.name for parts in groups for part in parts])
    with naming_errors(files.place.shown):
        decoded = {name: _decode(content, name, table) for name, content in contents.items()}
        listed = [
            join_rows([no_chunks(len(table.grid.shape)), *(decoded[part.name] for part in parts)]) for parts in groups
        ]
        if records is not None:
            size = table.record_size
            listed = [
                _within(table.grid, rows, size * number, size) for rows, number in zip(listed, records, strict=True)
            ]
        return [_to_manifest(table, rows, files, numbers) for rows in listed]


def _decode(content: bytes, name: str, table: _PartTable) -> ListedChunks:
    """Return the chunks of an array in a manifest."""
    rank = len(table.grid.shape)
    found = decode_manifest(content, f"manifest {name}").get(table.manifests.node, no_chunks(rank))
    if found.index.shape[1] != rank:
        raise MalformedFile(f"{table.path}: its manifests have another number of dimensions")
    return found


def _within(grid: ChunkGrid, listed: ListedChunks, first: int, count: int) -> ListedChunks:
    """Return the chunks with the numbers from `first` on, at most `count`, in row-major order."""
    numbers = grid.number(listed.index)
    rows = np.flatnonzero((numbers >= first) & (numbers < first + count))
    if (np.diff(numbers[rows]) < 0).any():  # manifests are sorted, but several may be in any order
        rows = rows[np.argsort(numbers[rows], kind="stable")]
    return listed if np.array_equal(rows, np.arange(len(numbers))) else listed.select(rows)


def _to_manifest(table: _PartTable, listed: ListedChunks, files: RepositoryFiles, numbers: SourceNumbers) -> Manifest:
    """Return the chunks with the numbers of their sources. Chunks that the repository holds are read."""
    found = {url: numbers.find(url) for url in listed.urls}
    known = {url: number for url, number in found.items() if number is not None}
    if len(known) < len(found):
        raise MalformedFile(f"{table.path}: some references point to a file that is not among the sources")
    rows = np.flatnonzero(listed.kind == VIRTUAL)
    run = Run(
        layout=KeyLayout(table.path, "c", "/", len(table.grid.shape)),
        index=listed.index[rows],
        address=listed.address[rows],
        nbytes=listed.nbytes[rows],
        source=listed.source[rows],
        urls=listed.urls,
    )
    held = np.flatnonzero(listed.kind == NATIVE)
    nbytes = int(listed.nbytes[held].sum())
    if nbytes > MOST_HELD_NBYTES:
        problem = too_large(table.path, nbytes)
        raise Unsupported(f"{table.path}: {problem.message}", remedy=problem.remedy)
    spans = [(listed.chunks[row], Span(int(listed.address[row]), int(listed.nbytes[row]))) for row in held.tolist()]
    contents = dict(listed.inline) | dict(zip(held.tolist(), files.read_chunks(spans), strict=True))
    inline = {tuple(listed.index[row].tolist()): content for row, content in contents.items()}
    return join_runs([run], inline).to_manifest(known)


def too_large(path: str, nbytes: int) -> Problem:
    """Return the problem of an array with too many bytes in the repository."""
    what = f"the repository itself holds {nbytes} bytes of it, which are too many to inline in references"
    return Problem(path, "too large", what, "Read it with the package icechunk, and xarray's engine zarr.")
