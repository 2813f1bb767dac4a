"""What metadata say of an array, in the terms of Zarr version 3, and the parts that both versions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from h5zarr.errors import MalformedFile, Problem, Unsupported
from h5zarr.hierarchy import Json
from h5zarr.refs.chunk_keys import KeyLayout

_MOST_DIMENSIONS = 64  # as many as numpy has
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayMetadata:
    """An array without its chunks. A dimension has None for a name where the metadata name none.

    `is_unfilled` says that the metadata leave open what unwritten chunks read as, which only those of version 2 may:
    `fill_value` is then what zarr takes. `convert`, where there is one, makes a chunk for `codecs` of one that was
    written with others; it can only be done to chunks that are inline. `warnings` tell
    what is there, but not all that it was.
    """

    shape: tuple[int, ...]
    data_type: Json
    chunk_shape: tuple[int, ...]
    codecs: tuple[Json, ...]
    fill_value: Json
    dimension_names: tuple[str | None, ...]
    attributes: Mapping[str, Json]
    keys: KeyLayout
    is_unfilled: bool = False
    convert: Callable[[bytes], bytes] | None = None
    warnings: tuple[Problem, ...] = ()


def decode_shapes(shape: Json, chunk_shape: Json) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of an array and of its chunks; along an axis without elements, chunks have at least one."""
    extents, sizes = _decode_extents(shape, "shape"), _decode_extents(chunk_shape, "shape of chunks")
    if len(extents) != len(sizes):
        raise MalformedFile(f"the array has {len(extents)} dimensions, but its chunks have {len(sizes)}")
    # kerchunk makes chunks as long as the array, be it of no length.
    sizes = tuple(max(1, size) if extent == 0 else size for extent, size in zip(extents, sizes, strict=True))
    if 0 in sizes:
        raise MalformedFile("chunks have no elements")
    return extents, sizes


def _decode_extents(value: Json, what: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(extent) is int and 0 <= extent <= _MOST for extent in value):
        raise MalformedFile(f"the {what} is no list of lengths")
    if len(value) > _MOST_DIMENSIONS:
        raise Unsupported(f"the array has {len(value)} dimensions, and readers know at most {_MOST_DIMENSIONS}")
    return tuple(value)


def decode_names(value: Json, rank: int) -> tuple[str | None, ...]:
    """Return the names of the dimensions, each of which may be None, as may be all of them together."""
    if value is None:
        return (None,) * rank
    if not isinstance(value, list) or not all(name is None or isinstance(name, str) for name in value):
        raise MalformedFile("the names of the dimensions are no list of names")
    if len(value) != rank:
        raise MalformedFile(f"the array has {rank} dimensions, but {len(value)} names for them")
    return tuple(value)


def decode_attributes(value: Json) -> dict[str, Json]:
    """Return a node's attributes; none where there is nothing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedFile("the attributes are no object")
    return value


def name_dimensions(arrays: Mapping[str, ArrayMetadata]) -> dict[str, tuple[str, ...]]:
    """Return the names of each array's dimensions, by its path, with one for each that has none.

    xarray opens no array whose dimensions lack names. They get those of their array with a number, like `temp_dim_0`,
    and underscores behind it as long as any array or dimension of the file has that name: so that no two dimensions are
    the same that nobody said are.
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
