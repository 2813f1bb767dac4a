"""Types for both Zarr versions: an array decoded from metadata documents, and a node encoded as documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from h5zarr.errors import MalformedFile, Problem
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.grid import ChunkGrid
from h5zarr.zarr_model.hierarchy import ChunkLocations, Json


@dataclass(frozen=True, slots=True, eq=False)
class EncodedNode:
    """Metadata documents by name, such as `zarr.json`, or `.zarray` and `.zattrs`; `manifest` is None for a group."""

    documents: Mapping[str, Json]
    manifest: ChunkLocations | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayMetadata:
    """An array without its chunks. Dimensions without a name have None.

    `is_unfilled` means that the metadata do not define a fill value, which only version 2 allows. `fill_value` is then
    the one that zarr uses. `convert` re-encodes an inlined chunk that was written with other codecs than `codecs`; None
    if that is not needed. `warnings` lists what is included but has lost something.
    """

    grid: ChunkGrid
    data_type: Json
    codecs: tuple[Json, ...]
    fill_value: Json
    dimension_names: tuple[str | None, ...]
    attributes: Mapping[str, Json]
    keys: KeyLayout
    is_unfilled: bool = False
    convert: Callable[[bytes], bytes] | None = None
    warnings: tuple[Problem, ...] = ()


def decode_names(value: Json, rank: int) -> tuple[str | None, ...]:
    """Return the name of each dimension, or None. The whole value may be null."""
    if value is None:
        return (None,) * rank
    if not isinstance(value, list) or not all(name is None or isinstance(name, str) for name in value):
        raise MalformedFile("the dimension names are not a list of names")
    if len(value) != rank:
        raise MalformedFile(f"the array has {rank} dimensions, but {len(value)} dimension names")
    return tuple(value)


def decode_attributes(value: Json) -> dict[str, Json]:
    """Return a node's attributes. They may be null or missing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedFile("the attributes are not an object")
    return value


def name_dimensions(arrays: Mapping[str, ArrayMetadata]) -> dict[str, tuple[str, ...]]:
    """Return the dimension names of each array, by its path, with made-up names for dimensions without one.

    xarray does not open arrays whose dimensions lack names. A made-up name consists of the array's name and a number,
    such as `temp_dim_0`. Underscores are appended while an array or dimension of the file has that name, so that two
    dimensions share a name only if they do in the file.
    """
    taken = {name for array in arrays.values() for name in array.dimension_names}
    taken |= {path.rpartition("/")[2] for path in arrays}
    named = {}
    for path, array in arrays.items():
        names = []
        for axis, name in enumerate(array.dimension_names):
            if name is None:
                name = f"{path.rpartition('/')[2]}_dim_{axis}"
                while name in taken:
                    name += "_"
                taken.add(name)
            names.append(name)
        named[path] = tuple(names)
    return named
