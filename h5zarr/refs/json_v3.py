"""References with Zarr version 3 metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h5zarr.errors import Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.container import Sink, chunk_entries, dump, escape, text_entry, write_container
from h5zarr.refs.names import leave_out_unreadable
from h5zarr.refs.provenance import Provenance


def write_json_v3(hierarchy: Hierarchy, provenance: Provenance, out: Sink) -> tuple[Problem, ...]:
    """Write `hierarchy` to `out` as reference JSON with Zarr version 3 metadata. Return what had to be left out.

    First the root's metadata, which repeats that of all nodes, then each node's metadata followed by its chunks, in the
    hierarchy's order. The same input gives the same bytes.
    """
    readable, problems = leave_out_unreadable(hierarchy)
    write_container(provenance, _entries(readable), out)
    return problems


def encode_metadata_v3(node: GroupNode | ArrayNode) -> dict[str, Json]:
    """Return what stands in the node's zarr.json, but for consolidated metadata."""
    if isinstance(node, GroupNode):
        return {"zarr_format": 3, "node_type": "group", "attributes": dict(node.attributes)}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": node.shape,
        "data_type": node.data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": node.chunk_shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": node.fill_value,
        "codecs": node.codecs,
        "attributes": dict(node.attributes),
        "dimension_names": node.dimension_names,
    }


def _entries(hierarchy: Hierarchy) -> Iterator[bytes]:
    texts = {path: escape(dump(encode_metadata_v3(node))) for path, node in hierarchy.nodes.items()}
    for path, node in hierarchy.nodes.items():
        if path == "/":
            yield text_entry("zarr.json", *_consolidate(texts))
        else:
            yield text_entry(f"{path[1:]}/zarr.json", texts[path])
        if isinstance(node, ArrayNode):
            yield from _chunks(path, node, hierarchy.urls)


def _consolidate(texts: dict[str, bytes]) -> Iterator[bytes]:
    """Yield the escaped text of the root's metadata, in parts, with the metadata of all other nodes inside.

    Without it readers show nested groups as empty.
    """
    yield texts["/"].removesuffix(b"}")
    yield escape(',"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{')
    separator = ""
    for path, text in texts.items():
        if path != "/":
            yield escape(f"{separator}{dump(path[1:])}:") + text
            separator = ","
    yield b"}}}"


def _chunks(path: str, node: ArrayNode, urls: Sequence[str]) -> Iterator[bytes]:
    return chunk_entries(KeyLayout(path, "c", "/", len(node.shape)).parts, node.manifest, urls)
