"""The content of `.zmetadata`: metadata by key, the files with the references, and what h5zarr adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from h5zarr.containers.parquet.parquet_writing import METADATA, OURS, token_of
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.record_totals import decode_totals
from h5zarr.containers.references import naming_errors
from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import Json, RecordTotals

_MOST_PARTS = 1 << 20
_ZARR_ALREADY = "The data is Zarr already: open it with xarray.open_zarr or zarr.open."


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
    totals: Mapping[int, RecordTotals] | None = None

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
    totals: Mapping[str, Json] | None = None


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


def decode_index(content: bytes, name: str) -> ParquetIndex:
    """Return the decoded content of `.zmetadata`. `name` is for errors."""
    with naming_errors(name):
        match json.loads(content):
            case {"metadata": dict(entries), "record_size": int(size), **others} if size > 0:
                own, files = _decode_own(others.get(OURS), content)
                arrays = tuple(found for key in entries if (found := _array_parts(key, entries, size, files)))
                if own is not None and own.totals is not None:
                    arrays = tuple(_with_totals(array, own.totals.get(array.path)) for array in arrays)
                # The zarr.json alone describes an array of version 3.
                kept = {key: value for key, value in entries.items() if not _is_stub(key, entries)}
                return ParquetIndex(kept, arrays, own)
            case {"zarr_consolidated_format": _}:
                raise Unsupported("this is a directory of Zarr data, not references", remedy=_ZARR_ALREADY)
        raise MalformedFile(f"{METADATA} has no metadata, or no record size")


def _decode_own(own: Json, content: bytes) -> tuple[OwnIndex | None, Mapping[str, Json] | None]:
    """Return h5zarr's additions, and the existing files by array; nothing if another tool wrote it."""
    match own:
        case {"urls": list(urls), "files": dict(files)} if all(isinstance(url, str) for url in urls):
            late = own.get("file_table"), own.get("totals")
            return OwnIndex(Provenance.from_json(own), tuple(urls), token_of(content), *late), files
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


def _with_totals(array: ArrayParts, described: Json) -> ArrayParts:
    """Return an array with the totals of its records."""
    if described is None:
        return array
    numbers = [part.first // array.record_size for part in array.parts]
    return replace(array, totals=decode_totals(array.path, numbers, described))
