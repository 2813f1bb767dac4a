"""Groups and arrays by path, decoded from the metadata entries of references, for Zarr v2 and v3."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from h5zarr.containers.chunk_runs import decode_text
from h5zarr.errors import H5ZarrError, MalformedFile, Problem, Unrepresentable, Unsupported
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.metadata import ArrayMetadata, decode_attributes
from h5zarr.zarr_model.v2_nodes import decode_array_v2
from h5zarr.zarr_model.v3_nodes import decode_array_v3

_V3 = "zarr.json"
_V2 = (".zarray", ".zgroup", ".zattrs", ".zmetadata")
_SUFFIXES = tuple(f"/{name}" for name in (_V3, *_V2))
_LAST = frozenset(name[-1] for name in (_V3, *_V2))  # chunk keys end in a digit, and there may be a million of them
_DEEPEST = 1000


class MetadataElsewhere(Unsupported):
    """The file only says where the metadata are."""

    remedy = "Put the metadata themselves into the references: as text, or as JSON objects."


class RootIsArray(Unsupported):
    """The root is an array, not a group."""

    remedy = "Put the array into a group: prefix its keys with a name and a slash."


Decode: TypeAlias = Callable[[str, dict[str, Json]], Mapping[str, Json] | ArrayMetadata]


@dataclass(slots=True, eq=False)
class Nodes:
    """The content of the metadata: the attributes of a group, or an array, for each path, parents before children.

    An array that cannot be decoded is among `skipped`, and a problem names it.
    """

    mark: str = "/"
    found: dict[str, Mapping[str, Json] | ArrayMetadata] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def arrays(self) -> dict[str, ArrayMetadata]:
        """Return the decoded arrays, by path."""
        return {path: node for path, node in self.found.items() if isinstance(node, ArrayMetadata)}

    def is_array(self, path: str) -> bool:
        """Return whether there is an array at `path`, decoded or not."""
        return path in self.skipped or isinstance(self.found.get(path), ArrayMetadata)

    def skip(self, path: str, error: H5ZarrError) -> None:
        """Leave out an array, and record the reason."""
        self.found.pop(path, None)
        self.skipped.add(path)
        self.problems.append(Problem.from_error(path, error))


def take_nodes(entries: dict[str, Json]) -> Nodes:
    """Return the nodes, and remove their metadata from `entries`. Raises MalformedFile, naming the key.

    If there are metadata of both versions, version 3 wins, as in readers. Consolidated metadata are used for nodes
    without their own.
    """
    keys = [key for key in entries if key[-1:] in _LAST and (key.endswith(_SUFFIXES) or key == _V3 or key in _V2)]
    documents = {key: entries.pop(key) for key in keys}
    if own := {key: value for key, value in documents.items() if key.rpartition("/")[2] == _V3}:
        return _collect(_nodes_v3(own), _decode_v3, mark="/c/")
    if documents:
        return _collect(_nodes_v2(documents), _decode_v2, mark="/")
    raise MalformedFile("it has no Zarr metadata")


def _nodes_v3(documents: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Return the metadata of each node, by path."""
    nodes = {_path_above(key): _decode_json(key, value) for key, value in documents.items()}
    consolidated = nodes.get("/", {}).get("consolidated_metadata")
    inside = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    if isinstance(inside, dict):
        for path, metadata in inside.items():
            nodes.setdefault(_path_above(f"{path}/{_V3}"), _decode_json(f"{path} in {_V3}", metadata))
    return nodes


def _nodes_v2(documents: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Return, for each node by path, the content of .zarray, .zgroup and .zattrs."""
    inside: Json = {}
    if ".zmetadata" in documents:
        inside = _decode_json(".zmetadata", documents[".zmetadata"]).get("metadata")
    if not isinstance(inside, dict):
        raise MalformedFile(".zmetadata: it has no object of metadata")
    nodes: dict[str, dict[str, Json]] = {}
    for key, value in {**documents, **{key: value for key, value in inside.items() if key not in documents}}.items():
        name = key.rpartition("/")[2]
        if name in _V2 and name != ".zmetadata":
            nodes.setdefault(_path_above(key), {})[name] = _decode_json(key, value)
    return nodes


def _path_above(key: str) -> str:
    """Return the path of the node whose metadata are under `key`."""
    names = key.split("/")[:-1]
    if "" in names:
        raise MalformedFile(f"{key}: a name in the path is empty")
    if len(names) > _DEEPEST:
        raise MalformedFile(f"{key[:80]}: more than {_DEEPEST} groups are nested")
    return "/" + "/".join(names)


def _decode_json(key: str, value: Json) -> dict[str, Json]:
    """Return a metadata object, which may be given as text."""
    if isinstance(value, list):
        raise MetadataElsewhere(f"{key}: the metadata are a reference to another file")
    if isinstance(value, str):
        try:
            value = json.loads(decode_text(value).decode())
        except (ValueError, RecursionError) as error:
            raise MalformedFile(f"{key}: the metadata are not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise MalformedFile(f"{key}: the metadata are not a JSON object")
    return value


def _collect(documents: dict[str, dict[str, Json]], decode: Decode, mark: str) -> Nodes:
    """Return all nodes, and their parent groups."""
    nodes = Nodes(mark=mark)
    _add("/", documents, decode, nodes)
    if nodes.is_array("/"):
        raise RootIsArray("/: the root is an array")
    for path in documents:
        names = path.split("/")
        for depth in range(2, len(names)):
            above = "/".join(names[:depth])
            _add(above, documents, decode, nodes)
            if nodes.is_array(above):
                raise MalformedFile(f"{path}: it is inside an array")
        _add(path, documents, decode, nodes)
    return nodes


def _add(path: str, documents: Mapping[str, dict[str, Json]], decode: Decode, nodes: Nodes) -> None:
    """Add one node. A group without metadata has no attributes."""
    if path in nodes.found or path in nodes.skipped:
        return
    try:
        nodes.found[path] = decode(path, documents[path]) if path in documents else {}
    except MalformedFile as error:
        raise MalformedFile(f"{path}: {error}") from None
    except (Unsupported, Unrepresentable) as error:
        nodes.skip(path, error)


def _decode_v3(path: str, metadata: dict[str, Json]) -> Mapping[str, Json] | ArrayMetadata:
    if metadata.get("zarr_format") != 3:
        raise MalformedFile("the metadata are not of Zarr version 3")
    match metadata.get("node_type"):
        case "array":
            return decode_array_v3(path, metadata)
        case "group":
            return decode_attributes(metadata.get("attributes"))
    raise MalformedFile("the node is neither a group nor an array")


def _decode_v2(path: str, parts: dict[str, Json]) -> Mapping[str, Json] | ArrayMetadata:
    for name in (".zarray", ".zgroup"):
        if name in parts and parts[name].get("zarr_format") != 2:
            raise MalformedFile(f"{name} is not of Zarr version 2")
    if ".zarray" in parts:
        return decode_array_v2(path, parts[".zarray"], parts.get(".zattrs"))
    return decode_attributes(parts.get(".zattrs"))
