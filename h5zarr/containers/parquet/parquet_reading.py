"""Read references in Parquet as a `Hierarchy`: the layout that kerchunk writes and fsspec reads.

A directory has all metadata in `.zmetadata`, and for each array files `refs.0.parq`, `refs.1.parq`, … of `record_size`
rows each: a row for each chunk of the grid, in row-major order, with `path`, `offset`, `size` and `raw`. A missing file
has no chunks. Arrays with Zarr version 3 metadata also have a `.zarray`, which only gives their shape.

References written by h5zarr also list the files and their URLs, so files need not be read before a chunk is needed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from h5zarr.containers.chunk_runs import Run, append_runs
from h5zarr.containers.file_table import TableBlock, digest_of, find_late_files, not_described
from h5zarr.containers.late_manifest import KnownRecords, LateManifest
from h5zarr.containers.parquet.parquet_index import ArrayParts, OwnIndex, ParquetIndex, decode_index
from h5zarr.containers.parquet.parquet_writing import FILE_TABLE, METADATA
from h5zarr.containers.parquet.part_files import decode_part, decode_token
from h5zarr.containers.parquet.reference_directory import open_directory
from h5zarr.containers.references import Document, LateFiles, References, assemble, naming_errors
from h5zarr.errors import MalformedFile, SourceChanged
from h5zarr.io.location import Location
from h5zarr.io.ranges import Column
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest

_MOST_HELD = 256
_REPLACED = (
    "Open it again: it was replaced. If that does not help, it was replaced only partly: write or copy it again."
)


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
                known = None if array.totals is None else _find_known(array, own.token, load, name, earlier)
                nodes[f"/{array.path}"] = replace(node, manifest=LateManifest(read, array.record_size, known))
        hierarchy = replace(found.hierarchy, nodes=nodes, urls=urls)
        return References(hierarchy=hierarchy, provenance=own.provenance, late=late)


def _with_late_files(
    own: OwnIndex, described: Mapping[str, Json], load: Load, name: str, earlier: LoadEarlier | None
) -> tuple[OwnIndex, Sequence[str], LateFiles]:
    """Return the files of a cube, whose table is read when it is needed."""
    digest = described.get("digest")
    if not isinstance(digest, str):
        raise not_described()
    read = partial(_load_table, digest, own.token, load, name, earlier)
    provenance, urls, late = find_late_files(described, own.provenance, read)
    return replace(own, provenance=provenance), urls, late


def _load_table(digest: str, token: str, load: Load, name: str, earlier: LoadEarlier | None) -> list[TableBlock]:
    """Return the table of the files that has this digest: that of the state that was opened."""
    found = load((FILE_TABLE,)).get(FILE_TABLE)
    if (found is None or digest_of(found) != digest) and earlier is not None:
        found = earlier((FILE_TABLE,), token).get(FILE_TABLE)
    if found is None or digest_of(found) != digest:
        raise SourceChanged(f"{name}: {FILE_TABLE} does not belong to {METADATA}", remedy=_REPLACED)
    return [TableBlock(found)]


def _find_known(array: ArrayParts, token: str, load: Load, name: str, earlier: LoadEarlier | None) -> KnownRecords:
    """Return what is known about the records of an array without reading them."""
    assert array.totals is not None
    stored = partial(_load_stored, array, token, load, name, earlier)
    return KnownRecords(totals=array.totals, load_stored=stored, token=token)


def _load_stored(
    array: ArrayParts, token: str, load: Load, name: str, earlier: LoadEarlier | None, record: int
) -> bytes:
    """Return the file of a record, after checking that it belongs to the container with this token."""
    wanted = f"{array.path}/refs.{record}.parq"
    with naming_errors(name):
        found = load((wanted,)).get(wanted)
        if found is None or decode_token(found) != token:
            found = None if earlier is None else earlier((wanted,), token).get(wanted)
        if found is None or decode_token(found) != token:
            raise SourceChanged(f"{wanted} does not belong to {METADATA}", remedy=_REPLACED)
        return found


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
