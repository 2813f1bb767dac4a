"""References as text: where they come from, the cube if they are one, and their groups in the style of a file."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from h5zarr.commands.inspect.attribute_text import attribute_lines
from h5zarr.commands.inspect.dimensions import Dimension, parent
from h5zarr.commands.inspect.folding import (
    NAME_COLUMN,
    abbreviated,
    dimension_lines,
    fold_groups,
    fold_members,
    more_lines,
    section,
    shown_count,
)
from h5zarr.commands.inspect.inspected_references import InspectedArray, InspectedReferences
from h5zarr.commands.inspect.part import join, levels
from h5zarr.commands.inspect.reference_rows import reference_row
from h5zarr.commands.inspect.values import unknown_path
from h5zarr.commands.inspect.variables import row_lines
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.commands.inspect.zarr_values import describe_attributes, type_text
from h5zarr.containers.layout_text import axis_lines, misfit_lines, piece_lines
from h5zarr.display import counted, readable, size
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog, cost_text
from h5zarr.netcdf_names import OF_ZARR, OF_ZARR_ROOT, WRITTEN_ON_ROOT
from h5zarr.patterns import compile_pattern
from h5zarr.zarr_model.joined import JoinedVariable

GROUP_ATTRIBUTES, GROUP_ATTRIBUTES_IN_BRIEF = 40, 8
FILES = 5  # of those that references refer to; of a cube, the first and the last
_DIGITS = re.compile(r"[0-9]+")
_BOOKKEEPING = OF_ZARR | OF_ZARR_ROOT | WRITTEN_ON_ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesPage:
    """References, and how to show them. `hidden` are the paths of variables that are shown with others."""

    found: InspectedReferences
    view: View
    hidden: frozenset[str]
    forms: Mapping[str, int]
    is_brief: bool = False

    @property
    def hidden_attributes(self) -> frozenset[str]:
        return frozenset() if self.view.everything else _BOOKKEEPING


def render_references(found: InspectedReferences, view: View) -> list[str]:
    """Return the lines of references; empty if nothing matches the pattern."""
    if found.part.is_empty:
        return []
    matches = (lambda path: False) if view.pattern is None else compile_pattern(view.pattern)
    hidden = {path for path in found.parameter_paths() if not view.everything and not matches(path)}
    forms = {} if view.everything or view.pattern else _group_forms(found)
    page = ReferencesPage(found=found, view=view, hidden=frozenset(hidden), forms=forms)

    def lines(is_brief: bool) -> list[str]:
        return list(_group_lines(replace(page, is_brief=is_brief)))

    return [view.bold(readable(found.url)), *_origin_lines(found, view), *abbreviated(lines, view)]


def references_summary(found: InspectedReferences, nbytes: int | None, log: RequestLog) -> str:
    """Return one line: the number of variables, where their chunks are, and what was read to find out."""
    totals, parameters = found.totals(), len(found.parameter_paths() & found.variables.keys())
    variables = counted(totals.variables - parameters, "variable")
    if parameters:
        variables += f" and {counted(parameters, 'parameter')}"
    held = [f"{variables} in {counted(totals.groups, 'group')}", f"{counted(totals.referenced, 'chunk')} referenced"]
    held += [f"{totals.inlined:,} inlined", f"{totals.missing:,} missing"]
    if found.problems:
        held.append(counted(len(found.problems), "problem"))
    cost = "" if nbytes is None else f" · {cost_text(log, nbytes)}"
    return ", ".join(held) + cost


def _origin_lines(found: InspectedReferences, view: View) -> Iterator[str]:
    writer = "another tool" if found.version is None else f"h5zarr {readable(found.version)}"
    yield f"  references in {found.container}, written by {writer}"
    if found.cube is not None:
        yield f"  cube of {counted(len(found.cube.pieces), 'file')}:"
        yield from (f"    {line}" for line in axis_lines(found.cube))
        yield from (f"      {line}" for line in piece_lines(found.cube, view.limit(FILES)))
        yield from (f"      {line}" for line in misfit_lines(found.cube))
        return
    files = [
        f"{readable(str(Location.parse(url)))}{f', {size(nbytes)}' if nbytes is not None else ''}"
        for url, nbytes in list(zip(found.urls, found.sizes, strict=True))[: view.limit(FILES)]
        if url
    ]
    if len(found.urls) == 1:
        yield f"  source: {files[0] if files else 'not stated'}"
    elif files:
        yield f"  {counted(len(found.urls), 'source')}:"
        yield from (f"    {line}" for line in files)
        yield from more_lines(view, len(found.urls) - len(files), "source")


def _group_lines(page: ReferencesPage) -> Iterator[str]:
    """Return the lines of all groups. Not recursive, because groups may nest deeply."""
    part = page.found.part
    inside: dict[str, list[str]] = {}
    for path in page.found.groups:
        if path != "/" and (path in part.whole or path in part.frames):
            inside.setdefault(parent(path), []).append(path)
    waiting: list[tuple[str, str | None]] = [("/", None)]
    while waiting:
        path, line = waiting.pop()
        if line is not None:
            yield line
            continue
        groups = inside.get(path, [])
        body = _body(page, path, groups)
        if path != "/" and (body or not groups):
            yield ""
            yield f"group: {page.view.bold(readable(path))}{'' if body else '  (empty)'}"
        yield from body
        if not _ends_at(page, path):
            waiting.extend(reversed(fold_groups(path, groups, page.forms, page.view)))


def _ends_at(page: ReferencesPage, path: str) -> bool:
    """Return whether the subgroups of a group are too deep to open, so that they are only listed."""
    return page.view.depth is not None and levels(path) + 1 >= page.view.depth


def _body(page: ReferencesPage, path: str, groups: list[str]) -> list[str]:
    found, whole = page.found, path in page.found.part.whole
    variables = {
        place.rpartition("/")[2]: variable
        for place, variable in found.variables.items()
        if parent(place) == path and place not in page.hidden
    }
    dimensions: list[Dimension] = list(found.dimensions.get(path, ()))
    if not whole:
        used = {name for variable in variables.values() for name in variable.dimension_names}
        dimensions = [one for one in dimensions if one.name in used]
    return [
        *section("dimensions:", dimension_lines(dimensions, page.view)),
        *section("variables:", _variable_lines(page, path, variables)),
        *section("groups:", _closed_lines(page, groups) if _ends_at(page, path) else []),
        *section("attributes:", _attribute_lines(page, path) if whole else []),
    ]


def _variable_lines(
    page: ReferencesPage, path: str, variables: Mapping[str, InspectedArray | JoinedVariable]
) -> list[str]:
    families: dict[str, Hashable] = {name: (_DIGITS.sub("#", name), _form(found)) for name, found in variables.items()}
    shown, after = fold_members(families, page.view, "variable")
    rows = {
        name: reference_row(page.found, join(path, name), variables[name], page.view, page.hidden_attributes)
        for name in shown
    }
    return row_lines(rows, after, unknown_path, page.view, is_brief=page.is_brief)


def _attribute_lines(page: ReferencesPage, path: str) -> list[str]:
    if not page.view.attributes:
        return []
    group = page.found.groups[path]
    types = {} if group.record is None else group.record.types
    shown = describe_attributes(group.attributes, types, page.hidden_attributes)
    most = GROUP_ATTRIBUTES_IN_BRIEF if page.is_brief else GROUP_ATTRIBUTES
    return attribute_lines(shown, unknown_path, page.view, indent=4, most=most)


def _closed_lines(page: ReferencesPage, groups: list[str]) -> list[str]:
    count = shown_count(len(groups), page.view)
    names = {path: readable(path.rpartition("/")[2]) for path in groups[:count]}
    column = column_width(names.values(), NAME_COLUMN)
    lines = []
    for path, name in names.items():
        attributes = counted(len(page.found.groups[path].attributes), "attribute")
        members = counted(page.found.members.get(path, 0), "member")
        lines.append(f"    {page.view.bold(name)}{padded(name, column)}  {members}, {attributes}")
    return lines + more_lines(page.view, len(groups) - count, "group")


def _group_forms(found: InspectedReferences) -> dict[str, int]:
    """Return a number for each group. Groups with the same number have the same attributes and similar members."""
    members: dict[str, list[Hashable]] = {}
    for path, variable in found.variables.items():
        members.setdefault(parent(path), []).append((path.rpartition("/")[2], _form(variable)))
    forms: dict[str, int] = {}
    numbers: dict[Hashable, int] = {}
    for path in reversed(list(found.groups)):
        form = (tuple(members.get(path, [])), tuple(sorted(found.groups[path].attributes)))
        forms[path] = numbers.setdefault(form, len(numbers))
        if path != "/":
            members.setdefault(parent(path), []).append((path.rpartition("/")[2], forms[path]))
    return forms


def _form(variable: InspectedArray | JoinedVariable) -> Hashable:
    kind = "parts" if isinstance(variable, JoinedVariable) else type_text(variable)
    return kind, len(variable.shape)
