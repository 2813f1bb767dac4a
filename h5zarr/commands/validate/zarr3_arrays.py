"""Rules of Zarr version 3 about array metadata: shape, data type, grid, keys, fill value, names."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.commands.validate.members import codecs_of, shape_of
from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_array
from h5zarr.display import counted
from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.codecs import is_own
from h5zarr.zarr_model.data_types import UNREGISTERED, find_type
from h5zarr.zarr_model.grid import decode_lengths, decode_rectilinear
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import named

_WRITE_AGAIN = "Rewrite the metadata with a program that follows the specification."


def _check_shape(node: RawNode) -> Iterator[Result]:
    if "shape" in node.metadata and shape_of(node) is None:
        yield Found(node.path, "the shape is not a list of lengths", "Write the length of each dimension, an integer.")


def _check_data_type(node: RawNode) -> Iterator[Result]:
    if "data_type" in node.metadata and isinstance(found := find_type(node.metadata["data_type"]), str):
        yield Found(node.path, found, "Write a data type that readers know.")


def _check_grid(node: RawNode) -> Iterator[Result]:
    if "chunk_grid" not in node.metadata:
        return
    grid = named(node.metadata["chunk_grid"])
    if grid is None:
        yield Found(node.path, "the chunk grid is neither a name nor an object with a name", _WRITE_AGAIN)
    elif grid[0] == "rectilinear":
        yield from _check_rectilinear(node, dict(grid[1]))
    elif grid[0] != "regular":
        yield Found(node.path, f'"{grid[0][:60]}" is not a known chunk grid', "Write a regular grid.")
    elif not (chunks := decode_lengths(grid[1].get("chunk_shape"))) and chunks != ():
        yield Found(node.path, "chunk_shape is not a list of lengths", "Write the length of chunks in each dimension.")
    elif 0 in chunks:
        yield Found(node.path, "chunks have no elements along a dimension", "Chunks must have a length of at least 1.")
    elif (shape := shape_of(node)) is not None and len(shape) != len(chunks):
        what = f"the array has {counted(len(shape), 'dimension')}, its chunks have {len(chunks)}"
        yield Found(node.path, what, "Write the length of chunks in each dimension.")


def _check_rectilinear(node: RawNode, configuration: dict[str, Json]) -> Iterator[Result]:
    try:
        decode_rectilinear(node.metadata.get("shape"), configuration)
    except H5ZarrError as error:
        what = f"the rectilinear chunk grid is not valid: {error}"
        yield Found(node.path, what, "Write the length of each chunk, or pairs of a length and a count.")


def _check_key_encoding(node: RawNode) -> Iterator[Result]:
    if "chunk_key_encoding" not in node.metadata:
        return
    encoding = named(node.metadata["chunk_key_encoding"])
    if encoding is None:
        yield Found(node.path, "the chunk key encoding is neither a name nor an object with a name", _WRITE_AGAIN)
    elif encoding[0] not in ("default", "v2"):
        what = f'"{encoding[0][:60]}" is not a known chunk key encoding'
        yield Found(node.path, what, "Write default or v2.")
    elif encoding[1].get("separator", "/") not in ("/", "."):
        yield Found(node.path, "the separator in chunk keys is neither a slash nor a dot", "Write one of the two.")


def _check_fill(node: RawNode) -> Iterator[Result]:
    if "fill_value" not in node.metadata or isinstance(kind := find_type(node.metadata.get("data_type")), str):
        return
    if wrong := kind.wrong(node.metadata["fill_value"]):
        yield Found(
            node.path, f"the fill_value is not valid for {kind.name}: {wrong}", "Write a value of the data type."
        )


def _check_dimension_names(node: RawNode) -> Iterator[Result]:
    if "dimension_names" not in node.metadata:
        return
    names, shape = node.metadata["dimension_names"], shape_of(node)
    if not isinstance(names, list) or not all(isinstance(name, str | None) for name in names):
        yield Found(node.path, "dimension_names is not a list of names or nulls", "Write a name for each dimension.")
    elif shape is not None and len(names) != len(shape):
        what = f"there are {counted(len(names), 'name')} for {counted(len(shape), 'dimension')}"
        yield Found(node.path, what, "Write a name for each dimension.")


def _check_distinct_names(node: RawNode) -> Iterator[Result]:
    names = node.metadata.get("dimension_names")
    if isinstance(names, list):
        given = [name for name in names if isinstance(name, str) and name]
        for name in sorted({name for name in given if given.count(name) > 1}):
            yield Found(node.path, f'two dimensions have the name "{name}"', "Give one of them another name.")


def _check_registered(raw: RawReferences) -> Iterator[Result]:
    where: dict[tuple[str, str], list[str]] = {}
    for node in raw.arrays():
        data_type = named(node.metadata.get("data_type"))
        if data_type is not None and data_type[0] in UNREGISTERED:
            where.setdefault((f"data type {data_type[0]}", UNREGISTERED[data_type[0]]), []).append(node.path)
        for name, _ in codecs_of(node) or ():
            if is_own(name):
                why = "only h5zarr has it, and it is not registered"
                where.setdefault((f"codec {name}", why), []).append(node.path)
    for (what, why), paths in where.items():
        others = f" and {counted(len(paths) - 1, 'other array')}" if len(paths) > 1 else ""
        remedy = "Readers need the package that provides it; zarr-python with h5zarr reads it."
        yield Found(paths[0], f"the {what} of this{others or ' array'}: {why}", remedy)


RULES = (
    Rule(
        id="zarr3/shape",
        level=Level.ERROR,
        section="Array metadata: shape",
        asks="the shape is a list of lengths",
        check=each_array(_check_shape),
    ),
    Rule(
        id="zarr3/data-type",
        level=Level.ERROR,
        section="Array metadata: data_type; Data types; zarr-extensions: data-types",
        asks="the data type is known, and its configuration is complete",
        check=each_array(_check_data_type),
    ),
    Rule(
        id="zarr3/chunk-grid",
        level=Level.ERROR,
        section="Array metadata: chunk_grid; Regular grids",
        asks="the grid is regular, has the rank of the array, and chunks are not empty",
        check=each_array(_check_grid),
    ),
    Rule(
        id="zarr3/chunk-key-encoding",
        level=Level.ERROR,
        section="Array metadata: chunk_key_encoding",
        asks="the encoding is `default` or `v2`, with the separator `/` or `.`",
        check=each_array(_check_key_encoding),
    ),
    Rule(
        id="zarr3/fill-value",
        level=Level.ERROR,
        section="Data types: Permitted fill values",
        asks="the `fill_value` is valid for the data type",
        check=each_array(_check_fill),
    ),
    Rule(
        id="zarr3/dimension-names",
        level=Level.ERROR,
        section="Array metadata: dimension_names",
        asks="`dimension_names` has a name or null for each dimension",
        check=each_array(_check_dimension_names),
    ),
    Rule(
        id="zarr3/distinct-dimension-names",
        level=Level.WARNING,
        section="Array metadata: dimension_names",
        asks="the dimensions of an array have different names",
        check=each_array(_check_distinct_names),
    ),
    Rule(
        id="zarr3/registered-names",
        level=Level.WARNING,
        section="Extension naming",
        asks="data types and codecs are registered",
        check=_check_registered,
    ),
)
