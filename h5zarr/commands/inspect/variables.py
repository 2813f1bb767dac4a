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
    """The columns of a variable. `members` are lines below it, if the type does not fit its column."""

    name: str
    type: str
    shape: str
    storage: str
    members: list[str]


def variable_lines(
    datasets: Mapping[str, Dataset],
    axes: Mapping[str, tuple[str | None, ...]],
    attributes: Mapping[str, Mapping[str, Attribute]],
    after: Mapping[str, str],
    path_of: PathOf,
    view: View,
    *,
    is_brief: bool,
) -> list[str]:
    """Return the lines of a group's variables. Storage follows the shape if it fits for all, else on the next line.

    `after` has lines that follow certain variables. If brief, each variable takes one line.
    """
    rows = {name: _row(name, dataset, axes[name], view) for name, dataset in datasets.items()}
    columns = (
        column_width((row.name for row in rows.values()), NAME_COLUMN),
        column_width((row.type for row in rows.values()), TYPE_COLUMN),
        column_width((row.shape for row in rows.values()), SHAPE_COLUMN),
    )
    is_narrow = any(len(_line(row, columns, view, beside=True, plain=True)) > view.width for row in rows.values())
    lines = []
    for name, dataset in datasets.items():
        lines.append(_line(rows[name], columns, view, beside=not is_narrow))
        below = [*rows[name].members, *([rows[name].storage] if is_narrow else [])]
        below += storage_details(dataset, view.limit(PIECES))
        lines += [" " * BELOW + line for line in below]
        if is_brief:
            lines += meaning_line(attributes[name], view, indent=BELOW)
        else:
            lines += attribute_lines(
                attributes[name], path_of, view, indent=BELOW, most=ATTRIBUTES, owner=dataset.datatype
            )
        if name in after:
            lines.append(f"    {after[name]}")
    return lines


def _row(name: str, dataset: Dataset, axes: tuple[str | None, ...], view: View) -> Row:
    type = type_name(dataset.datatype)
    members = []
    if len(type) > TYPE_COLUMN and has_members(dataset.datatype):
        members = _member_lines(type, view)
        type = outline_name(dataset.datatype)
    return Row(
        name=readable(name),
        type=type,
        shape=shape_text(dataset.dataspace, (readable(axis) if axis else None for axis in axes)),
        storage=storage_text(dataset),
        members=members,
    )


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
