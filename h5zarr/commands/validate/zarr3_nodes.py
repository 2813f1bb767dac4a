"""Rules of Zarr version 3 about nodes: their metadata as a whole, their names, and their nesting."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_node
from h5zarr.zarr_model.json_forms import named

_ARRAY = {
    *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
}
_OPTIONAL = {"attributes", "dimension_names", "storage_transformers"}
_GROUP = {"zarr_format", "node_type", "attributes", "consolidated_metadata"}
_WRITE_AGAIN = "Rewrite the metadata with a program that follows the specification."


def _check_format(node: RawNode) -> Iterator[Result]:
    version = node.metadata.get("zarr_format")
    if type(version) is not int or version != 3:
        yield Found(node.path, "zarr_format is not 3", 'Write "zarr_format": 3.')


def _check_type(node: RawNode) -> Iterator[Result]:
    if node.metadata.get("node_type") not in ("array", "group"):
        yield Found(node.path, 'node_type is neither "array" nor "group"', "Write the type of the node.")


def _check_members(node: RawNode) -> Iterator[Result]:
    if node.is_array and (missing := sorted(_ARRAY - node.metadata.keys() - {"node_type", "zarr_format"})):
        yield Found(node.path, f"the array metadata lack {', '.join(missing)}", _WRITE_AGAIN)


def _check_unknown(node: RawNode) -> Iterator[Result]:
    known = _ARRAY | _OPTIONAL if node.is_array else _GROUP
    for name, value in node.metadata.items():
        if name not in known and not (isinstance(value, dict) and value.get("must_understand") is False):
            what = f'readers must refuse the node, because they do not know "{name[:60]}"'
            yield Found(node.path, what, 'Remove it, or give it "must_understand": false.')


def _check_must_understand(node: RawNode) -> Iterator[Result]:
    for name in ("data_type", "chunk_grid", "chunk_key_encoding"):
        value = node.metadata.get(name)
        if isinstance(value, dict) and value.get("must_understand") is False:
            yield Found(node.path, f"{name} says that readers need not understand it", "Remove must_understand.")


def _check_extensions(node: RawNode) -> Iterator[Result]:
    value = node.metadata.get("storage_transformers", [])
    if not isinstance(value, list) or any(named(one) is None for one in value):
        yield Found(node.path, "storage_transformers is not a list of names or objects with names", _WRITE_AGAIN)
    elif value:
        yield Found(node.path, "no reader knows the storage transformers", "Write the array without them.")


def _check_attributes(node: RawNode) -> Iterator[Result]:
    if "attributes" in node.metadata and not isinstance(node.attributes, dict):
        yield Found(node.path, "the attributes are not an object", "Write an object, or leave them out.")


def _check_names(node: RawNode) -> Iterator[Result]:
    if node.path == "/":
        return
    if node.name == "" or not node.name.strip("."):
        yield Found(node.path, f'"{node.name}" is not a valid node name', "Rename it.")
    elif node.name.startswith("__") or node.name == "zarr.json":
        yield Found(node.path, f'the name "{node.name}" is reserved', "Rename it.")


def _check_parents(raw: RawReferences) -> Iterator[Result]:
    if "/" not in raw.nodes:
        yield Found("/", "there is no root group", "Write a zarr.json for the root.")
    above = {node.group for path, node in raw.nodes.items() if path != "/"} - {"/"}
    for path in sorted(above):
        parent = raw.nodes.get(path)
        if parent is None:
            yield Found(path, "there are nodes below it, but it has no metadata", "Write a zarr.json for the group.")
        elif parent.is_array:
            yield Found(path, "it is an array, but there are nodes below it", "Move them to a group.")


def _check_consolidated_form(raw: RawReferences) -> Iterator[Result]:
    consolidated = raw.consolidated
    if consolidated is None:
        return
    if not isinstance(consolidated, dict) or not isinstance(consolidated.get("metadata"), dict):
        yield Found("/", "consolidated_metadata is not an object with metadata", _WRITE_AGAIN)
    elif consolidated.get("kind") != "inline" or consolidated.get("must_understand") is not False:
        yield Found("/", 'consolidated_metadata must have "kind": "inline" and "must_understand": false', _WRITE_AGAIN)


def check_consolidated_equal(raw: RawReferences) -> Iterator[Result]:
    """Yield each node whose consolidated metadata differ from its own metadata."""
    inside = raw.consolidated.get("metadata") if isinstance(raw.consolidated, dict) else None
    if not isinstance(inside, dict):
        return
    remedy = "Consolidate the metadata again."
    for path in raw.only_consolidated:
        yield Found(path, "it is in the consolidated metadata, but has none of its own", remedy)
    for path, node in raw.nodes.items():
        if path == "/" or path in raw.only_consolidated:
            continue
        if path[1:] not in inside:
            yield Found(path, "it is not in the consolidated metadata, so readers will miss it", remedy)
        elif not _same(inside[path[1:]], node):
            yield Found(path, "the consolidated metadata differ from its own", remedy)


def _same(copy: object, node: RawNode) -> bool:
    """Return whether two metadata are the same. repr treats NaN as equal, and distinguishes 1, 1.0 and true."""
    own = {name: value for name, value in node.metadata.items() if name != "consolidated_metadata"}
    if isinstance(copy, dict):
        copy = {name: value for name, value in copy.items() if name != "consolidated_metadata"}
    return copy == own or repr(copy) == repr(own)


RULES = (
    Rule(
        id="zarr3/zarr-format",
        level=Level.ERROR,
        section="Array metadata, Group metadata: zarr_format",
        asks="`zarr_format` is 3",
        check=each_node(_check_format),
    ),
    Rule(
        id="zarr3/node-type",
        level=Level.ERROR,
        section="Array metadata, Group metadata: node_type",
        asks="`node_type` is `array` or `group`",
        check=each_node(_check_type),
    ),
    Rule(
        id="zarr3/members",
        level=Level.ERROR,
        section="Array metadata: Mandatory",
        asks="an array has all mandatory members",
        check=each_node(_check_members),
    ),
    Rule(
        id="zarr3/unknown-members",
        level=Level.ERROR,
        section="Extension definition: must_understand",
        asks="other members have `must_understand: false`",
        check=each_node(_check_unknown),
    ),
    Rule(
        id="zarr3/must-understand",
        level=Level.ERROR,
        section="Extension definition: must_understand",
        asks="data type, chunk grid and chunk key encoding do not have `must_understand: false`",
        check=each_node(_check_must_understand),
    ),
    Rule(
        id="zarr3/storage-transformers",
        level=Level.ERROR,
        section="Array metadata: storage_transformers",
        asks="there are no storage transformers, because no reader supports any",
        check=each_node(_check_extensions),
    ),
    Rule(
        id="zarr3/attributes",
        level=Level.ERROR,
        section="Array metadata, Group metadata: attributes",
        asks="the attributes are an object",
        check=each_node(_check_attributes),
    ),
    Rule(
        id="zarr3/node-names",
        level=Level.ERROR,
        section="Node names",
        asks="names are not empty, not only dots, not `zarr.json`, and do not begin with `__`",
        check=each_node(_check_names),
    ),
    Rule(
        id="zarr3/parents",
        level=Level.ERROR,
        section="Group metadata",
        asks="every parent of a node is a group with metadata",
        check=_check_parents,
    ),
    Rule(
        id="zarr3/consolidated-form",
        level=Level.ERROR,
        section="Additional fields",
        asks="`consolidated_metadata` is inline and has `must_understand: false`",
        check=_check_consolidated_form,
    ),
    Rule(
        id="zarr3/consolidated-equal",
        level=Level.ERROR,
        section="Additional fields",
        asks="consolidated metadata equals the metadata of the nodes, and has all nodes",
        check=check_consolidated_equal,
    ),
)
