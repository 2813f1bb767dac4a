"""Rules of NZ-1.0 about its declaration. Sections are those of its README, or of its JSON schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.nz.nodes import NzNodes
from h5zarr.zarr_model.nz.rule import NzRule, Verdict, Violation

NZ = "NZ-1.0"
DECLARATION = {
    "schema_url": "https://raw.githubusercontent.com/zarr-conventions/nz/refs/tags/v1/schema.json",
    "spec_url": "https://github.com/zarr-conventions/nz/blob/v1/README.md",
    "uuid": "d0a980b5-c644-4dcc-85a1-283799a58f40",
    "name": NZ,
    "description": "Structural interoperability layer for scientific array conventions on Zarr v3",
}


def _check_declaration(nodes: NzNodes) -> Iterator[Verdict]:
    if NZ not in _declared(nodes):
        what = f"the root group does not declare {NZ}"
        yield Violation("/", what, f'Set its attribute "conventions" to "{NZ}", followed by any others.')


def _declared(nodes: NzNodes) -> list[str]:
    """Return the conventions that the root declares, in capitals."""
    attributes = nodes["/"].attributes if "/" in nodes else {}
    stated = attributes.get("conventions", attributes.get("Conventions"))
    return stated.upper().split() if isinstance(stated, str) else []


def _check_order(nodes: NzNodes) -> Iterator[Verdict]:
    declared = _declared(nodes)
    if NZ in declared[1:]:
        yield Violation("/", f"{NZ} is the most general convention, but does not come first", "Put it first.")


def _check_registration(nodes: NzNodes) -> Iterator[Verdict]:
    if "/" in nodes and not is_declared(nodes["/"].attributes):
        what = "zarr_conventions of the root group lacks the NZ object"
        yield Violation("/", what, "Add the object from the convention, or translate with nz=True.")


def is_declared(attributes: Mapping[str, Json]) -> bool:
    """Return whether a node with these attributes declares NZ in `zarr_conventions`."""
    stated = attributes.get("zarr_conventions")
    return isinstance(stated, list) and any(map(_is_declaration, stated))


def _is_declaration(entry: Json) -> bool:
    """Return whether the schema accepts an entry: its fields are correct, and at least one of them identifies NZ."""
    if not isinstance(entry, dict) or not entry.keys() <= DECLARATION.keys():
        return False
    named = entry.keys() & {"schema_url", "spec_url", "uuid"}
    right = all(entry[name] == DECLARATION[name] for name in entry if name != "description")
    return bool(named) and right and isinstance(entry.get("description", ""), str)


def _check_schema(nodes: NzNodes) -> Iterator[Verdict]:
    remedy = "To pass the JSON schema, declare NZ on every node, or translate with nz=True."
    for path, node in nodes.items():
        if path != "/" and not is_declared(node.attributes):
            yield Violation(path, "zarr_conventions lacks the NZ object", remedy)
        stated = node.attributes.get("conventions")
        if not node.is_array and not (isinstance(stated, str) and NZ in stated):
            yield Violation(path, f"the attribute conventions of the group lacks {NZ}", remedy)


_DECLARATION = "Convention Declaration"
RULES = (
    NzRule(
        name="declaration",
        is_must=True,
        section=f"{_DECLARATION}; Root Group Attributes",
        asks="the root group has `NZ-1.0` in `conventions`, or in `Conventions`",
        check=_check_declaration,
    ),
    NzRule(
        name="declaration-order",
        is_must=False,
        section=_DECLARATION,
        asks="the most general convention comes first",
        check=_check_order,
    ),
    NzRule(
        name="registration",
        is_must=True,
        section="Convention Registration",
        asks="the root group has the NZ object in `zarr_conventions`",
        check=_check_registration,
    ),
    NzRule(
        name="schema-nodes",
        is_must=False,
        section="schema.json: attributes, groupRequirements",
        asks="every node has the NZ object in `zarr_conventions`, every group `NZ-1.0` in `conventions`",
        check=_check_schema,
    ),
)
