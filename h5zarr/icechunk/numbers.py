"""Numbers that JSON has no word for. Python writes and reads them all the same, and so does zarr; Icechunk does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite, isnan

from h5zarr.errors import Problem, Unrepresentable
from h5zarr.hierarchy import Hierarchy, Json

_HIDDEN = "_nc"  # h5zarr's own record of what Zarr has no place for


def spell_out(hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[Problem, ...]]:
    """Return `hierarchy` with NaN and infinities in attributes as the words that Zarr has for them in fill values.

    There is a warning for each attribute that is text then.
    """
    nodes, warnings = dict(hierarchy.nodes), []
    for path, node in hierarchy.nodes.items():
        odd = {name: _worded(value) for name, value in node.attributes.items() if not _is_json(value)}
        if not odd:
            continue
        nodes[path] = replace(node, attributes={**node.attributes, **odd})
        if names := [name for name in odd if not name.startswith(_HIDDEN)]:
            what = f"NaN or infinity is text in the attribute {', '.join(names)}: Icechunk takes neither as a number"
            remedy = "Write JSON references, which keep them, or take the attribute from the file."
            warnings.append(Problem(path, Unrepresentable.kind, what, remedy))
    return replace(hierarchy, nodes=nodes), tuple(warnings)


def find_odd(hierarchy: Hierarchy) -> dict[str, list[str]]:
    """Return the names of attributes with numbers that JSON has no word for, by the path of their node."""
    odd = {
        path: [name for name, value in node.attributes.items() if not _is_json(value)]
        for path, node in hierarchy.nodes.items()
    }
    return {path: names for path, names in odd.items() if names}


def read_words(attributes: Mapping[str, Json], names: Json) -> dict[str, Json]:
    """Return attributes with the words in those that are named as numbers again."""
    known = set(map(str, names)) if isinstance(names, list) else set()
    return {name: _numbered(value) if name in known else value for name, value in attributes.items()}


def _numbered(value: Json) -> Json:
    match value:
        case "NaN" | "Infinity" | "-Infinity":
            return float(value)
        case list():
            return [_numbered(one) for one in value]
        case Mapping():
            return {name: _numbered(one) for name, one in value.items()}
    return value


def _is_json(value: Json) -> bool:
    """Return whether JSON has a word for each number in `value`."""
    match value:
        case float():
            return isfinite(value)
        case list() | tuple():
            return all(map(_is_json, value))
        case Mapping():
            return all(map(_is_json, value.values()))
    return True


def _worded(value: Json) -> Json:
    match value:
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list() | tuple():
            return [_worded(one) for one in value]
        case Mapping():
            return {name: _worded(one) for name, one in value.items()}
    return value
