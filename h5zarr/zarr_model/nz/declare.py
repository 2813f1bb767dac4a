"""Declare NZ-1.0, the netCDF-Zarr convention, and report violations of its rules.

See https://github.com/zarr-conventions/nz. If its text and its JSON schema differ, h5zarr satisfies both. The text
wants `conventions` on the root group, the schema on every group. The schema wants every `data_type` to be a string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from h5zarr.errors import Problem
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.zarr_model.nz import array_rules as nz_arrays
from h5zarr.zarr_model.nz import declaration as nz_declaration
from h5zarr.zarr_model.nz import naming as nz_naming
from h5zarr.zarr_model.nz.declaration import DECLARATION, NZ
from h5zarr.zarr_model.nz.nodes import nodes_of
from h5zarr.zarr_model.nz.rule import Violation

NZ_RULES = (*nz_declaration.RULES, *nz_arrays.RULES, *nz_naming.RULES)
NOT_VERSION_3 = "the metadata are in Zarr version 2, but the convention is defined for version 3"


def declare_nz(hierarchy: Hierarchy, zarr_format: int = 3) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` with NZ declared on every node, and a problem for each violation of its rules.

    Nothing is left out, even if it violates a rule.
    """
    nodes = {path: replace(node, attributes=_declare(node)) for path, node in hierarchy.nodes.items()}
    declared = replace(hierarchy, nodes=nodes)
    against = [Violation("/", NOT_VERSION_3, "Write version 3.")] if zarr_format != 3 else []
    seen = nodes_of(declared)
    against += [one for rule in NZ_RULES for one in rule.check(seen) if isinstance(one, Violation)]
    return declared, tuple(Problem(one.path, "nz", f"{one.what}, against {NZ}", one.remedy) for one in against)


def _declare(node: GroupNode | ArrayNode) -> dict[str, Json]:
    """Return a node's attributes with the declaration of NZ added after those of other conventions."""
    attributes = dict(node.attributes)
    if isinstance(node, GroupNode):
        attributes["conventions"] = _conventions(attributes)
    others = attributes.get("zarr_conventions")
    kept = [each for each in others if each != DECLARATION] if isinstance(others, list) else []
    attributes["zarr_conventions"] = [*kept, DECLARATION]
    return attributes


def _conventions(attributes: Mapping[str, Json]) -> str:
    """Return NZ, which is the most general and comes first, and the other conventions, separated by spaces."""
    declared = attributes.get("conventions", attributes.get("Conventions"))
    names = re.split(r"[,\s]+", declared.strip()) if isinstance(declared, str) else []
    return " ".join([NZ, *(name for name in names if name and name.upper() != NZ)])
