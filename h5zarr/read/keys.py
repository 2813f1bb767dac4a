"""The keys of a Zarr version 3 store: which of them are metadata, and which are chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.json_v3 import encode_metadata_v3

_METADATA = "zarr.json"


def metadata_of(hierarchy: Hierarchy, path: str) -> bytes:
    """Return the content of a node's zarr.json; the root's repeats that of all others."""
    found: dict[str, Json] = encode_metadata_v3(hierarchy.nodes[path])
    if path == "/":
        others = {name[1:]: encode_metadata_v3(node) for name, node in hierarchy.nodes.items() if name != "/"}
        found["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": others}
    return json.dumps(found).encode()


def find_metadata(hierarchy: Hierarchy, key: str) -> str | None:
    """Return the path of the node whose metadata stand under `key`, if it is such a key."""
    if key == _METADATA:
        return "/"
    path = f"/{key.removesuffix('/' + _METADATA)}"
    return path if key.endswith(f"/{_METADATA}") and path in hierarchy.nodes else None


def find_chunk(hierarchy: Hierarchy, key: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the path of an array and the coordinates of a chunk, if `key` is that of a chunk."""
    if key.endswith("/c"):
        path, coordinates = f"/{key[:-2]}", ""
    else:
        prefix, found, coordinates = key.rpartition("/c/")
        if not found:
            return None
        path = f"/{prefix}"
    node = hierarchy.nodes.get(path)
    numbers = coordinates.split("/") if coordinates else []
    if not isinstance(node, ArrayNode) or len(numbers) != len(node.shape):
        return None
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        return None
    return path, tuple(map(int, numbers))


def list_keys(hierarchy: Hierarchy) -> Iterator[str]:
    """Yield all keys, those of a node's metadata before those of its chunks."""
    for path, node in hierarchy.nodes.items():
        yield f"{path}/{_METADATA}".lstrip("/")
        if isinstance(node, ArrayNode):
            parts = KeyLayout(path, "c", "/", len(node.shape)).parts
            for index in chain(node.manifest.index.tolist(), node.manifest.inline):
                yield "".join(part + str(number) for part, number in zip(parts, index, strict=False)) + parts[-1]


def list_children(hierarchy: Hierarchy, prefix: str) -> Iterator[str]:
    """Yield what stands directly under `prefix`."""
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
