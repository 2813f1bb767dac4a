"""The nodes that rules of NZ-1.0 check, made from a hierarchy or from a reference file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import SURPRISES, H5ZarrError
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.grid import ChunkGrid, RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json

_MOST_NBYTES = 1 << 26
Values: TypeAlias = npt.NDArray[Any] | str
"""The values of an array, or why they are not available."""


def _no_values() -> Values:
    return "it has no values"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NzNode:
    """A group or an array. Only arrays have a shape, names and a type; None if the metadata lack them."""

    path: str
    is_array: bool
    attributes: Mapping[str, Json]
    shape: Sequence[int] | None = None
    dimension_names: Sequence[Json] | None = None
    data_type: Json = None
    values: Callable[[], Values] = field(default=_no_values, repr=False)

    @property
    def name(self) -> str:
        """The last name of the path; that of the root is empty."""
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The path of the group that the node is in."""
        return self.path.rpartition("/")[0] or "/"


NzNodes: TypeAlias = Mapping[str, NzNode]


def nodes_of(hierarchy: Hierarchy) -> NzNodes:
    """Return the nodes of a hierarchy, by path."""
    return {path: _node_of(path, node) for path, node in hierarchy.nodes.items()}


def _node_of(path: str, node: GroupNode | ArrayNode) -> NzNode:
    if isinstance(node, GroupNode):
        return NzNode(path=path, is_array=False, attributes=node.attributes)
    return NzNode(
        path=path,
        is_array=True,
        attributes=node.attributes,
        shape=node.shape,
        dimension_names=node.dimension_names,
        data_type=node.data_type,
        values=partial(_values_of, node),
    )


def _values_of(node: ArrayNode) -> Values:
    return decode_line(node.grid, node.data_type, node.codecs, node.manifest.inline)


def decode_line(
    grid: ChunkGrid,
    data_type: Json,
    codecs: Sequence[Json],
    inline: Mapping[tuple[int, ...], bytes],
) -> Values:
    """Return the values of a one-dimensional array if all chunks are inlined, else why they are not available.

    Dates and times are returned as integers.
    """
    if not isinstance(grid, RegularGrid):
        return "its chunks have different lengths"
    count, length = grid.grid_shape[0], grid.chunk_shape[0]
    if count > len(inline) or any((number,) not in inline for number in range(count)):
        return "its values are not in the references"
    try:
        if (first := codecs[0]["name"]) != "bytes":
            return f"h5zarr does not decode codec {first} here"
        dtype = decode_data_type(data_type, byte_order(codecs))
        if dtype.kind not in "iufmM":
            return "its values are not numbers"
        if dtype.itemsize * length > _MOST_NBYTES:
            return f"its chunks have more than {_MOST_NBYTES} bytes"
        chunks = [*_decode_chunks(dtype, length, codecs, [inline[(number,)] for number in range(count)])]
    except (H5ZarrError, ImportError, RuntimeError, *SURPRISES):
        return "its values cannot be decoded here"
    values = np.concatenate([np.empty(0, dtype), *chunks])[: grid.shape[0]]
    return values.view(f"{dtype.str[0]}i8") if dtype.kind in "mM" else values


def _decode_chunks(
    dtype: np.dtype[Any], length: int, codecs: Sequence[Json], contents: Sequence[bytes]
) -> Iterator[npt.NDArray[Any]]:
    from h5zarr.filters.pipeline import undo_filters
    from h5zarr.zarr_model.codecs import find_filter

    filters = [find_filter(codec) for codec in codecs[1:]]
    for content in contents:
        plain = undo_filters(content, filters, 0, dtype.itemsize * length)
        yield np.frombuffer(plain, dtype, length)
