"""From references in Parquet back to a `Hierarchy`: the layout that kerchunk writes and fsspec reads.

A directory has all metadata in `.zmetadata`, and for each array files `refs.0.parq`, `refs.1.parq`, … of `record_size`
rows each: a row for each chunk of the grid, in row-major order, with `path`, `offset`, `size` and `raw`. A file that is
not there has no chunks. Arrays with Zarr version 3 metadata have a `.zarray` besides, which only tells their shape.

What h5zarr wrote says besides which files there are, and which URLs stand in them: so the files need not be read before
somebody wants a chunk.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from h5zarr.errors import MalformedFile, SourceChanged
from h5zarr.hierarchy import ArrayNode, Json, Manifest
from h5zarr.io.ranges import Column
from h5zarr.refs.chunk_entries import Run
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.document import Document
from h5zarr.refs.late_manifest import LateManifest
from h5zarr.refs.manifests import append_runs
from h5zarr.refs.parquet_files import decode_part
from h5zarr.refs.parquet_writing import METADATA, OURS, token_of
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.reading import References, assemble, told_of

_MOST_PARTS = 1 << 20
_REPLACED = "Open it again, for it was replaced; if that does not help, only some of it was: write or copy it again."


@dataclass(frozen=True, slots=True)
class Part:
    """A file with the references of some chunks of an array: those from number `first` on, at most `count`."""

    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayParts:
    """The files with the references of an array, and how its chunks are counted."""

    path: str
    grid: tuple[int, ...]
    separator: str
    parts: tuple[Part, ...]

    @property
    def layout(self) -> KeyLayout:
        return KeyLayout(f"/{self.path}", "", self.separator, len(self.grid))


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """What h5zarr says in `.zmetadata` besides: all URLs, and what its files say of the container that they are of."""

    provenance: Provenance
    urls: tuple[str, ...]
    token: str


@dataclass(frozen=True, slots=True)
class ParquetIndex:
    """What `.zmetadata` says: the metadata by key, and the files that hold the references. `own` if h5zarr wrote it."""

    entries: Mapping[str, Json]
    arrays: tuple[ArrayParts, ...]
    own: OwnIndex | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The files of all arrays."""
        return tuple(part for array in self.arrays for part in array.parts)


Load = Callable[[tuple[str, ...]], Mapping[str, bytes]]
"""Reads files by their names, and returns the contents of those that are there."""


def decode_index(content: bytes, name: str) -> ParquetIndex:
    """Return what the content of `.zmetadata` says; `name` is how errors call the references."""
    with told_of(name):
        match json.loads(content):
            case {"metadata": dict(entries), "record_size": int(size), **others} if size > 0:
                own, files = _decode_own(others.get(OURS), content)
                arrays = tuple(found for key in entries if (found := _array_parts(key, entries, size, files)))
                # An array of version 3 is described by its zarr.json alone.
                kept = {key: value for key, value in entries.items() if not _is_stub(key, entries)}
                return ParquetIndex(kept, arrays, own)
        raise MalformedFile(f"{METADATA} has no metadata, or no size of the files with references")


def decode_parquet(index: ParquetIndex, load: Load, name: str) -> References:
    """Return what references hold. Files of h5zarr's are read with `load` when a manifest is looked at, others now."""
    with told_of(name):
        if index.own is None:
            return _decode_others(index, load(tuple(part.name for part in index.parts)))
        found = assemble(Document(entries=dict(index.entries), provenance=index.own.provenance))
        nodes = dict(found.hierarchy.nodes)
        for array in index.arrays:
            node = nodes.get(f"/{array.path}")
            if isinstance(node, ArrayNode):
                late = LateManifest(partial(_load_manifest, array, index.own, load, name))
                nodes[f"/{array.path}"] = replace(node, manifest=late)
        hierarchy = replace(found.hierarchy, nodes=nodes, urls=index.own.urls)
        return References(hierarchy=hierarchy, provenance=found.provenance)


def _decode_own(told: Json, content: bytes) -> tuple[OwnIndex | None, Mapping[str, Json] | None]:
    """Return what h5zarr says besides, and which files there are, by array; nothing if another wrote it."""
    match told:
        case {"urls": list(urls), "files": dict(files)} if all(isinstance(url, str) for url in urls):
            return OwnIndex(Provenance.from_json(told), tuple(urls), token_of(content)), files
    return None, None


def _is_stub(key: str, entries: Mapping[str, Json]) -> bool:
    return key.endswith(".zarray") and f"{key.removesuffix('.zarray')}zarr.json" in entries


def _array_parts(
    key: str, entries: Mapping[str, Json], size: int, files: Mapping[str, Json] | None
) -> ArrayParts | None:
    """Return the files of an array, if `key` is that of one. `files` says which there are, if anything does."""
    if not key.endswith("/.zarray"):
        return None
    path = key.removesuffix("/.zarray")
    told = entries[key] if isinstance(entries[key], dict) else json.loads(entries[key])
    grid = tuple(-(-int(length) // int(chunk)) for length, chunk in zip(told["shape"], told["chunks"], strict=True))
    count = prod(grid)
    spans = [[0, -(-count // size)]] if files is None else files.get(path, [])
    if sum(end - begin for begin, end in spans) > _MOST_PARTS:
        raise MalformedFile(f"{path}: {count} chunks in files of {size} are too many files")
    parts = tuple(
        Part(f"{path}/refs.{number}.parq", number * size, min(size, count - number * size))
        for begin, end in spans
        for number in range(begin, end)
    )
    if any(part.first < 0 or part.count <= 0 for part in parts):
        raise MalformedFile(f"{path}: there are files of chunks outside the grid")
    return ArrayParts(path=path, grid=grid, separator=told.get("dimension_separator", "."), parts=parts)


def _load_manifest(array: ArrayParts, own: OwnIndex, load: Load, name: str) -> Manifest:
    """Return where the chunks of an array are, as the files of the container say that `own` is of."""
    contents = load(tuple(part.name for part in array.parts))
    with told_of(name):
        if any(part.name not in contents for part in array.parts):
            raise SourceChanged(f"/{array.path}: files with its references are gone", remedy=_REPLACED)
        run, inline = _decode_array(array, contents, own.token)
        numbers = {url: number for number, url in enumerate(own.urls)}
        if not numbers.keys() >= set(run.urls):
            raise MalformedFile(f"/{array.path}: there are references to a file that is not among the sources")
        table = np.array([numbers[url] for url in run.urls] or [0], np.int32)
        source = int(table[run.source]) if isinstance(run.source, int) else table[run.source]
        return Manifest(index=run.index, address=run.address, nbytes=run.nbytes, source=source, inline=inline)


def _decode_others(index: ParquetIndex, contents: Mapping[str, bytes]) -> References:
    """Return what references hold that another program wrote, as if they were JSON."""
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
    """Return the chunks of an array: where they are, and the bytes of those that are inline."""
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
            raise MalformedFile(f"{part.name} has {rows.count} rows, and not {part.count}")
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
    """Return the coordinates of chunks that are counted in row-major order, a row for each."""
    index = np.empty((len(numbers), len(grid)), np.int64)
    for axis in reversed(range(len(grid))):
        numbers, index[:, axis] = np.divmod(numbers, grid[axis])
    return index
