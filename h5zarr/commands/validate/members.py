"""Members of metadata, for rules that need valid ones. None if they are invalid, which other rules report."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from h5zarr.commands.validate.raw import RawNode
from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.chunk_keys import KeyLayout, decode_key_encoding
from h5zarr.zarr_model.grid import ChunkGrid, RegularGrid, decode_lengths, decode_rectilinear
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import named

Shape = tuple[int, ...]
MOST = 2**63 - 1


def codecs_of(node: RawNode) -> list[tuple[str, dict[str, Json]]] | None:
    """Return the names and configurations of an array's codecs; None if there is no valid list of them."""
    value = node.metadata.get("codecs")
    if not isinstance(value, list):
        return None
    codecs = [named(codec) for codec in value]
    found = [one for one in codecs if one is not None]
    return found if len(found) == len(codecs) else None


def shape_of(node: RawNode) -> Shape | None:
    """Return the shape of an array."""
    return decode_lengths(node.metadata.get("shape"))


def chunk_shape_of(node: RawNode) -> Shape | None:
    """Return the chunk shape of an array with a regular grid. Every chunk has elements."""
    found = decode_lengths(node.metadata.get("chunks"))
    if is_v3(node):
        grid = named(node.metadata.get("chunk_grid"))
        found = decode_lengths(grid[1].get("chunk_shape")) if grid is not None and grid[0] == "regular" else None
    shape = shape_of(node)
    if found is None or shape is None or len(found) != len(shape) or 0 in found:
        return None
    return found


def is_v3(node: RawNode) -> bool:
    """Return whether the key of a node's metadata is that of version 3."""
    return node.key.rpartition("/")[2] == "zarr.json"


def grid_of(node: RawNode) -> ChunkGrid | None:
    """Return the chunk grid of an array."""
    shape, chunks = shape_of(node), chunk_shape_of(node)
    if shape is not None and chunks is not None:
        return RegularGrid(shape, chunks)
    grid = named(node.metadata.get("chunk_grid")) if is_v3(node) else None
    if grid is None or grid[0] != "rectilinear":
        return None
    try:
        return decode_rectilinear(node.metadata.get("shape"), dict(grid[1]))
    except H5ZarrError:
        return None


def count_of(node: RawNode) -> int | None:
    """Return the number of elements of a chunk."""
    chunks = chunk_shape_of(node)
    return None if chunks is None else prod(chunks)


def layout_of(node: RawNode) -> KeyLayout | None:
    """Return how the chunk keys of an array are written."""
    shape = shape_of(node)
    if shape is None:
        return None
    if not is_v3(node):
        separator = node.metadata.get("dimension_separator", ".")
        return KeyLayout(node.path, "", separator, len(shape)) if separator in ("/", ".") else None
    try:
        return decode_key_encoding(node.path, node.metadata.get("chunk_key_encoding"), len(shape))
    except H5ZarrError:
        return None


def attributes_of(node: RawNode) -> Mapping[str, Json]:
    """Return the attributes of a node; empty if they are not an object."""
    return node.attributes if isinstance(node.attributes, dict) else {}


def dimension_names_of(node: RawNode) -> list[Json] | None:
    """Return the dimension names of an array, unchecked; None if they are not a list."""
    names = node.metadata.get("dimension_names") if is_v3(node) else attributes_of(node).get("_ARRAY_DIMENSIONS")
    return names if isinstance(names, list) else None
