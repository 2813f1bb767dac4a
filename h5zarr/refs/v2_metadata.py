"""A hierarchy as Zarr version 2 has it, with the conventions by which xarray reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json, Manifest
from h5zarr.refs.names import leave_out_unreadable
from h5zarr.refs.v2_codecs import byte_order, encode_codecs_v2
from h5zarr.refs.v2_fill import encode_fill_v2
from h5zarr.refs.v2_types import decode_data_type, encode_dtype_v2

_REMEDY = "Write Zarr version 3 references, which keep it."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeV2:
    """A group or an array: what stands in .zgroup or .zarray, in .zattrs, and an array's chunks."""

    metadata: Json
    attributes: Json
    manifest: Manifest | None = None

    @property
    def metadata_name(self) -> str:
        """The last part of the key under which the metadata stand."""
        return ".zgroup" if self.manifest is None else ".zarray"

    @property
    def rank(self) -> int:
        return len(self.metadata.get("shape", ()))


def encode_v2(hierarchy: Hierarchy, *, joinable: bool = False) -> tuple[Mapping[str, NodeV2], tuple[Problem, ...]]:
    """Return the nodes of `hierarchy` by path, and a problem for each that is left out: version 2 cannot hold it."""
    readable, problems = leave_out_unreadable(hierarchy)
    nodes = {}
    for path, node in readable.nodes.items():
        try:
            nodes[path] = _encode_group(node) if isinstance(node, GroupNode) else _encode_array(node, joinable)
        except H5ZarrError as error:
            problems += (Problem(path, error.kind, str(error), error.remedy or _REMEDY),)
    return nodes, problems


def _encode_group(node: GroupNode) -> NodeV2:
    return NodeV2(metadata={"zarr_format": 2}, attributes=dict(node.attributes))


def _encode_array(node: ArrayNode, joinable: bool) -> NodeV2:
    filters = encode_codecs_v2(node.codecs)
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    filled = encode_fill_v2(node, dtype, joinable=joinable)
    metadata = {
        "zarr_format": 2,
        "shape": node.shape,
        "chunks": node.chunk_shape,
        "dtype": encode_dtype_v2(dtype),
        "compressor": None,
        "fill_value": filled.fill_value,
        "order": "C",
        "filters": filters,
        "dimension_separator": ".",
    }
    attributes = {**filled.attributes, "_ARRAY_DIMENSIONS": node.dimension_names}
    return NodeV2(metadata=metadata, attributes=attributes, manifest=filled.manifest)
