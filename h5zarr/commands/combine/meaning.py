"""What the stored numbers of a variable mean, file by file: packing, missing data and units. Pure.

Numbers that files may choose freely, such as `scale_factor`, are *parameters*: an array can have other ones in each
file. Everything else must be the same in all files that share an array.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from h5zarr.tree import StoredForm
from h5zarr.zarr_model.calendars import TimeUnits, parse_units
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, VariableRecord
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing
from h5zarr.zarr_model.units import canonical_units

PARAMETERS = ("scale_factor", "add_offset", FILL_VALUE, "missing_value")
"""Attributes that say which number a stored number means. If one differs, none may remain as an attribute: readers
would apply only the others, and return wrong values."""

_TEXTS = ("_Unsigned", "_Encoding", "dtype")
_USUAL = VariableRecord()


@dataclass(frozen=True, slots=True)
class Meaning:
    """`kind` is what the members of an array have in common, and `parameters` may differ.

    `units` says what the numbers measure, and must be the same in all files.
    """

    kind: Hashable
    units: Hashable
    parameters: Mapping[str, Any]

    @property
    def numbers(self) -> bytes:
        """The parameters, in a form that can be compared: NaN equals NaN."""
        return b"".join(np.asarray(one).tobytes() for one in self.parameters.values())


def find_meaning(node: ArrayNode, record: VariableRecord | None, dtype: np.dtype[Any]) -> Meaning:
    """Return what the numbers of an array with elements of `dtype` mean."""
    record = record or _USUAL
    parameters: dict[str, Any] = {}
    others: list[Hashable] = []
    for name in PARAMETERS:
        number = _find_number(name, node.attributes, record, dtype)
        if number is not None:
            parameters[name] = number
            others.append((name, number.dtype.str))
        elif name in node.attributes:
            others.append((name, json.dumps(node.attributes[name])))
    withheld = {name: repr(kept) for name, kept in record.withheld.items()}
    kind = (
        tuple(others),
        tuple(json.dumps(node.attributes.get(name)) for name in _TEXTS),
        repr(record.fill_value),
        tuple(sorted(withheld.items())),
        _element_form(record.form),
    )
    return Meaning(kind, (find_units(node.attributes), repr(record.form.enumeration)), parameters)


def find_units(attributes: Mapping[str, Json]) -> Hashable:
    """Return the units in a form in which equal units are equal, however they are written."""
    times = parse_units(attributes)
    if isinstance(times, TimeUnits):
        return times.step, times.epoch, times.calendar
    units = attributes.get("units")
    return canonical_units(units) if isinstance(units, str) else json.dumps(units)


def _find_number(name: str, attributes: Mapping[str, Json], record: VariableRecord, dtype: np.dtype[Any]) -> Any:
    """Return a parameter as a numpy number of its type in the file; None if it is not a number or not there."""
    value = attributes.get(name)
    if value is None:
        return None
    if name == FILL_VALUE:
        found = decode_missing(value, dtype.newbyteorder("=")) if dtype.kind in "iuf" else None
        return None if found is None else found[()]
    kind = record.types.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return np.dtype(kind).type(value) if isinstance(kind, str) else np.asarray(value)[()]
    except (TypeError, ValueError, OverflowError):
        return None


def _element_form(form: StoredForm) -> Hashable:
    """Return how the file means its elements, if their Zarr type does not show it."""
    number = None if form.number is None else np.dtype(form.number).newbyteorder("=").str
    return number, form.padding, form.members


def find_flags(attributes: Mapping[str, Json]) -> dict[tuple[Json, ...], str]:
    """Return what the values of a variable with flags mean. Spec: CF 1.11, 3.5."""
    values, meanings = attributes.get("flag_values"), attributes.get("flag_meanings")
    if not isinstance(meanings, str):
        return {}
    masks = attributes.get("flag_masks")
    listed = [one if isinstance(one, list) else [one] for one in (masks, values) if one is not None]
    keys = list(zip(*listed, strict=False))
    return dict(zip(keys, meanings.split(), strict=False))
