"""Read references in Parquet as a `Hierarchy`: the layout that kerchunk writes and fsspec reads.

A directory has all metadata in `.zmetadata`, and for each array files `refs.0.parq`, `refs.1.parq`, … of `record_size`
rows each: a row for each chunk of the grid, in row-major order, with `path`, `offset`, `size` and `raw`. A missing file
has no chunks. Arrays with Zarr version 3 metadata also have a `.zarray`, which only gives their shape.

References written by h5zarr also list the files and their URLs, so files need not be read before a chunk is needed.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from h5zarr.containers.chunk_runs import Run, append_runs
from h5zarr.containers.late_manifest import LateManifest
from h5zarr.containers.parquet.file_table import FILE_TABLE, FileTable, digest_of
from h5zarr.containers.parquet.parquet_writing import METADATA, OURS, token_of
from h5zarr.containers.parquet.part_files import decode_part
from h5zarr.containers.parquet.reference_directory import open_directory
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, LateFiles, References, assemble, naming_errors
from h5zarr.errors import MalformedFile, SourceChanged, Unsupported
from h5zarr.io.location import Location
from h5zarr.io.ranges import Column
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest

_MOST_PARTS = 1 << 20
_MOST_HELD = 256
_REPLACED = (
    "Open it again: it was replaced. If that does not help, it was replaced only partly: write or copy it again."
)


@dataclass(frozen=True, slots=True)
class Part:
    """A file with the references of some chunks of an array: from number `first` on, at most `count`."""

    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayParts:
    """The files with the references of an array, and how its chunks are numbered."""

    path: str
    grid: tuple[int, ...]
    separator: str
    record_size: int
    parts: tuple[Part, ...]

    @property
    def layout(self) -> KeyLayout:
        return KeyLayout(f"/{self.path}", "", self.separator, len(self.grid))


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """What h5zarr adds to `.zmetadata`: all URLs, and the token by which its files name their container.

    For a cube, `files` describes the table that has the URLs and all other facts about files.
    """

    provenance: Provenance
    urls: tuple[str, ...]
    token: str
    files: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class ParquetIndex:
    """The content of `.zmetadata`: metadata by key, and the files with the references. `own` if h5zarr wrote it."""

    entries: Mapping[str, Json]
    arrays: tuple[ArrayParts, ...]
    own: OwnIndex | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The files of all arrays."""
        return tuple(part for array in self.arrays for part in array.parts)


class UrlNumbers:
    """The numbers of URLs, which are counted when they are needed. Pickles contain only the URLs."""

    __slots__ = ("_found", "_urls")

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._found: dict[str, int] | None = None

    def by_url(self) -> Mapping[str, int]:
        """Return the number of each URL."""
        if self._found is None:
            self._found = {url: number for number, url in enumerate(self._urls)}
        return self._found

    def __reduce__(self) -> Any:
        return UrlNumbers, (self._urls,)


Load = Callable[[tuple[str, ...]], Mapping[str, bytes]]
"""Reads files by name, and returns the contents of those that exist."""

LoadEarlier = Callable[[tuple[str, ...], str], Mapping[str, bytes]]
"""The same for the files of the state with a token, if that was replaced and is still kept."""

_ZARR_ALREADY = "The data is Zarr already: open it with xarray.open_zarr or zarr.open."


def decode_index(content: bytes, name: str) -> ParquetIndex:
    """Return the decoded content of `.zmetadata`. `name` is for errors."""
    with naming_errors(name):
        match json.loads(content):
            case {"metadata": dict(entries), "record_size": int(size), **others} if size > 0:
                own, files = _decode_own(others.get(OURS), content)
                arrays = tuple(found for key in entries if (found := _array_parts(key, entries, size, files)))
                # The zarr.json alone describes an array of version 3.
                kept = {key: value for key, value in entries.items() if not _is_stub(key, entries)}
                return ParquetIndex(kept, arrays, own)
            case {"zarr_consolidated_format": _}:
                raise Unsupported("this is a directory of Zarr data, not references", remedy=_ZARR_ALREADY)
        raise MalformedFile(f"{METADATA} has no metadata, or no record size")


def decode_parquet(index: ParquetIndex, load: Load, name: str, earlier: LoadEarlier | None = None) -> References:
    """Return the references. h5zarr's own files are read with `load` when a manifest is used, others at once.

    `earlier` reads files of the state before the last update: the state that was opened, if there was an update since.
    """
    with naming_errors(name):
        if index.own is None:
            return _decode_others(index, load(tuple(part.name for part in index.parts)))
        own, late = index.own, None
        urls: Sequence[str] = own.urls
        if own.files is not None:
            own, urls, late = _with_late_files(own, own.files, load, name, earlier)
        without_files = replace(own.provenance, sources=())
        found = assemble(Document(entries=dict(index.entries), provenance=without_files))
        nodes = dict(found.hierarchy.nodes)
        numbers = UrlNumbers(urls)
        for array in index.arrays:
            node = nodes.get(f"/{array.path}")
            if isinstance(node, ArrayNode):
                read = partial(_load_manifests, array, own.token, numbers, load, name, earlier)
                nodes[f"/{array.path}"] = replace(node, manifest=LateManifest(read, array.record_size))
        hierarchy = replace(found.hierarchy, nodes=nodes, urls=urls)
        return References(hierarchy=hierarchy, provenance=own.provenance, late=late)


def _with_late_files(
    own: OwnIndex, described: Mapping[str, Json], load: Load, name: str, earlier: LoadEarlier | None
) -> tuple[OwnIndex, Sequence[str], LateFiles]:
    """Return the files of a cube, whose table is read when it is needed."""
    cube = own.provenance.cube
    counts: dict[str, Any] = {kind: described.get(kind) for kind in ("urls", "sources", "pieces")}
    first, digest = described.get("first"), described.get("digest")
    is_ours = cube is not None and all(type(count) is int and count >= 0 for count in counts.values())
    if not is_ours or cube is None or not isinstance(first, str) or not isinstance(digest, str):
        raise MalformedFile("the table of the files of the cube is not described in h5zarr's form")
    read = partial(_load_table, digest, own.token, load, name, earlier)
    table = FileTable(axes=dict(cube.axes), counts=counts, load=read)
    provenance = replace(own.provenance, sources=table.sources(), cube=replace(cube, pieces=table.pieces()))
    return replace(own, provenance=provenance), table.urls(), LateFiles(first, table.expected())


def _load_table(digest: str, token: str, load: Load, name: str, earlier: LoadEarlier | None) -> bytes:
    """Return the table of the files that has this digest: that of the state that was opened."""
    found = load((FILE_TABLE,)).get(FILE_TABLE)
    if (found is None or digest_of(found) != digest) and earlier is not None:
        found = earlier((FILE_TABLE,), token).get(FILE_TABLE)
    if found is None or digest_of(found) != digest:
        raise SourceChanged(f"{name}: {FILE_TABLE} does not belong to {METADATA}", remedy=_REPLACED)
    return found


def _decode_own(own: Json, content: bytes) -> tuple[OwnIndex | None, Mapping[str, Json] | None]:
    """Return h5zarr's additions, and the existing files by array; nothing if another tool wrote it."""
    match own:
        case {"urls": list(urls), "files": dict(files)} if all(isinstance(url, str) for url in urls):
            described = own.get("file_table")
            return OwnIndex(Provenance.from_json(own), tuple(urls), token_of(content), described), files
    return None, None


def _is_stub(key: str, entries: Mapping[str, Json]) -> bool:
    return key.endswith(".zarray") and f"{key.removesuffix('.zarray')}zarr.json" in entries


def _array_parts(
    key: str, entries: Mapping[str, Json], size: int, files: Mapping[str, Json] | None
) -> ArrayParts | None:
    """Return the files of an array, if `key` is that of an array. `files` lists the existing ones, if known."""
    if not key.endswith("/.zarray"):
        return None
    path = key.removesuffix("/.zarray")
    metadata = entries[key] if isinstance(entries[key], dict) else json.loads(entries[key])
    grid = RegularGrid(tuple(map(int, metadata["shape"])), tuple(map(int, metadata["chunks"])))
    count = grid.chunk_count
    spans = [[0, -(-count // size)]] if files is None else files.get(path, [])
    if sum(end - begin for begin, end in spans) > _MOST_PARTS:
        raise MalformedFile(f"{path}: its {count} chunks, {size} in a file, take more than {_MOST_PARTS} files")
    parts = tuple(
        Part(f"{path}/refs.{number}.parq", number * size, min(size, count - number * size))
        for begin, end in spans
        for number in range(begin, end)
    )
    if any(part.first < 0 or part.count <= 0 for part in parts):
        raise MalformedFile(f"{path}: there are files of chunks outside the grid")
    separator = metadata.get("dimension_separator", ".")
    return ArrayParts(path=path, grid=grid.grid_shape, separator=separator, record_size=size, parts=parts)


def _load_manifests(
    array: ArrayParts,
    token: str,
    numbers: UrlNumbers,
    load: Load,
    name: str,
    earlier: LoadEarlier | None,
    records: Sequence[int] | None,
) -> list[Manifest]:
    """Return the chunks of each of these records of an array; for None, of all records together.

    `numbers` has the numbers of the sources by their URLs.
    """
    if records is None:
        groups = [array]
    else:
        by_first = {part.first: part for part in array.parts}
        wanted = [by_first.get(number * array.record_size) for number in records]
        groups = [replace(array, parts=() if part is None else (part,)) for part in wanted]
    wanted_names = tuple(part.name for group in groups for part in group.parts)
    with naming_errors(name):
        try:
            contents = load(wanted_names)
            return [_decode_manifest(group, token, numbers, contents) for group in groups]
        except SourceChanged:
            found = {} if earlier is None else earlier(wanted_names, token)
            if len(found) < len(wanted_names):
                raise
            return [_decode_manifest(group, token, numbers, found) for group in groups]


def _decode_manifest(array: ArrayParts, token: str, numbers: UrlNumbers, contents: Mapping[str, bytes]) -> Manifest:
    """Return the chunks in the files of an array. They belong to the container that `token` names."""
    if any(part.name not in contents for part in array.parts):
        raise SourceChanged(f"/{array.path}: files with its references are missing", remedy=_REPLACED)
    run, inline = _decode_array(array, contents, token)
    known = numbers.by_url() if run.urls else {}
    if not known.keys() >= set(run.urls):
        raise MalformedFile(f"/{array.path}: some references point to a file that is not among the sources")
    table = np.array([known[url] for url in run.urls] or [0], np.int32)
    source = int(table[run.source]) if isinstance(run.source, int) else table[run.source]
    return Manifest(index=run.index, address=run.address, nbytes=run.nbytes, source=source, inline=inline)


def _decode_others(index: ParquetIndex, contents: Mapping[str, bytes]) -> References:
    """Return the references that another program wrote, as if they were JSON."""
    entries = dict(index.entries)
    runs = []
    for array in index.arrays:
        run, inline = _decode_array(array, contents)
        if len(run.address):
            runs.append(run)
        parts = run.layout.parts
        for chunk, content in inline.items():
            key = "".join(part + str(number) for part, number in zip(parts, chunk, strict=False)) + parts[-1]
            entries[key] = "base64:" + b64encode(content).decode()
    return assemble(Document(entries=entries, runs=tuple(runs)))


def _decode_array(
    array: ArrayParts, contents: Mapping[str, bytes], token: str | None = None
) -> tuple[Run, dict[tuple[int, ...], bytes]]:
    """Return the chunks of an array: the referenced and the inlined ones."""
    runs = [_empty(array.layout)]
    inline: dict[tuple[int, ...], bytes] = {}
    for part in array.parts:
        if part.name not in contents:
            continue
        found = decode_part(contents[part.name], part.count, part.name)
        if token is not None and found.token != token:
            raise SourceChanged(f"{part.name} does not belong to {METADATA}", remedy=_REPLACED)
        rows = found.rows
        if token is not None and rows.count != part.count:
            raise MalformedFile(f"{part.name} has {rows.count} rows instead of {part.count}")
        runs.append(
            Run(
                layout=array.layout,
                index=_unravel(part.first + rows.place, array.grid),
                address=rows.address,
                nbytes=rows.nbytes,
                source=rows.source,
                urls=found.urls,
            )
        )
        places = _unravel(part.first + np.array(list(rows.inline), np.int64), array.grid)
        inline |= dict(zip(map(tuple, places.tolist()), rows.inline.values(), strict=True))
    return append_runs(runs), inline


def _empty(layout: KeyLayout) -> Run:
    none = np.empty(0, np.int64)
    return Run(layout=layout, index=none.reshape(0, layout.rank), address=none, nbytes=none, source=0, urls=())


def _unravel(numbers: Column, grid: tuple[int, ...]) -> Column:
    """Return the coordinates of chunks with row-major numbers, one row each."""
    index = np.empty((len(numbers), len(grid)), np.int64)
    for axis in reversed(range(len(grid))):
        numbers, index[:, axis] = np.divmod(numbers, grid[axis])
    return index


def read_parquet(location: Location, sources: Sources) -> References:
    """Return the references in a directory. A missing file has no chunks; other failures raise."""
    directory, shown = open_directory(location, sources), str(location)
    index = decode_index(directory.read(METADATA), shown)
    if location.path is None and index.own is not None:
        directory = replace(directory, held=directory.load(_wanted_first(index)))
    return decode_parquet(index, directory.load, shown, directory.load_earlier)


def _wanted_first(index: ParquetIndex) -> tuple[str, ...]:
    """Return the files that a reader of remote references needs first: coordinates, with one chunk and request each."""
    names = [part.name for array in index.arrays if prod(array.grid) == 1 for part in array.parts]
    return tuple(names[:_MOST_HELD])
