"""References in Parquet, in the layout that kerchunk invented and fsspec reads lazily.

All metadata stand in `.zmetadata`, and the references of an array in files `refs.0.parq`, `refs.1.parq`, … below its
name, of `record_size` rows each, so that a reader loads only what it touches. They are made one at a time: memory does
not grow with the number of chunks.

fsspec's reader knows Zarr version 2 only. Version 3 goes through it: its metadata are entries like any other, chunks
have keys like those of version 2, and a `.zarray` for each array tells the reader the shape of the grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Protocol

from h5zarr.errors import OutputError, Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.refs.container import dump
from h5zarr.refs.json_v3 import encode_metadata_v3
from h5zarr.refs.names import check_parquet, leave_out_unreadable
from h5zarr.refs.parquet_files import encode_part
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.records import Records, find_records
from h5zarr.refs.v2_metadata import NodeV2

METADATA = ".zmetadata"
OURS = "h5zarr"
RECORD_SIZE = 100_000
_MOST_FILES = 100_000
_KEYS = {"name": "v2", "configuration": {"separator": "."}}


class FileSink(Protocol):
    """What files are written to: a directory, or anything else that takes names and bytes."""

    shown: str

    def write_file(self, name: str, content: bytes | memoryview, /) -> None: ...


def write_parquet_v3(
    hierarchy: Hierarchy, provenance: Provenance, out: FileSink, *, record_size: int = RECORD_SIZE
) -> tuple[Problem, ...]:
    """Write `hierarchy` to `out` with Zarr version 3 metadata. Return what had to be left out."""
    readable, problems = leave_out_unreadable(hierarchy)
    arrays = {
        path[1:]: find_records(node.manifest, _grid(node.shape, node.chunk_shape), record_size)
        for path, node in readable.nodes.items()
        if isinstance(node, ArrayNode)
    }
    _write({"metadata": dict(_entries_v3(readable))}, arrays, hierarchy.urls, provenance, out, record_size)
    return problems


def write_parquet_v2(
    nodes: Mapping[str, NodeV2],
    urls: Sequence[str],
    provenance: Provenance,
    out: FileSink,
    *,
    record_size: int = RECORD_SIZE,
) -> None:
    """Write nodes that have been encoded for version 2, whose manifests mean `urls` by number."""
    arrays = {
        path[1:]: find_records(node.manifest, _grid(node.metadata["shape"], node.metadata["chunks"]), record_size)
        for path, node in nodes.items()
        if node.manifest is not None
    }
    metadata = {
        f"{path}/{name}".lstrip("/"): value
        for path, node in nodes.items()
        for name, value in ((node.metadata_name, node.metadata), (".zattrs", node.attributes))
    }
    head = {"zarr_consolidated_format": 1, "metadata": metadata}
    _write(head, arrays, urls, provenance, out, record_size)


def is_own_metadata(content: bytes) -> bool:
    """Return whether a `.zmetadata` with these first bytes is one that h5zarr wrote."""
    return content.startswith(b'{"h5zarr":{"version":')


def token_of(content: bytes) -> str:
    """Return what the files of a container say of the `.zmetadata` that they belong to, given its content."""
    return sha256(content).hexdigest()[:32]


def _write(
    head: dict[str, Json],
    arrays: Mapping[str, Records],
    urls: Sequence[str],
    provenance: Provenance,
    out: FileSink,
    record_size: int,
) -> None:
    """Write the files, and `.zmetadata` last: without it, they are nothing."""
    _check(arrays, out.shown)
    told = {**provenance.to_json(), "urls": urls, "files": {name: found.spans() for name, found in arrays.items()}}
    content = dump({OURS: told, "record_size": record_size, **head}).encode()
    token = token_of(content)
    for name, found in arrays.items():
        for number in found.numbers:
            out.write_file(f"{name}/refs.{number}.parq", encode_part(found.rows(number), urls, token))
    out.write_file(METADATA, content)


def _check(arrays: Mapping[str, Records], shown: str) -> None:
    """Raise OutputError for what this layout cannot hold."""
    for problem in check_parquet(f"/{name}" for name in arrays):
        raise OutputError(shown, str(problem), remedy=problem.remedy)
    if sum(len(found.numbers) for found in arrays.values()) > _MOST_FILES:
        what = f"the chunks are so far apart that they need more than {_MOST_FILES} files"
        raise OutputError(shown, what, remedy="Write JSON instead: a name that ends in .json.zst.")


def _grid(shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))


def _entries_v3(hierarchy: Hierarchy) -> Iterator[tuple[str, Json]]:
    """Yield the keys of metadata, and what stands under them."""
    encoded = {path: _encode(node) for path, node in hierarchy.nodes.items()}
    others = {path[1:]: told for path, told in encoded.items() if path != "/"}
    consolidated = {"kind": "inline", "must_understand": False, "metadata": others}
    for path, node in hierarchy.nodes.items():
        name = f"{path}/".lstrip("/")
        yield f"{name}zarr.json", encoded[path] if name else {**encoded[path], "consolidated_metadata": consolidated}
        if isinstance(node, ArrayNode):
            yield f"{name}.zarray", {"shape": node.shape, "chunks": node.chunk_shape}


def _encode(node: GroupNode | ArrayNode) -> dict[str, Json]:
    told = encode_metadata_v3(node)
    return {**told, "chunk_key_encoding": _KEYS} if isinstance(node, ArrayNode) else told
