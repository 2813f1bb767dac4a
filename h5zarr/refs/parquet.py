"""From references in Parquet back to a `Hierarchy`: the layout that kerchunk writes and fsspec reads.

A directory has all metadata in `.zmetadata`, and for each array files `refs.0.parq`, `refs.1.parq`, … of `record_size`
rows each: a row for each chunk of the grid, in row-major order, with `path`, `offset`, `size` and `raw`. A file that is
not there has no chunks. Arrays with Zarr version 3 metadata have a `.zarray` besides, which only tells their shape.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hierarchy import Json
from h5zarr.refs.document import Document
from h5zarr.refs.reading import References, assemble, told_of

METADATA = ".zmetadata"
_MOST_PARTS = 1 << 20


class NoParquet(Unsupported):
    """The package that reads Parquet is not installed."""

    remedy = "Install it: pip install pyarrow"


@dataclass(frozen=True, slots=True)
class Part:
    """A file with the references of some chunks of an array: those from number `first` on, at most `count`."""

    name: str
    path: str
    grid: tuple[int, ...]
    separator: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class ParquetIndex:
    """What `.zmetadata` says: the metadata by key, and the files that hold the references."""

    entries: Mapping[str, Json]
    parts: tuple[Part, ...]


def decode_index(content: bytes, name: str) -> ParquetIndex:
    """Return what the content of `.zmetadata` says; `name` is how errors call the references."""
    with told_of(name):
        match json.loads(content):
            case {"metadata": dict(entries), "record_size": int(size)} if size > 0:
                parts = tuple(part for key in entries for part in _parts(key, entries, size))
                # An array of version 3 is described by its zarr.json alone.
                kept = {key: value for key, value in entries.items() if not _is_stub(key, entries)}
                return ParquetIndex(kept, parts)
        raise MalformedFile(f"{METADATA} has no metadata, or no size of the files with references")


def decode_parquet(index: ParquetIndex, contents: Mapping[str, bytes], name: str) -> References:
    """Return what references hold, given the contents of those files that are there, by their names."""
    entries = dict(index.entries)
    with told_of(name):
        for part in index.parts:
            if part.name in contents:
                entries.update(_decode_part(part, contents[part.name]))
        return assemble(Document(entries=entries))


def _is_stub(key: str, entries: Mapping[str, Json]) -> bool:
    return key.endswith(".zarray") and f"{key.removesuffix('.zarray')}zarr.json" in entries


def _parts(key: str, entries: Mapping[str, Json], size: int) -> Iterator[Part]:
    """Yield the files of an array, if `key` is that of one."""
    if not key.endswith("/.zarray"):
        return
    path = key.removesuffix("/.zarray")
    told = entries[key] if isinstance(entries[key], dict) else json.loads(entries[key])
    grid = tuple(-(-int(length) // int(chunk)) for length, chunk in zip(told["shape"], told["chunks"], strict=True))
    count = prod(grid)
    if -(-count // size) > _MOST_PARTS:
        raise MalformedFile(f"{path}: {count} chunks in files of {size} are too many files")
    for number in range(-(-count // size)):
        first = number * size
        name = f"{path}/refs.{number}.parq"
        yield Part(name, path, grid, told.get("dimension_separator", "."), first, min(size, count - first))


def _decode_part(part: Part, content: bytes) -> Iterator[tuple[str, Json]]:
    """Yield the entries of the chunks in a file, as the reference JSON has them."""
    paths, offsets, sizes, raws = _read_columns(content, part.name)
    rows = min(part.count, len(paths))
    columns = np.unravel_index(np.arange(part.first, part.first + rows), part.grid) if part.grid else ()
    indices = zip(*[column.tolist() for column in columns], strict=True) if columns else iter([()] * rows)
    for index, path, offset, size, raw in zip(indices, paths, offsets, sizes, raws, strict=False):
        key = f"{part.path}/{part.separator.join(map(str, index)) or '0'}"
        if raw:
            yield key, "base64:" + b64encode(raw if isinstance(raw, bytes) else str(raw).encode()).decode()
        elif path is not None:
            url = path.decode() if isinstance(path, bytes) else str(path)
            url = json.loads(url) if url.startswith('"') else url
            yield key, [url] if not offset and not size else [url, int(offset), int(size)]


def _read_columns(content: bytes, name: str) -> list[list[Any]]:
    try:
        from pyarrow import ArrowException  # type: ignore[import-untyped, unused-ignore]
        from pyarrow.parquet import read_table  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise NoParquet("a package to read Parquet is missing") from None
    try:
        table = read_table(BytesIO(content), columns=["path", "offset", "size", "raw"])
        return [table[column].to_pylist() for column in ("path", "offset", "size", "raw")]
    except (ArrowException, OSError, KeyError) as error:
        raise MalformedFile(f"{name} cannot be read as Parquet: {error}") from error
