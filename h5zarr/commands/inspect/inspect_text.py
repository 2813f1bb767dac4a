"""A file as text, similar to `ncdump -h`, with the storage details of `h5ls -v`.

Similar members are folded, long values are shortened, and netCDF's internal attributes are hidden, unless everything is
requested. `problems` are always shown in full.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from h5zarr.commands.inspect.alike import families, group_forms
from h5zarr.commands.inspect.attribute_text import attribute_lines
from h5zarr.commands.inspect.dimensions import Dimension, Dimensions, find_dimensions, is_bookkeeping
from h5zarr.commands.inspect.links import link_text
from h5zarr.commands.inspect.part import Members, Part, join, levels, members, ordered_attributes, select
from h5zarr.commands.inspect.types import type_name
from h5zarr.commands.inspect.variables import variable_lines
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import ELLIPSIS, counted, readable, shortened
from h5zarr.hdf5.model import (
    Attribute,
    CommittedDatatype,
    Dataset,
    Group,
    H5File,
    Link,
    Object,
)

CROWD = 20  # in a group with more members of a kind, similar ones are folded
SHOWN = 10  # of those that are similar
ALIKE_GROUPS = 5  # this many groups with the same members are folded to the first
MOST = 100  # members of a kind, similar or not
MANY_LINES = 200  # a longer page only says what each variable is
GROUP_ATTRIBUTES = 40
GROUP_ATTRIBUTES_IN_BRIEF = 8
NAME_COLUMN = 32


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

    def shown(self, count: int) -> int:
        """Return how many of `count` members of one kind are shown."""
        return count if self.view.everything or count <= CROWD else SHOWN


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
    lines = list(_group_lines(page, "/", page.file.root))
    if page.view.everything or not page.view.attributes or len(lines) <= MANY_LINES:
        return [title, *lines]
    brief = list(_group_lines(replace(page, is_brief=True), "/", page.file.root))
    if len(brief) == len(lines):
        return [title, *lines]
    return [title, *brief, "", f"Attributes are shortened ({page.view.hint} shows everything)."]


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
    """Return the subgroups to show, and lines that represent the others, each after the group it resembles."""
    places = {join(path, name): group for name, group in inside.groups.items()}
    alike: dict[int, list[str]] = {}
    for number, place in enumerate(places):
        alike.setdefault(page.forms.get(place, -1 - number), []).append(place)
    folded = {first: others for first, *others in alike.values() if len(others) + 1 >= ALIKE_GROUPS}
    hidden = {place for others in folded.values() for place in others}
    found: list[tuple[str, Group | str]] = []
    for place, group in places.items():
        if place not in hidden:
            found.append((place, group))
        if place in folded:
            found.append((place, _folded_groups(page, place, folded[place])))
    if len(found) > MOST and not page.view.everything:
        rest = counted(len(found) - MOST, "more group")
        found[MOST:] = [(path, f"  {ELLIPSIS} {rest} in {readable(path)} (use {page.view.hint})")]
    return found


def _folded_groups(page: Page, first: str, others: Sequence[str]) -> str:
    names = shortened(", ".join(readable(place.rpartition("/")[2]) for place in others), page.view.width // 2)
    more = counted(len(others), "more group")
    return f"  {ELLIPSIS} {more} like {readable(first)} (use {page.view.hint}): {names}"


def _body(page: Page, path: str, group: Group, inside: Members) -> list[str]:
    whole = path in page.part.whole
    used = _used_dimensions(page, path, inside) if not whole else page.dimensions.of_group(path)
    hidden = {dimension.path for dimension in used if not dimension.has_variable and not page.view.everything}
    visible = {name: dataset for name, dataset in inside.datasets.items() if join(path, name) not in hidden}
    return [
        *_section("types:", _type_lines(page, inside.datatypes)),
        *_section("dimensions:", _dimension_lines(page, used)),
        *_section("variables:", _dataset_lines(page, path, visible)),
        *_section("groups:", _closed_lines(page, inside.groups) if _ends_at(page, path) else []),
        *_section("links:", _link_lines(page, path, inside.links)),
        *_section("attributes:", _attribute_lines(page, path, group) if whole else []),
    ]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"  {title}", *lines] if lines else []


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


def _dimension_lines(page: Page, dimensions: Sequence[Dimension]) -> list[str]:
    count = page.shown(len(dimensions))
    names = [readable(dimension.name) for dimension in dimensions[:count]]
    column = column_width(names, NAME_COLUMN)
    lines = []
    for name, dimension in zip(names, dimensions, strict=False):
        label = f'  "{readable(dimension.label)}"' if dimension.label else ""
        limit = " (UNLIMITED)" if dimension.unlimited else ""
        lines.append(f"    {name}{padded(name, column)} = {dimension.length}{limit}{label}")
    return lines + _more(page, len(dimensions) - count, "dimension")


def _dataset_lines(page: Page, path: str, datasets: Mapping[str, Dataset]) -> list[str]:
    shown, after = _folded_datasets(page, datasets)
    axes = {name: page.dimensions.of_axes(join(path, name), dataset) for name, dataset in shown.items()}
    attributes = {name: page.attributes(join(path, name), dataset) for name, dataset in shown.items()}
    return variable_lines(shown, axes, attributes, after, page.file.path_of, page.view, is_brief=page.is_brief)


def _folded_datasets(page: Page, datasets: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Return the datasets to show, and lines for the others, by the name of the dataset they follow."""
    if page.view.everything or len(datasets) <= CROWD:
        return dict(datasets), {}
    family = families(datasets)
    alike: dict[tuple[str, Hashable], list[str]] = {}
    for name in datasets:
        alike.setdefault(family[name], []).append(name)
    kept: list[str] = []
    after: dict[str, str] = {}
    for name in datasets:
        names = alike[family[name]]
        if name in names[:SHOWN]:
            kept.append(name)
        if len(names) > SHOWN:
            more = counted(len(names) - SHOWN, "more dataset")
            after[names[SHOWN - 1]] = f"{ELLIPSIS} {more} like these (use {page.view.hint})"
    if len(kept) > MOST:
        after[kept[MOST - 1]] = f"{ELLIPSIS} {counted(len(kept) - MOST, 'more dataset')} (use {page.view.hint})"
    return {name: datasets[name] for name in kept[:MOST]}, after


def _type_lines(page: Page, datatypes: Mapping[str, Object]) -> list[str]:
    count = page.shown(len(datatypes))
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
    return lines + _more(page, len(datatypes) - count, "type")


def _closed_lines(page: Page, groups: Mapping[str, Group]) -> list[str]:
    count = page.shown(len(groups))
    shown = {readable(name): group for name, group in list(groups.items())[:count]}
    column = column_width(shown, NAME_COLUMN)
    lines = []
    for name, group in shown.items():
        held = f"{counted(len(group.links), 'member')}, {counted(len(group.attributes), 'attribute')}"
        lines.append(f"    {page.view.bold(name)}{padded(name, column)}  {held}")
    return lines + _more(page, len(groups) - count, "group")


def _link_lines(page: Page, path: str, links: Mapping[str, Link]) -> list[str]:
    count = page.shown(len(links))
    shown = {readable(name): link for name, link in list(links.items())[:count]}
    column = column_width(shown, NAME_COLUMN)
    lines = [
        f"    {page.view.bold(name)}{padded(name, column)} -> {link_text(page.file, path, link)}"
        for name, link in shown.items()
    ]
    return lines + _more(page, len(links) - count, "link")


def _more(page: Page, count: int, thing: str, note: str = "") -> list[str]:
    more = counted(count, f"more {thing}")
    return [f"    {ELLIPSIS} {more}{note} (use {page.view.hint})"] if count > 0 else []
