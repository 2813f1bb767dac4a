"""Rules of NZ-1.0 about names and attributes. Sections are those of its README."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.missing import FILL_VALUE
from h5zarr.zarr_model.nz.nodes import NzNodes
from h5zarr.zarr_model.nz.rule import NzRule, Verdict, Violation

_EQUAL_NAMES = frozenset({"conventions", "Conventions"})
_LETTER = re.compile("[A-Za-z]")
_PLAIN = re.compile("[A-Za-z0-9_.-]*")  # period and hyphen are allowed, but discouraged


def _check_homogeneity(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        for name, value in node.attributes.items():
            if _is_mixed(value):
                yield Violation(path, f'attribute "{name}" mixes values of several types', "Split the attribute.")


def _is_mixed(value: Json) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return len({_kind(each) for each in value}) > 1 or any(map(_is_mixed, value))


def _kind(value: Json) -> str:
    """Return the type of a value in the terms of NZ, in which all numbers have the same type."""
    kind = type(value)
    return "number" if kind in (int, float) else "list" if kind in (list, tuple) else kind.__name__


def _check_reserved(nodes: NzNodes) -> Iterator[Verdict]:
    for path, node in nodes.items():
        if not node.is_array and FILL_VALUE in node.attributes:
            yield Violation(path, f"a group has the attribute {FILL_VALUE}, which is for arrays", "Rename it.")
        if node.is_array and "conventions" in node.attributes:
            yield Violation(path, "an array has the attribute conventions, which is for groups", "Rename it.")
        if not node.is_array and not isinstance(node.attributes.get("conventions", ""), str):
            yield Violation(path, "the attribute conventions is not text", "Write the names, separated by spaces.")


def _all_names(nodes: NzNodes) -> Iterator[tuple[str, str, str]]:
    """Yield all names: the path of a node, a description of the named thing, and the name."""
    for path, node in nodes.items():
        if path != "/":
            yield path, "the name", node.name
        for name in node.attributes:
            if name != FILL_VALUE:
                yield path, f'the name of attribute "{name}"', name


def _check_slashes(nodes: NzNodes) -> Iterator[Verdict]:
    for path, what, name in _all_names(nodes):
        if "/" in name:
            yield Violation(path, f"{what} contains a slash", "Rename the attribute.")


def _check_letters(nodes: NzNodes) -> Iterator[Verdict]:
    for path, what, name in _all_names(nodes):
        if not _LETTER.match(name):
            yield Violation(path, f"{what} does not begin with a letter", "Rename it, if possible.")


def _check_characters(nodes: NzNodes) -> Iterator[Verdict]:
    for path, what, name in _all_names(nodes):
        if "/" not in name and not _PLAIN.fullmatch(name):
            what = f"{what} contains other characters than letters, digits and underscores"
            yield Violation(path, what, "Rename it, if possible.")


def _check_case(nodes: NzNodes) -> Iterator[Verdict]:
    members: dict[tuple[str, str], list[str]] = {}
    for path, node in nodes.items():
        if path != "/":
            members.setdefault((node.group, ""), []).append(node.name)
        members[(path, "attributes ")] = [name for name in node.attributes if name not in _EQUAL_NAMES]
    for (path, what), names in members.items():
        first: dict[str, str] = {}
        for name in names:
            other = first.setdefault(name.casefold(), name)
            if other != name:
                message = f'the names of {what}"{other}" and "{name}" in it differ only by case'
                yield Violation(path, message, "Rename one of them.")


_NAMING = "Naming Rules"
RULES = (
    NzRule(
        name="attribute-homogeneity",
        is_must=True,
        section="Type System: Attribute Value Types",
        asks="all values in a list have the same type",
        check=_check_homogeneity,
    ),
    NzRule(
        name="reserved-names",
        is_must=True,
        section="Properties; Normative Summary 6",
        asks="`_FillValue` is only on arrays; `conventions` is only on groups, and is text",
        check=_check_reserved,
    ),
    NzRule(name="name-slash", is_must=True, section=_NAMING, asks="names do not contain `/`", check=_check_slashes),
    NzRule(
        name="name-letter",
        is_must=False,
        section=_NAMING,
        asks="names begin with a letter, except `_FillValue`",
        check=_check_letters,
    ),
    NzRule(
        name="name-characters",
        is_must=False,
        section=_NAMING,
        asks="names consist of letters, digits and underscores; `.` and `-` are allowed",
        check=_check_characters,
    ),
    NzRule(
        name="name-case",
        is_must=False,
        section=_NAMING,
        asks="no two members of a group, or attributes of a node, differ only by case",
        check=_check_case,
    ),
)
