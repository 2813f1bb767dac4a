"""Encode and decode the metadata documents of Zarr version 3. Spec: Zarr core 3.1, 'Metadata'."""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.zarr_model.chunk_keys import decode_key_encoding
from h5zarr.zarr_model.grid import decode_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.zarr_model.json_forms import decode_named
from h5zarr.zarr_model.metadata import ArrayMetadata, EncodedNode, decode_attributes, decode_names
from h5zarr.zarr_model.record import encode_group

_KNOWN = frozenset(
    {
        *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value"),
        *("codecs", "attributes", "dimension_names", "storage_transformers", "consolidated_metadata"),
    }
)


def encode_v3(hierarchy: Hierarchy) -> Mapping[str, EncodedNode]:
    """Return the nodes of `hierarchy` by path, encoded for Zarr v3, which can represent all of them."""
    nodes = {}
    for path, node in hierarchy.nodes.items():
        manifest = node.manifest if isinstance(node, ArrayNode) else None
        nodes[path] = EncodedNode({"zarr.json": encode_metadata_v3(node)}, manifest)
    return nodes


def encode_metadata_v3(node: GroupNode | ArrayNode) -> dict[str, Json]:
    """Return the node's zarr.json, without consolidated metadata."""
    if isinstance(node, GroupNode):
        return {"zarr_format": 3, "node_type": "group", "attributes": encode_group(node)}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": node.shape,
        "data_type": node.data_type,
        "chunk_grid": node.grid.encode(),
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": node.fill_value,
        "codecs": node.codecs,
        "attributes": dict(node.attributes),
        "dimension_names": node.dimension_names,
    }


def decode_array_v3(path: str, metadata: Mapping[str, Json]) -> ArrayMetadata:
    """Return the array at `path`. Raises MalformedFile or Unsupported."""
    _check_understood(metadata)
    grid = decode_grid(metadata.get("shape"), *decode_named(metadata.get("chunk_grid"), "grid of chunks"))
    rank = len(grid.shape)
    decode_named(metadata.get("data_type"), "data type")
    if metadata.get("fill_value") is None:
        raise MalformedFile("there is no fill value")
    return ArrayMetadata(
        grid=grid,
        data_type=metadata["data_type"],
        codecs=_decode_codecs(metadata.get("codecs")),
        fill_value=metadata["fill_value"],
        dimension_names=decode_names(metadata.get("dimension_names"), rank),
        attributes=decode_attributes(metadata.get("attributes")),
        keys=decode_key_encoding(path, metadata.get("chunk_key_encoding"), rank),
    )


def _check_understood(metadata: Mapping[str, Json]) -> None:
    """Raise Unsupported for extensions that a reader must understand, and h5zarr does not."""
    if metadata.get("storage_transformers"):
        raise Unsupported("it has storage transformers, which h5zarr does not support")
    for name, value in metadata.items():
        if name not in _KNOWN and not (isinstance(value, dict) and value.get("must_understand") is False):
            raise Unsupported(f'its metadata contain "{name}", which h5zarr does not support')


def _decode_codecs(value: Json) -> tuple[Json, ...]:
    """Return the codecs, each as an object."""
    if not isinstance(value, list) or not value:
        raise MalformedFile("the codecs are not a list of one or more codecs")
    for codec in value:
        decode_named(codec, "codec")
    return tuple({"name": codec} if isinstance(codec, str) else codec for codec in value)
