"""The variables of a source, and the arrays that hold them: usually one, but a cube may have several for a variable.

A cube stores a variable in parts if its files store it differently, and the packing of each file as parameters. Both
are undone here: each part, and each run of equal parameters, becomes an array by itself, as if it were a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json, VariableRecord
from h5zarr.zarr_model.joined import PARTS_GROUP, Boxes, JoinedVariable, is_part
from h5zarr.zarr_model.missing import FILL_VALUE, encode_missing

Values = npt.NDArray[Any]
ReadValues = Callable[[str], Values]
"""Returns all values of the array at a path, as stored."""

_SHOWN_BY_JSON = (np.dtype(np.float64), np.dtype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredArray:
    """An array with the values of a variable, or with some of them.

    `boxes` says which: see `JoinedPart`, along the dimensions `axes`. None: the array is the whole variable.
    """

    path: str
    node: ArrayNode
    record: VariableRecord | None
    axes: tuple[int, ...] = ()
    boxes: Boxes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """The variables of a source by path, in the order of its nodes; and the paths of its groups and variables."""

    paths: tuple[str, ...]
    stored: Mapping[str, Callable[[], list[StoredArray]]]
    _nodes: Mapping[str, tuple[ArrayNode, ...]]

    def nodes(self) -> Iterator[tuple[str, ArrayNode]]:
        """Yield the arrays of all variables, with the path of the variable."""
        for path, nodes in self._nodes.items():
            yield from ((path, node) for node in nodes)


def find_variables(hierarchy: Hierarchy, read: ReadValues) -> Variables:
    """Return the variables of a source. Nothing is read before the arrays of one with parameters are needed."""
    joined, hidden = _find_joined(hierarchy)
    paths: list[str] = []
    nodes: dict[str, tuple[ArrayNode, ...]] = {}
    stored: dict[str, Callable[[], list[StoredArray]]] = {}
    for path, node in hierarchy.nodes.items():
        if is_part(path):
            # A variable stands where its parts are: `PARENT/_h5zarr_parts/NAME`.
            parent, mark, name = path.rpartition(f"/{PARTS_GROUP}/")
            if mark and (variable := f"{parent}/{name}") in joined:
                paths.append(variable)
                stored[variable] = partial(_find_parts, variable, joined[variable], hierarchy, read)
                found = [hierarchy.nodes.get(f"{parent}/{part.path}") for part in joined[variable].parts]
                nodes[variable] = tuple(one for one in found if isinstance(one, ArrayNode))
        elif path not in hidden:
            paths.append(path)
            if isinstance(node, ArrayNode):
                stored[path] = partial(_find_array, path, node, hierarchy, read)
                nodes[path] = (node,)
    return Variables(tuple(paths), stored, nodes)


def _find_joined(hierarchy: Hierarchy) -> tuple[dict[str, JoinedVariable], set[str]]:
    """Return the variables that have parts, by path, and the paths of variables that hold parameters of others."""
    joined: dict[str, JoinedVariable] = {}
    hidden: set[str] = set()
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode) and node.record is not None:
            folder = path.rstrip("/")
            joined |= {f"{folder}/{name}": one for name, one in node.record.joined.items()}
            hidden |= {f"{folder}/{own}" for one in node.record.variables.values() for own in one.parameters.values()}
    return joined, hidden


def _find_array(path: str, node: ArrayNode, hierarchy: Hierarchy, read: ReadValues) -> list[StoredArray]:
    record = hierarchy.record_of(path)
    whole = StoredArray(path=path, node=node, record=record)
    return [whole] if record is None or not record.parameters else list(_split(whole, record, hierarchy, read))


def _find_parts(path: str, joined: JoinedVariable, hierarchy: Hierarchy, read: ReadValues) -> list[StoredArray]:
    found: list[StoredArray] = []
    for part in joined.parts:
        at = f"{path.rpartition('/')[0]}/{part.path}"
        node = hierarchy.nodes.get(at)
        if not isinstance(node, ArrayNode):
            raise MalformedFile(f"{path}: its part {part.path} is missing in the cube")
        record = hierarchy.record_of(at)
        own = StoredArray(path=at, node=node, record=record, axes=joined.axes, boxes=part.boxes)
        if record is None or not record.parameters:
            found.append(own)
        else:
            found += [_within(one, own) for one in _split(own, record, hierarchy, read)]
    return found


# --- parameters


def _split(whole: StoredArray, record: VariableRecord, hierarchy: Hierarchy, read: ReadValues) -> Iterator[StoredArray]:
    """Yield an array for each run of elements with the same parameters. They become attributes again."""
    folder = whole.path.rpartition("/")[0]
    names, values = list(record.parameters), []
    for own in record.parameters.values():
        node = hierarchy.nodes.get(f"{folder}/{own}")
        if not isinstance(node, ArrayNode) or len(node.shape) != 1:
            raise MalformedFile(f"{whole.path}: its parameter {own} is missing in the cube")
        values.append(read(f"{folder}/{own}"))
        axis = whole.node.dimension_names.index(node.dimension_names[0])
    for start, stop in _equal_runs(values):
        own_values = {name: one[start] for name, one in zip(names, values, strict=True)}
        node, own_record = _with_parameters(whole.node, record, own_values)
        boxes = np.array([[[start, start, stop - start]]], np.int64)
        yield replace(whole, node=node, record=own_record, axes=(axis,), boxes=boxes)


def _equal_runs(columns: list[Values]) -> Iterator[tuple[int, int]]:
    """Yield the ranges in which no column changes. NaN equals NaN."""
    count = len(columns[0])
    changes = np.zeros(count, bool)
    for one in columns:
        content = np.ascontiguousarray(one).view(f"V{one.dtype.itemsize}")
        changes[1:] |= content[1:] != content[:-1]
    edges = [0, *np.flatnonzero(changes).tolist(), count]
    yield from ((start, stop) for start, stop in pairwise(edges) if start < stop)


def _with_parameters(
    node: ArrayNode, record: VariableRecord, parameters: Mapping[str, Any]
) -> tuple[ArrayNode, VariableRecord]:
    """Return an array whose parameters are attributes, as in a file that has no others."""
    attributes, types = dict[str, Json](node.attributes), dict(record.types)
    for name, value in parameters.items():
        if name == FILL_VALUE:
            attributes[name] = encode_missing(np.asarray(value), value.dtype)
            continue
        attributes[name] = value.item()
        if value.dtype.newbyteorder("=") not in _SHOWN_BY_JSON:
            types[name] = value.dtype.name
    return replace(node, attributes=attributes), replace(record, parameters={}, types=types)


def _within(run: StoredArray, part: StoredArray) -> StoredArray:
    """Return a run of a part, with the boxes that both have. The boxes of `run` count in the array of the part."""
    assert run.boxes is not None
    assert part.boxes is not None
    _, inner, length = run.boxes[0, 0].tolist()
    at = part.axes.index(run.axes[0])
    begin = np.maximum(part.boxes[:, at, 1], inner)
    end = np.minimum(part.boxes[:, at, 1] + part.boxes[:, at, 2], inner + length)
    kept = np.flatnonzero(begin < end)
    boxes = part.boxes[kept].copy()
    boxes[:, at, 0] += begin[kept] - boxes[:, at, 1]
    boxes[:, at, 1], boxes[:, at, 2] = begin[kept], end[kept] - begin[kept]
    return replace(run, axes=part.axes, boxes=boxes)
