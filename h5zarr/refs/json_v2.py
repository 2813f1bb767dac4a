"""References with Zarr version 2 metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from h5zarr.errors import Problem
from h5zarr.hierarchy import Hierarchy
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.container import Sink, chunk_entries, dump, escape, text_entry, write_container
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.v2_metadata import NodeV2, encode_v2


def write_json_v2(hierarchy: Hierarchy, provenance: Provenance, out: Sink) -> tuple[Problem, ...]:
    """Write `hierarchy` to `out` as reference JSON with Zarr version 2 metadata. Return what had to be left out.

    First the consolidated metadata of all nodes, then each node's metadata followed by its chunks, in the hierarchy's
    order. The same input gives the same bytes.
    """
    nodes, problems = encode_v2(hierarchy)
    write_nodes_v2(nodes, hierarchy.urls, provenance, out)
    return problems


def write_nodes_v2(nodes: Mapping[str, NodeV2], urls: Sequence[str], provenance: Provenance, out: Sink) -> None:
    """Write nodes that have been encoded for version 2, whose manifests mean `urls` by number."""
    write_container(provenance, _entries(nodes, urls), out)


def _entries(nodes: Mapping[str, NodeV2], urls: Sequence[str]) -> Iterator[bytes]:
    texts = {path: _texts(path, node) for path, node in nodes.items()}
    yield text_entry(".zmetadata", *_consolidate(text for each in texts.values() for text in each.items()))
    for path, node in nodes.items():
        for key, text in texts[path].items():
            yield text_entry(key, text)
        if node.manifest is not None:
            yield from chunk_entries(KeyLayout(path, "", ".", node.rank).parts, node.manifest, urls)


def _texts(path: str, node: NodeV2) -> dict[str, bytes]:
    """Return the escaped texts of a node's metadata, by key."""
    prefix = f"{path}/".lstrip("/")
    return {
        f"{prefix}{node.metadata_name}": escape(dump(node.metadata)),
        f"{prefix}.zattrs": escape(dump(node.attributes)),
    }


def _consolidate(texts: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the escaped text of .zmetadata, in parts."""
    yield escape('{"zarr_consolidated_format":1,"metadata":{')
    separator = ""
    for key, text in texts:
        yield escape(f"{separator}{dump(key)}:") + text
        separator = ","
    yield b"}}"
