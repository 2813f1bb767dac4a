"""Write references in Parquet, in the layout that kerchunk invented and fsspec reads lazily.

All metadata are in `.zmetadata`, and the references of an array in files `refs.0.parq`, `refs.1.parq`, … below its
name, of `record_size` rows each, so that a reader loads only what it needs. Files are written one at a time: memory
does not grow with the number of chunks.

fsspec's reader only knows Zarr version 2. Version 3 works as well: its metadata are ordinary entries, chunks have
version 2 keys, and a `.zarray` for each array gives the reader the shape of the grid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol, TypeAlias

from h5zarr.containers.container import Fitted
from h5zarr.containers.file_rows import encode_files
from h5zarr.containers.file_table import describe_files, digest_of
from h5zarr.containers.late_manifest import KnownRecords
from h5zarr.containers.output import dump
from h5zarr.containers.parquet.part_files import carry_empty, encode_part, with_token
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.record_totals import encode_totals
from h5zarr.containers.records import HeldRecords, find_records, spans_of
from h5zarr.containers.streamed_records import StoredRecord, StreamedRecords
from h5zarr.errors import OutputError
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, GroupNode, Json, RecordTotals, sum_nbytes
from h5zarr.zarr_model.joined_manifest import as_joined, is_late
from h5zarr.zarr_model.metadata import EncodedNode

METADATA = ".zmetadata"
FILE_TABLE = "files.parquet"
OURS = "h5zarr"
_RECORD_SIZES = (10_000, 100_000)
_FILES = 100
_MOST_FILES = 100_000
Records: TypeAlias = HeldRecords | StreamedRecords
_KEYS = {"name": "v2", "configuration": {"separator": "."}}


class FileSink(Protocol):
    """Accepts files: a directory, or anything else that takes names and bytes."""

    shown: str

    def start(self, token: str) -> None:
        """Called before the first file, with the token of all of them."""

    def write_file(self, name: str, content: bytes | memoryview, /) -> None: ...


def write_parquet(fitted: Fitted, provenance: Provenance, out: FileSink, *, record_size: int | None = None) -> None:
    """Write the fitted references to `out`, with metadata of either Zarr version."""
    manifests = {path: node.manifest for path, node in fitted.nodes.items() if node.manifest is not None}
    record_size = record_size or choose_record_size(max((one.count for one in manifests.values()), default=0))
    arrays = {
        path[1:]: _find_records(manifest, _grid_shape(fitted.hierarchy.nodes[path]), record_size)
        for path, manifest in manifests.items()
    }
    if fitted.zarr_format == 3:
        head: dict[str, Json] = {"metadata": dict(_entries_v3(fitted))}
    else:
        head = {"zarr_consolidated_format": 1, "metadata": dict(_entries_v2(fitted))}
    _write(head, arrays, fitted.hierarchy.urls, provenance, out, record_size)


def _find_records(manifest: ChunkLocations, grid: tuple[int, ...], size: int) -> Records:
    if is_late(manifest) and grid:
        return StreamedRecords(as_joined(manifest, grid), grid, size, _has_files)
    return find_records(manifest, grid, size)


def _has_files(known: KnownRecords) -> bool:
    return known.load_stored is not None


def choose_record_size(count: int) -> int:
    """Return the rows of a file for arrays of at most `count` chunks.

    A reader loads a whole file for one chunk, so they are small; but large arrays should not need too many of them.
    """
    small, large = _RECORD_SIZES
    return small if count <= small * _FILES else large


def is_own_metadata(content: bytes) -> bool:
    """Return whether a `.zmetadata` with these first bytes is one that h5zarr wrote."""
    return content.startswith(b'{"h5zarr":{"version":')


def token_of(content: bytes) -> str:
    """Return the token by which the files of a container name their `.zmetadata`, given its content."""
    own = json.loads(content).get(OURS)
    token = own.get("token") if isinstance(own, dict) else None
    return token if isinstance(token, str) else sha256(content).hexdigest()[:32]


def _write(
    head: dict[str, Json],
    arrays: Mapping[str, Records],
    urls: Sequence[str],
    provenance: Provenance,
    out: FileSink,
    record_size: int,
) -> None:
    """Write the files, and `.zmetadata` last: without it, they are useless."""
    _check(arrays, out.shown)
    table = None if provenance.cube is None else encode_files(urls, provenance, provenance.cube)
    own = {**provenance.to_json(has_files=table is None), "urls": list(urls) if table is None else []}
    if table is not None and provenance.cube is not None:
        own["file_table"] = {**describe_files(urls, provenance, provenance.cube), "digest": digest_of(table)}
    document = {OURS: own, "record_size": record_size, **head}
    own["token"] = token = _identify(document, arrays)
    out.start(token)
    if table is not None:
        out.write_file(FILE_TABLE, table)
    written = {name: _write_records(name, found, urls, token, out) for name, found in arrays.items()}
    own["files"] = {name: spans_of([one.number for one in some]) for name, some in written.items()}
    own["totals"] = {name: encode_totals(one.totals for one in some) for name, some in written.items()}
    out.write_file(METADATA, dump(document).encode())


def _identify(document: Json, arrays: Mapping[str, Records]) -> str:
    """Return the token of a state: a hash of all that it consists of."""
    found = sha256(dump(document).encode())
    for name, records in arrays.items():
        found.update(name.encode())
        for content in records.identify():
            found.update(content)
    return found.hexdigest()[:32]


class _Written(NamedTuple):
    """A record that was written."""

    number: int
    totals: RecordTotals


def _write_records(name: str, records: Records, urls: Sequence[str], token: str, out: FileSink) -> list[_Written]:
    """Write the records of an array, of which one at a time is in memory."""
    written = []
    for number, record in records:
        if isinstance(record, StoredRecord):
            content: bytes | memoryview = with_token(record.load(), token)
            written.append(_Written(number, record.totals))
        else:
            rows = carry_empty(record)
            content = encode_part(rows, urls, token)
            totals = RecordTotals(len(rows.place), sum_nbytes(rows.nbytes), len(rows.inline))
            written.append(_Written(number, totals))
        out.write_file(f"{name}/refs.{number}.parq", content)
    return written


def _check(arrays: Mapping[str, Records], shown: str) -> None:
    """Raise OutputError if the layout would need too many files."""
    if sum(found.most for found in arrays.values()) > _MOST_FILES:
        what = f"the chunks are so far apart that they need more than {_MOST_FILES} files"
        raise OutputError(shown, what, remedy="Write JSON instead: a name that ends in .json.zst.")


def _grid_shape(node: GroupNode | ArrayNode) -> tuple[int, ...]:
    assert isinstance(node, ArrayNode)
    return node.grid.grid_shape


def _entries_v2(fitted: Fitted) -> Iterator[tuple[str, Json]]:
    """Yield metadata keys and documents."""
    for path, node in fitted.nodes.items():
        for name, document in node.documents.items():
            yield f"{path}/{name}".lstrip("/"), document


def _entries_v3(fitted: Fitted) -> Iterator[tuple[str, Json]]:
    """Yield metadata keys and documents, with a `.zarray` for fsspec beside each array."""
    encoded = {path: _with_keys(node) for path, node in fitted.nodes.items()}
    others = {path[1:]: document for path, document in encoded.items() if path != "/"}
    consolidated = {"kind": "inline", "must_understand": False, "metadata": others}
    for path, node in fitted.hierarchy.nodes.items():
        name = f"{path}/".lstrip("/")
        yield f"{name}zarr.json", encoded[path] if name else {**encoded[path], "consolidated_metadata": consolidated}
        if isinstance(node, ArrayNode):
            yield f"{name}.zarray", _stub(node)


def _stub(node: ArrayNode) -> dict[str, Json]:
    """Return what fsspec numbers chunks by: the shape divided by the chunks.

    fsspec does not know rectilinear grids, but this division gives the right numbers.
    """
    if isinstance(node.grid, RegularGrid):
        return {"shape": node.shape, "chunks": node.chunk_shape}
    return {"shape": node.grid.grid_shape, "chunks": [1] * len(node.shape)}


def _with_keys(node: EncodedNode) -> dict[str, Json]:
    """Return the metadata of a node whose chunks have the keys that fsspec uses."""
    document = node.documents["zarr.json"]
    return {**document, "chunk_key_encoding": _KEYS} if node.manifest is not None else document
