"""The keys of a Zarr version 3 store: metadata and chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from h5zarr.zarr_model.chunk_keys import KeyLayout, match_keys
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.zarr_model.v3_nodes import encode_metadata_v3

_METADATA = "zarr.json"


def metadata_of(hierarchy: Hierarchy, path: str) -> bytes:
    """Return the content of a node's zarr.json. The root's includes consolidated metadata."""
    found: dict[str, Json] = encode_metadata_v3(hierarchy.nodes[path])
    if path == "/":
        others = {name[1:]: encode_metadata_v3(node) for name, node in hierarchy.nodes.items() if name != "/"}
        found["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": others}
    return json.dumps(found).encode()


def find_metadata(hierarchy: Hierarchy, key: str) -> str | None:
    """Return the path of the node whose metadata are under `key`, if it is a metadata key."""
    if key == _METADATA:
        return "/"
    path = f"/{key.removesuffix('/' + _METADATA)}"
    return path if key.endswith(f"/{_METADATA}") and path in hierarchy.nodes else None


def find_chunk(hierarchy: Hierarchy, key: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the path of an array and the coordinates of a chunk, if `key` is a chunk key."""
    path = f"/{key[:-2] if key.endswith('/c') else key.rpartition('/c/')[0]}"
    node = hierarchy.nodes.get(path)
    if not isinstance(node, ArrayNode):
        return None
    (index,) = match_keys(_layout_of(path, node), [key])
    return None if index is None else (path, index)


def _layout_of(path: str, node: ArrayNode) -> KeyLayout:
    return KeyLayout(path, "c", "/", len(node.shape))


def list_keys(hierarchy: Hierarchy) -> Iterator[str]:
    """Yield all keys, a node's metadata before its chunks."""
    for path, node in hierarchy.nodes.items():
        yield f"{path}/{_METADATA}".lstrip("/")
        if isinstance(node, ArrayNode):
            parts = _layout_of(path, node).parts
            for index in chain(node.manifest.index.tolist(), node.manifest.inline):
                yield "".join(part + str(number) for part, number in zip(parts, index, strict=False)) + parts[-1]


def list_children(hierarchy: Hierarchy, prefix: str) -> Iterator[str]:
    """Yield the direct children of `prefix`."""
    path = f"/{prefix.strip('/')}"
    node = hierarchy.nodes.get(path)
    if node is None:
        inner = f"{prefix.strip('/')}/"
        yield from dict.fromkeys(
            key.removeprefix(inner).partition("/")[0] for key in list_keys(hierarchy) if key.startswith(inner)
        )
        return
    yield _METADATA
    if isinstance(node, GroupNode):
        below = "/" if path == "/" else f"{path}/"
        for other in hierarchy.nodes:
            name = other.removeprefix(below)
            if other.startswith(below) and name and "/" not in name:
                yield name
    elif node.manifest.count or node.manifest.inline:
        yield "c"
