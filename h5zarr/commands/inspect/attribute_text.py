"""Attributes, one line each."""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.commands.inspect.types import type_name
from h5zarr.commands.inspect.values import PathOf, element_type, value_text
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import ELLIPSIS, readable, shortened
from h5zarr.hdf5.datatype import Compound, Datatype, Enumeration, String, VariableLengthString
from h5zarr.hdf5.model import Attribute

NAME_COLUMN = 32
MEANINGS = ("long_name", "description", "standard_name", "title")  # the first of these describes the variable


def attribute_lines(
    attributes: Mapping[str, Attribute],
    path_of: PathOf,
    view: View,
    *,
    indent: int,
    most: int,
    owner: Datatype | None = None,
) -> list[str]:
    """Return `name = value` for each attribute, with aligned `=`; after `most` of them, the number of others.

    The type is shown unless it is text or, for a variable, the type of the variable.
    """
    shown = list(attributes.values())[: view.limit(most)]
    names = [readable(attribute.name) for attribute in shown]
    column = column_width(names, NAME_COLUMN)
    lines = []
    for name, attribute in zip(names, shown, strict=True):
        start = f"{' ' * indent}{name}{padded(name, column)} = "
        room = view.limit(max(view.width - len(start), 30))
        lines.append(start + attribute_text(attribute, path_of, limit=room, owner=owner))
    if len(shown) < len(attributes):
        lines.append(f"{' ' * indent}{ELLIPSIS} {len(attributes) - len(shown)} more")
    return lines


def meaning_line(attributes: Mapping[str, Attribute], view: View, *, indent: int) -> list[str]:
    """Return at most one line: what a variable is, and its units."""
    said = ""
    for name in ("units", next((name for name in MEANINGS if name in attributes), "")):
        if name in attributes:
            start = f"{said}{', ' if said else ''}{name} = "
            room = max(view.width - indent - len(start), 20)
            value = value_text(attributes[name].value, attributes[name].datatype)
            said = start + shortened(value, room)
    return [" " * indent + said] if said else []


def attribute_text(
    attribute: Attribute, path_of: PathOf, *, limit: int | None = None, owner: Datatype | None = None
) -> str:
    """Return the value, followed in parentheses by the type and shape if the value does not imply them."""
    note = _note(attribute, owner)
    room = None if limit is None else max(limit - len(note), 20)
    return value_text(attribute.value, attribute.datatype, path_of, limit=room) + note


def _note(attribute: Attribute, owner: Datatype | None) -> str:
    said = []
    base = element_type(attribute.datatype)
    if base != owner and not isinstance(base, String | VariableLengthString | Compound | Enumeration):
        said.append(type_name(base, limit=20).replace(" (", ", ").replace(")", ""))
    if attribute.value is not None and attribute.value.ndim > 1:
        said.append(" x ".join(str(extent) for extent in attribute.value.shape))
    return f" ({', '.join(said)})" if said else ""
