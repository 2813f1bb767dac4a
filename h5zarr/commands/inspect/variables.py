"""Variables in columns: name, type, shape, and how they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap

from h5zarr.commands.inspect.attribute_text import attribute_lines, meaning_line
from h5zarr.commands.inspect.storage import shape_text, storage_details, storage_text
from h5zarr.commands.inspect.types import has_members, outline_name, type_name
from h5zarr.commands.inspect.values import PathOf
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import ELLIPSIS, readable
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.model import Attribute, Dataset

NAME_COLUMN = 36
TYPE_COLUMN = 36
SHAPE_COLUMN = 40
MEMBER_LINES = 4  # of a compound or an enumeration
ATTRIBUTES = 16
PIECES = 4  # mappings or external segments
BELOW = 8  # indentation of lines below a variable


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A variable, in columns.

    `members` are lines below it if the type does not fit its column, `details` further lines about its storage. `owner`
    is its type, which attributes of the same type do not repeat.
    """

    name: str
    type: str
    shape: str
    storage: str
    members: list[str]
    details: list[str]
    attributes: Mapping[str, Attribute]
    owner: Datatype | None


def row_lines(
    rows: Mapping[str, Row], after: Mapping[str, str], path_of: PathOf, view: View, *, is_brief: bool
) -> list[str]:
    """Return the lines of a group's variables. Storage follows the shape if it fits for all, else on the next line.

    `after` has lines that follow certain variables. If brief, each variable takes one line.
    """
    columns = (
        column_width((row.name for row in rows.values()), NAME_COLUMN),
        column_width((row.type for row in rows.values()), TYPE_COLUMN),
        column_width((row.shape for row in rows.values()), SHAPE_COLUMN),
    )
    is_narrow = any(len(_line(row, columns, view, beside=True, plain=True)) > view.width for row in rows.values())
    lines = []
    for name, row in rows.items():
        lines.append(_line(row, columns, view, beside=not is_narrow))
        below = [*row.members, *([row.storage] if is_narrow else []), *row.details]
        lines += [" " * BELOW + line for line in below]
        if is_brief:
            lines += meaning_line(row.attributes, view, indent=BELOW)
        else:
            lines += attribute_lines(row.attributes, path_of, view, indent=BELOW, most=ATTRIBUTES, owner=row.owner)
        if name in after:
            lines.append(f"    {after[name]}")
    return lines


def dataset_row(
    name: str, dataset: Dataset, axes: tuple[str | None, ...], attributes: Mapping[str, Attribute], view: View
) -> Row:
    """Return the row of a dataset. `axes` are the names of its dimensions."""
    type, members = type_columns(dataset.datatype, view)
    return Row(
        name=readable(name),
        type=type,
        shape=shape_text(dataset.dataspace, (readable(axis) if axis else None for axis in axes)),
        storage=storage_text(dataset),
        members=members,
        details=storage_details(dataset, view.limit(PIECES)),
        attributes=attributes,
        owner=dataset.datatype,
    )


def type_columns(datatype: Datatype, view: View) -> tuple[str, list[str]]:
    """Return the name of a type, and its members on lines of their own if they do not fit the column."""
    type = type_name(datatype)
    if len(type) <= TYPE_COLUMN or not has_members(datatype):
        return type, []
    return outline_name(datatype), _member_lines(type, view)


def _member_lines(type: str, view: View) -> list[str]:
    """Return the members of a type in braces, on a few lines."""
    spelled = type[type.index("{") : type.rindex("}") + 1]
    lines = wrap(spelled, max(view.width - BELOW, 40), break_on_hyphens=False, subsequent_indent=" ")
    most = view.limit(MEMBER_LINES)
    return lines if most is None or len(lines) <= most else [*lines[: most - 1], f" {ELLIPSIS}"]


def _line(row: Row, columns: tuple[int, int, int], view: View, *, beside: bool, plain: bool = False) -> str:
    name = row.name if plain else view.bold(row.name)
    line = f"    {name}{padded(row.name, columns[0])}  {row.type}{padded(row.type, columns[1])}  {row.shape}"
    if beside:
        line += f"{padded(row.shape, columns[2])}  {row.storage}"
    return line
