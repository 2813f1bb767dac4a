"""Members of metadata, for rules that need them to be right: None where they are not, which other rules tell."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeGuard

from h5zarr.hierarchy import Json
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.validating.raw import RawNode

Shape = tuple[int, ...]
MOST = 2**63 - 1


def is_integer(value: Json) -> TypeGuard[int]:
    """Return whether a value is a JSON number without fraction; true and false are none."""
    return type(value) is int


def is_number(value: Json) -> TypeGuard[int | float]:
    """Return whether a value is a JSON number."""
    return type(value) in (int, float)


def named(value: Json) -> tuple[str, dict[str, Json]] | None:
    """Return the name and the configuration of an extension of version 3, which may be a name alone."""
    match value:
        case str():
            return value, {}
        case {"name": str(name)}:
            configuration = value.get("configuration", {})
            return (name, configuration) if isinstance(configuration, dict) else None
    return None


def lengths(value: Json) -> Shape | None:
    """Return a list of lengths as a tuple."""
    if isinstance(value, list) and all(is_integer(one) and 0 <= one <= MOST for one in value):
        return tuple(value)
    return None


def shape_of(node: RawNode) -> Shape | None:
    """Return the shape of an array."""
    return lengths(node.metadata.get("shape"))


def chunk_shape_of(node: RawNode) -> Shape | None:
    """Return the shape of the chunks of an array in a regular grid, all of which have elements."""
    found = lengths(node.metadata.get("chunks"))
    if is_v3(node):
        grid = named(node.metadata.get("chunk_grid"))
        found = lengths(grid[1].get("chunk_shape")) if grid is not None and grid[0] == "regular" else None
    shape = shape_of(node)
    if found is None or shape is None or len(found) != len(shape) or 0 in found:
        return None
    return found


def is_v3(node: RawNode) -> bool:
    """Return whether the metadata of a node stand where version 3 has them."""
    return node.key.rpartition("/")[2] == "zarr.json"


def grid_of(node: RawNode) -> Shape | None:
    """Return the shape of the grid of an array's chunks."""
    shape, chunks = shape_of(node), chunk_shape_of(node)
    if shape is None or chunks is None:
        return None
    return tuple(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))


def count_of(node: RawNode) -> int | None:
    """Return the number of elements of a chunk."""
    chunks = chunk_shape_of(node)
    return None if chunks is None else prod(chunks)


def layout_of(node: RawNode) -> KeyLayout | None:
    """Return how the keys of an array's chunks are written."""
    shape = shape_of(node)
    if shape is None:
        return None
    if not is_v3(node):
        separator = node.metadata.get("dimension_separator", ".")
        return KeyLayout(node.path, "", separator, len(shape)) if separator in ("/", ".") else None
    encoding = named(node.metadata.get("chunk_key_encoding"))
    if encoding is None or encoding[0] not in ("default", "v2"):
        return None
    is_default = encoding[0] == "default"
    separator = encoding[1].get("separator", "/" if is_default else ".")
    if separator not in ("/", "."):
        return None
    return KeyLayout(node.path, "c" if is_default else "", separator, len(shape))


def attributes_of(node: RawNode) -> Mapping[str, Json]:
    """Return the attributes of a node; none where they are no object."""
    return node.attributes if isinstance(node.attributes, dict) else {}


def dimension_names_of(node: RawNode) -> list[Json] | None:
    """Return the names of an array's dimensions, each of which may be anything; None where there is no list of them."""
    names = node.metadata.get("dimension_names") if is_v3(node) else attributes_of(node).get("_ARRAY_DIMENSIONS")
    return names if isinstance(names, list) else None
