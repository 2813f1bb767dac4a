"""Rules of NZ-1.0 about its declaration. Sections are those of its README, or of its JSON schema."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.hierarchy import Json
from h5zarr.refs.nz_nodes import NzNode, NzNodes
from h5zarr.refs.nz_rule import Against, NzRule, Verdict

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
        what = f"the root group does not have {NZ} among its conventions"
        yield Against("/", what, f'Write "conventions": "{NZ}" into its attributes, others behind it.')


def _declared(nodes: NzNodes) -> list[str]:
    """Return the conventions that the root declares, in capitals."""
    attributes = nodes["/"].attributes if "/" in nodes else {}
    told = attributes.get("conventions", attributes.get("Conventions"))
    return told.upper().split() if isinstance(told, str) else []


def _check_order(nodes: NzNodes) -> Iterator[Verdict]:
    declared = _declared(nodes)
    if NZ in declared[1:]:
        yield Against("/", f"{NZ} is not the first of the conventions, and is the most general", "Put it first.")


def _check_registration(nodes: NzNodes) -> Iterator[Verdict]:
    if "/" in nodes and not _is_registered(nodes["/"]):
        what = "zarr_conventions of the root group does not have the object of NZ"
        yield Against("/", what, "Write it as the convention has it: h5zarr translate --nz does.")


def _is_registered(node: NzNode) -> bool:
    told = node.attributes.get("zarr_conventions")
    return isinstance(told, list) and any(map(_is_declaration, told))


def _is_declaration(entry: Json) -> bool:
    """Return whether an entry is one that the schema takes: what it has is right, and one thing tells it apart."""
    if not isinstance(entry, dict) or not entry.keys() <= DECLARATION.keys():
        return False
    named = entry.keys() & {"schema_url", "spec_url", "uuid"}
    right = all(entry[name] == DECLARATION[name] for name in entry if name != "description")
    return bool(named) and right and isinstance(entry.get("description", ""), str)


def _check_schema(nodes: NzNodes) -> Iterator[Verdict]:
    remedy = "Declare it on every node, as h5zarr translate --nz does, if the JSON schema is to accept them."
    for path, node in nodes.items():
        if path != "/" and not _is_registered(node):
            yield Against(path, "zarr_conventions does not have the object of NZ", remedy)
        told = node.attributes.get("conventions")
        if not node.is_array and not (isinstance(told, str) and NZ in told):
            yield Against(path, f"the group does not have {NZ} in its attribute conventions", remedy)


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
        asks="the root group has NZ's object in `zarr_conventions`",
        check=_check_registration,
    ),
    NzRule(
        name="schema-nodes",
        is_must=False,
        section="schema.json: attributes, groupRequirements",
        asks="every node has NZ's object in `zarr_conventions`, every group `NZ-1.0` in `conventions`",
        check=_check_schema,
    ),
)
