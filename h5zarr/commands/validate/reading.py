"""Read a raw reference file: JSON of either version, perhaps compressed, or a directory of Parquet files.

Nothing else is opened: neither the referenced files nor metadata stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from h5zarr.commands.validate.raw import CONSOLIDATED_V2, V3, Metadata, RawNode, RawReferences, is_metadata, path_above
from h5zarr.commands.validate.raw_chunks import Load, PartReader, find_inline
from h5zarr.containers.json.json_reading import decompress_json
from h5zarr.containers.parquet.parquet_writing import METADATA, OURS, token_of
from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.chunk_keys import Below, group_entries
from h5zarr.zarr_model.hierarchy import Json

_REMEDY = "Check that it is a complete reference file."


def decode_json(content: bytes, name: str) -> RawReferences:
    """Return the content of a reference JSON. `name` is for error messages. Raises MalformedFile if it is not one."""
    metadata = Metadata()
    document = _load(metadata, decompress_json(content, name), name)
    entries = document.get("refs") if "version" in document else document
    if not isinstance(entries, dict):
        raise MalformedFile(f"{name}: it has no object of references (refs)", remedy=_REMEDY)
    others = {key: value for key, value in document.items() if key != "refs"} if "version" in document else {}
    for key, value in entries.items():
        if is_metadata(key):
            metadata.add(key, value)
    raw = _collect(metadata, others, "json", name)
    chunks = {key: value for key, value in entries.items() if not is_metadata(key)}
    nodes = _with_chunks(raw.nodes, chunks, "/c/" if raw.zarr_format == 3 else "/")
    known = {key for node in nodes.values() for key in node.below.keys}
    stray = tuple(key for key in chunks if key not in known) if len(known) < len(chunks) else ()
    return replace(raw, nodes=nodes, entries=chunks, stray=stray)


def decode_parquet(content: bytes, load: Load, name: str) -> RawReferences:
    """Return the content of references in Parquet. `content` is `.zmetadata`, and `load` reads the other files."""
    metadata = Metadata()
    document = _load(metadata, content, name)
    entries = document.get("metadata")
    if not isinstance(entries, dict):
        raise MalformedFile(f"{name}: {METADATA} contains no metadata", remedy=_REMEDY)
    for key, value in entries.items():
        if is_metadata(key):
            metadata.add(key, value)
    others = {key: value for key, value in document.items() if key != "metadata"}
    raw = _collect(metadata, others, "parquet", name)
    if raw.zarr_format == 2:
        raw = replace(raw, consolidated=document)
    return replace(raw, nodes=_with_parts(raw, metadata, load, content))


def _load(metadata: Metadata, content: bytes, name: str) -> dict[str, Json]:
    try:
        document = metadata.loader.load("/", content)
    except ValueError as error:
        raise MalformedFile(f"{name}: it is not valid JSON: {error}", remedy=_REMEDY) from None
    if not isinstance(document, dict):
        raise MalformedFile(f"{name}: it is not a JSON object", remedy=_REMEDY)
    return document


def _collect(metadata: Metadata, document: Mapping[str, Json], container: str, name: str) -> RawReferences:
    """Return the nodes described by metadata, without chunks."""
    keys = [*metadata.objects, *metadata.unreadable, *metadata.elsewhere]
    if not keys:
        raise MalformedFile(f"{name}: it has no Zarr metadata", remedy=_REMEDY)
    is_v3 = any(key.rpartition("/")[2] == V3 for key in keys)
    nodes, consolidated, only = _nodes_v3(metadata.objects) if is_v3 else _nodes_v2(metadata.objects)
    return RawReferences(
        zarr_format=3 if is_v3 else 2,
        container=container,
        document=document,
        nodes=nodes,
        consolidated=consolidated,
        only_consolidated=only,
        unreadable=metadata.unreadable,
        elsewhere=tuple(metadata.elsewhere),
        repeated=tuple(metadata.loader.repeated),
        odd_numbers=tuple(metadata.loader.odd_numbers),
    )


def _nodes_v3(objects: Mapping[str, dict[str, Json]]) -> tuple[dict[str, RawNode], Json, tuple[str, ...]]:
    """Return the nodes by path, the consolidated metadata, and the paths of nodes that exist only there."""
    own = {path_above(key): (key, document) for key, document in objects.items() if key.rpartition("/")[2] == V3}
    consolidated = objects.get(V3, {}).get("consolidated_metadata")
    inside = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    others = {f"/{path}": document for path, document in inside.items()} if isinstance(inside, dict) else {}
    only = tuple(path for path, document in others.items() if path not in own and isinstance(document, dict))
    found = {**own, **{path: (f"{path[1:]}/{V3}", others[path]) for path in only}}
    nodes = {
        path: RawNode(
            path=path,
            key=key,
            metadata=document,
            attributes=document.get("attributes"),
            is_array=document.get("node_type") == "array"
            or (document.get("node_type") != "group" and "shape" in document),
        )
        for path, (key, document) in found.items()
    }
    return nodes, consolidated, only


def _nodes_v2(objects: Mapping[str, dict[str, Json]]) -> tuple[dict[str, RawNode], Json, tuple[str, ...]]:
    """Return the nodes by path, the consolidated metadata, and the keys that exist only there."""
    consolidated = objects.get(CONSOLIDATED_V2)
    inside = consolidated.get("metadata") if consolidated is not None else None
    others = (
        {key: document for key, document in inside.items() if isinstance(document, dict)}
        if isinstance(inside, dict)
        else {}
    )
    only = tuple(key for key in others if key not in objects and is_metadata(key))
    parts: dict[str, dict[str, dict[str, Json]]] = {}
    for key, document in {**objects, **{key: others[key] for key in only}}.items():
        if (name := key.rpartition("/")[2]) != CONSOLIDATED_V2:
            parts.setdefault(path_above(key), {})[name] = document
    nodes = {}
    for path, files in parts.items():
        name = ".zarray" if ".zarray" in files else ".zgroup"
        nodes[path] = RawNode(
            path=path,
            key=f"{path}/{name}".lstrip("/"),
            metadata=files.get(name, {}),
            attributes=files.get(".zattrs"),
            is_array=name == ".zarray",
        )
    return nodes, consolidated, only


def _with_chunks(nodes: Mapping[str, RawNode], chunks: Mapping[str, Json], mark: str) -> dict[str, RawNode]:
    """Return nodes with the entries below them."""
    below = group_entries(chunks, [path for path, node in nodes.items() if node.is_array and path != "/"], mark)
    if "/" in nodes and nodes["/"].is_array:  # a root array owns all entries that no other node has
        known = {key for found in below.values() for key in found.keys}
        rest = {key: value for key, value in chunks.items() if key not in known}
        below["/"] = Below([*rest], [*rest.values()])
    return {
        path: replace(node, below=below[path], inline=find_inline(node, below[path])) if path in below else node
        for path, node in nodes.items()
    }


def _with_parts(raw: RawReferences, metadata: Metadata, load: Load, content: bytes) -> dict[str, RawNode]:
    """Return nodes with their contents from the Parquet files."""
    ours, size = raw.document.get(OURS), raw.document.get("record_size")
    files = ours.get("files") if isinstance(ours, dict) else None
    is_own = isinstance(files, dict)
    reader = PartReader(
        load=load,
        record_size=size if type(size) is int and size > 0 else 1 << 62,
        files=files if is_own else None,
        token=token_of(content) if is_own else None,
    )
    nodes = {}
    for path, node in raw.nodes.items():
        stub = metadata.objects.get(f"{path[1:]}/.zarray")
        if node.is_array and path != "/":
            parts, inline = reader.read(node, stub or {})
            node = replace(node, stub=stub, parts=parts, inline=inline)
        nodes[path] = node
    return nodes
