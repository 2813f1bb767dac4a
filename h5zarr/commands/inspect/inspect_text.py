"""A file as text, similar to `ncdump -h`, with the storage details of `h5ls -v`.

Similar members are folded, long values are shortened, and netCDF's internal attributes are hidden, unless everything is
requested. `problems` are always shown in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from h5zarr.commands.inspect.alike import families, group_forms
from h5zarr.commands.inspect.attribute_text import attribute_lines
from h5zarr.commands.inspect.dimensions import Dimension, Dimensions, find_dimensions, is_bookkeeping
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
from h5zarr.commands.inspect.links import link_text
from h5zarr.commands.inspect.part import Members, Part, join, levels, members, ordered_attributes, select
from h5zarr.commands.inspect.types import type_name
from h5zarr.commands.inspect.variables import dataset_row, row_lines
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import counted, readable
from h5zarr.hdf5.model import (
    Attribute,
    CommittedDatatype,
    Dataset,
    Group,
    H5File,
    Link,
    Object,
)

GROUP_ATTRIBUTES = 40
GROUP_ATTRIBUTES_IN_BRIEF = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file, and which part of it to show."""

    file: H5File
    view: View
    part: Part
    dimensions: Dimensions
    is_brief: bool
    forms: Mapping[str, int]

    def attributes(self, path: str, owner: Object) -> Mapping[str, Attribute]:
        """Return the attributes to show: not those already shown as dimensions, unless everything is requested."""
        if not self.view.attributes:
            return {}
        return {
            attribute.name: attribute
            for attribute in ordered_attributes(owner.attributes)
            if self.view.everything or not is_bookkeeping(attribute, owner, path, self.dimensions)
        }


def open_page(file: H5File, view: View) -> Page:
    """Return the page of a file, ready to render. `page.part.is_empty`: the pattern matched nothing."""
    part = select(file, view.pattern, view.depth)
    return Page(
        file=file,
        view=view,
        part=part,
        dimensions=find_dimensions(file),
        is_brief=False,
        forms={} if view.everything or view.pattern else group_forms(file),
    )


def render(page: Page) -> list[str]:
    """Return the lines of a page, without line ends: the tree of groups. Long pages are abbreviated."""
    title = page.view.bold(readable(page.file.url))

    def lines(is_brief: bool) -> list[str]:
        return list(_group_lines(replace(page, is_brief=is_brief), "/", page.file.root))

    return [title, *abbreviated(lines, page.view)]


def _group_lines(page: Page, path: str, group: Group) -> Iterator[str]:
    """Return the lines of a group and its subgroups. Not recursive, because groups may nest deeply."""
    waiting: list[tuple[str, Group | str]] = [(path, group)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, str):
            yield found
            continue
        inside = members(page.file, place, found, page.part)
        body = _body(page, place, found, inside)
        if place != "/" and (body or not inside.groups):
            yield ""
            yield f"group: {page.view.bold(readable(place))}{'' if body else '  (empty)'}"
        yield from body
        if not _ends_at(page, place):
            waiting.extend(reversed(_subgroups(page, place, inside)))


def _ends_at(page: Page, path: str) -> bool:
    """Return whether the subgroups of a group are too deep to open, so that they are only listed."""
    return page.view.depth is not None and levels(path) + 1 >= page.view.depth


def _subgroups(page: Page, path: str, inside: Members) -> list[tuple[str, Group | str]]:
    """Return the subgroups to show, and lines that represent the others."""
    groups = {join(path, name): group for name, group in inside.groups.items()}
    folded = fold_groups(path, list(groups), page.forms, page.view)
    return [(place, groups[place] if line is None else line) for place, line in folded]


def _body(page: Page, path: str, group: Group, inside: Members) -> list[str]:
    whole = path in page.part.whole
    used = _used_dimensions(page, path, inside) if not whole else page.dimensions.of_group(path)
    hidden = {dimension.path for dimension in used if not dimension.has_variable and not page.view.everything}
    visible = {name: dataset for name, dataset in inside.datasets.items() if join(path, name) not in hidden}
    return [
        *section("types:", _type_lines(page, inside.datatypes)),
        *section("dimensions:", dimension_lines(used, page.view)),
        *section("variables:", _dataset_lines(page, path, visible)),
        *section("groups:", _closed_lines(page, inside.groups) if _ends_at(page, path) else []),
        *section("links:", _link_lines(page, path, inside.links)),
        *section("attributes:", _attribute_lines(page, path, group) if whole else []),
    ]


def _used_dimensions(page: Page, path: str, inside: Members) -> list[Dimension]:
    """Return the dimensions of this group that its visible variables use."""
    names = {
        name
        for member, dataset in inside.datasets.items()
        for name in page.dimensions.of_axes(join(path, member), dataset)
    }
    return [dimension for dimension in page.dimensions.of_group(path) if dimension.name in names]


def _attribute_lines(page: Page, path: str, owner: Object) -> list[str]:
    most = GROUP_ATTRIBUTES_IN_BRIEF if page.is_brief else GROUP_ATTRIBUTES
    return attribute_lines(page.attributes(path, owner), page.file.path_of, page.view, indent=4, most=most)


def _dataset_lines(page: Page, path: str, datasets: Mapping[str, Dataset]) -> list[str]:
    shown, after = fold_members(families(datasets), page.view, "dataset")
    rows = {}
    for name in shown:
        place, dataset = join(path, name), datasets[name]
        axes = page.dimensions.of_axes(place, dataset)
        rows[name] = dataset_row(name, dataset, axes, page.attributes(place, dataset), page.view)
    return row_lines(rows, after, page.file.path_of, page.view, is_brief=page.is_brief)


def _type_lines(page: Page, datatypes: Mapping[str, Object]) -> list[str]:
    count = shown_count(len(datatypes), page.view)
    shown = {readable(name): found for name, found in list(datatypes.items())[:count]}
    column = column_width(shown, NAME_COLUMN)
    lines = []
    for name, found in shown.items():
        if isinstance(found, CommittedDatatype):
            room = page.view.limit(max(page.view.width - column - 20, 30))
            said = type_name(found.datatype, limit=room)
            lines.append(f"    {page.view.bold(name)}{padded(name, column)}  {said}")
            if page.view.attributes:
                lines += attribute_lines(
                    found.attributes, page.file.path_of, page.view, indent=8, most=GROUP_ATTRIBUTES
                )
    return lines + more_lines(page.view, len(datatypes) - count, "type")


def _closed_lines(page: Page, groups: Mapping[str, Group]) -> list[str]:
    count = shown_count(len(groups), page.view)
    shown = {readable(name): group for name, group in list(groups.items())[:count]}
    column = column_width(shown, NAME_COLUMN)
    lines = []
    for name, group in shown.items():
        held = f"{counted(len(group.links), 'member')}, {counted(len(group.attributes), 'attribute')}"
        lines.append(f"    {page.view.bold(name)}{padded(name, column)}  {held}")
    return lines + more_lines(page.view, len(groups) - count, "group")


def _link_lines(page: Page, path: str, links: Mapping[str, Link]) -> list[str]:
    count = shown_count(len(links), page.view)
    shown = {readable(name): link for name, link in list(links.items())[:count]}
    column = column_width(shown, NAME_COLUMN)
    lines = [
        f"    {page.view.bold(name)}{padded(name, column)} -> {link_text(page.file, path, link)}"
        for name, link in shown.items()
    ]
    return lines + more_lines(page.view, len(links) - count, "link")
