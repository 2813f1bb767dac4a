"""NZ-1.0, the netCDF-Zarr convention: its declaration, and what stands against it.

https://github.com/zarr-conventions/nz. Where its text and its JSON schema differ, both are satisfied: the text wants
`conventions` on the root group, the schema on every group; the schema wants every `data_type` to be a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from h5zarr.errors import Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json

NZ = "NZ-1.0"
DECLARATION = {
    "schema_url": "https://raw.githubusercontent.com/zarr-conventions/nz/refs/tags/v1/schema.json",
    "spec_url": "https://github.com/zarr-conventions/nz/blob/v1/README.md",
    "uuid": "d0a980b5-c644-4dcc-85a1-283799a58f40",
    "name": NZ,
    "description": "Structural interoperability layer for scientific array conventions on Zarr v3",
}


def declare_nz(hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` with NZ declared on every node, and a problem for each thing that breaks a rule of NZ.

    Nothing is left out: values read as before, whether or not they are all that NZ asks for.
    """
    nodes = {path: replace(node, attributes=_declare(node)) for path, node in hierarchy.nodes.items()}
    found = [*_check_dimensions(hierarchy), *(each for item in hierarchy.nodes.items() for each in _check_node(*item))]
    problems = tuple(Problem(path, "nz", f"{what}, against {NZ}", remedy) for path, what, remedy in found)
    return replace(hierarchy, nodes=nodes), problems


def _declare(node: GroupNode | ArrayNode) -> dict[str, Json]:
    """Return a node's attributes with the declaration, behind what other conventions declared."""
    attributes = dict(node.attributes)
    if isinstance(node, GroupNode):
        attributes["conventions"] = _conventions(attributes)
    others = attributes.get("zarr_conventions")
    kept = [each for each in others if each != DECLARATION] if isinstance(others, list) else []
    attributes["zarr_conventions"] = [*kept, DECLARATION]
    return attributes


def _conventions(attributes: Mapping[str, Json]) -> str:
    """Return NZ and what the group declares already, separated by blanks: the most general comes first."""
    declared = attributes.get("conventions", attributes.get("Conventions"))
    names = re.split(r"[,\s]+", declared.strip()) if isinstance(declared, str) else []
    return " ".join([NZ, *(name for name in names if name and name.upper() != NZ)])


def _check_node(path: str, node: GroupNode | ArrayNode) -> Iterator[tuple[str, str, str]]:
    """Yield path, what is wrong, and what to do, for all that concerns one node alone."""
    for name, value in node.attributes.items():
        if "/" in name:
            yield path, f'the name of attribute "{name}" has a slash', "Rename the attribute."
        if isinstance(value, list | tuple) and len({_kind(each) for each in value}) > 1:
            yield path, f'attribute "{name}" mixes values of several types', "Split the attribute."
    if isinstance(node, GroupNode):
        return
    if not isinstance(node.data_type, str):
        name = node.data_type["name"]
        yield path, f"the data type {name} is none that is named by a word", "Leave the array out, or do without NZ."
    if len(node.dimension_names) != len(node.shape) or not all(node.dimension_names):
        yield path, "not every dimension has a name", "Name the dimensions."


def _kind(value: Json) -> str:
    """Return what a value is in the terms of NZ, for which numbers are of one kind."""
    return "number" if type(value) in (int, float) else type(value).__name__


def _check_dimensions(hierarchy: Hierarchy) -> Iterator[tuple[str, str, str]]:
    """Yield path, what is wrong, and what to do, for each dimension name that has several lengths in one group."""
    lengths: dict[tuple[str, str], tuple[int, str]] = {}
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode):
            continue
        group = path.rpartition("/")[0]
        for name, length in zip(node.dimension_names, node.shape, strict=False):
            first, where = lengths.setdefault((group, name), (length, path))
            if length != first:
                what = f'dimension "{name}" has length {length} here and {first} in {where}'
                yield path, what, "Give one of the two dimensions another name."
