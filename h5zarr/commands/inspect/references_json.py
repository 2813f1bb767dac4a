"""References as JSON for machines, in the form of `json.py`. `cube` says which files are where."""

from __future__ import annotations

from h5zarr.commands.inspect.dimensions import parent
from h5zarr.commands.inspect.inspected_references import InspectedArray, InspectedReferences
from h5zarr.commands.inspect.json import VERSION, Json, describe_attribute, json_value
from h5zarr.commands.inspect.part import join
from h5zarr.commands.inspect.reference_rows import find_filters, label_codec
from h5zarr.commands.inspect.values import unknown_path
from h5zarr.commands.inspect.zarr_values import (
    describe_array_attributes,
    describe_attributes,
    fill_element,
    type_text,
)
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.errors import Problem
from h5zarr.hdf5.model import Attribute
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import GroupNode
from h5zarr.zarr_model.joined import JoinedVariable

SCHEMA = """\
As for HDF5, without addresses and links, and:
nbytes      null if the references are a directory
format      name (references), container, version of h5zarr (null: written by another tool)
sources     url and nbytes (null: not recorded) of each file that the references refer to
cube        axes (name, group, length) and pieces (source, and at: for each axis, a list of ranges: position, position
            in the file, length), and misfits: files that updates left out (url, kind, reason); null unless h5zarr
            joined several files
datasets    layout is chunked, with chunk_shape (null if the lengths of chunks differ), chunk_grid as in Zarr,
            chunks_referenced, chunks_inlined, chunks_missing, chunks_total, nbytes (of referenced chunks, null if
            unknown) and inlined_nbytes; or has kind parts and parts: path, boxes (for each axis: position, position in
            the part, length) and dataset of each. codecs are as in Zarr. parameters has the path of the dataset that
            holds each attribute that differs by file. fill is the value of missing chunks
warnings    as problems
counts      groups, datasets, chunks, chunks_referenced, chunks_inlined, chunks_missing: of what is shown
"""


def describe_references(
    found: InspectedReferences, nbytes: int | None, log: RequestLog, *, attributes: bool = True
) -> dict[str, Json]:
    """Return the description of references, in the form of `SCHEMA`."""
    totals = found.totals()
    return {
        "version": VERSION,
        "url": found.url,
        "nbytes": nbytes,
        "format": {"name": "references", "container": found.container, "version": found.version},
        "sources": [
            {"url": str(Location.parse(url)), "nbytes": size} for url, size in zip(found.urls, found.sizes, strict=True)
        ],
        "cube": None if found.cube is None else _cube(found.cube),
        "groups": {
            path: _group(found, path, node, attributes)
            for path, node in found.groups.items()
            if path in found.part.whole
        },
        "datasets": {path: _variable(found, path, one, attributes) for path, one in found.variables.items()},
        "datatypes": {},
        "problems": _problems(found.problems),
        "warnings": _problems(found.warnings),
        "counts": {
            "groups": totals.groups,
            "datasets": totals.variables,
            "chunks": totals.referenced + totals.inlined,
            "chunks_referenced": totals.referenced,
            "chunks_inlined": totals.inlined,
            "chunks_missing": totals.missing,
        },
        "cost": {"rounds": log.rounds, "requests": log.requests, "nbytes": log.nbytes},
    }


def _cube(layout: CubeLayout) -> Json:
    axes: list[Json] = [
        {"name": path.rpartition("/")[2], "group": parent(path), "length": length}
        for path, length in layout.axes.items()
    ]
    misfits = [one.to_json() for one in layout.misfits]
    return {"axes": axes, "pieces": layout.to_json()["pieces"], "misfits": misfits}


def _problems(problems: tuple[Problem, ...]) -> list[Json]:
    return [{"path": each.path, "kind": each.kind, "message": each.message, "remedy": each.remedy} for each in problems]


def _group(found: InspectedReferences, path: str, node: GroupNode, attributes: bool) -> dict[str, Json]:
    dimensions: dict[str, Json] = {
        each.name: {"length": each.length, "unlimited": each.unlimited} for each in found.dimensions.get(path, ())
    }
    types = {} if node.record is None else node.record.types
    return {"dimensions": dimensions, **_attributes(describe_attributes(node.attributes, types), attributes)}


def _attributes(described: dict[str, Attribute], attributes: bool) -> dict[str, Json]:
    if not attributes:
        return {}
    return {"attributes": {name: describe_attribute(each, unknown_path) for name, each in described.items()}}


def _variable(
    found: InspectedReferences, path: str, variable: InspectedArray | JoinedVariable, attributes: bool
) -> dict[str, Json]:
    if isinstance(variable, InspectedArray):
        return _array(found, path, variable, attributes)
    arrays = found.parts_of(path, variable)
    parts: list[Json] = []
    for part, array in zip(variable.parts, arrays, strict=True):
        place = join(parent(path), part.path)
        described = None if array is None else _array(found, place, array, attributes)
        parts.append({"path": place, "boxes": part.boxes.tolist(), "dataset": described})
    types = ", ".join(dict.fromkeys(type_text(one) for one in arrays if one is not None))
    return {"type": types, **_shape(found, path, variable), "layout": {"kind": "parts", "parts": parts}}


def _shape(found: InspectedReferences, path: str, variable: InspectedArray | JoinedVariable) -> dict[str, Json]:
    """Return the shape. A dimension is unlimited if the file has no limit for it."""
    folder = parent(path)
    unlimited = {one.name for one in found.dimensions.get(folder, ()) if one.unlimited}
    while folder != "/":
        folder = parent(folder)
        unlimited |= {one.name for one in found.dimensions.get(folder, ()) if one.unlimited}
    pairs = list(zip(variable.dimension_names, variable.shape, strict=True))
    return {
        "shape": list(variable.shape),
        "max_shape": [None if name in unlimited else length for name, length in pairs],
        "dimensions": list(variable.dimension_names),
    }


def _array(found: InspectedReferences, path: str, array: InspectedArray, attributes: bool) -> dict[str, Json]:
    counts, element = array.chunks, fill_element(array)
    return {
        "type": type_text(array),
        **_shape(found, path, array),
        "layout": {
            "kind": "chunked",
            "chunk_shape": list(array.grid.chunk_shape) if isinstance(array.grid, RegularGrid) else None,
            "chunk_grid": array.grid.encode(),
            "chunks_referenced": counts.referenced,
            "chunks_inlined": counts.inlined,
            "chunks_missing": counts.missing,
            "chunks_total": counts.total,
            "nbytes": counts.nbytes,
            "inlined_nbytes": counts.inlined_nbytes,
        },
        "filters": [
            {
                "number": None if one is None else one.number,
                "name": str(codec["name"]),
                "label": label_codec(codec, one),
                "values": None if one is None else list(one.values),
            }
            for codec, one in find_filters(array.codecs)
        ],
        "codecs": list(array.codecs),
        "fill": {"kind": "user", "value": array.fill_value if element is None else json_value(element)},
        "parameters": {name: join(parent(path), where) for name, where in array.record.parameters.items()},
        **_attributes(describe_array_attributes(array), attributes),
    }
