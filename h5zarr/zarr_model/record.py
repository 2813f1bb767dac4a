"""The record of a group as JSON: what the file says and Zarr cannot express, stored as one attribute of the group.

| key             | meaning                                                                                        |
|-----------------|------------------------------------------------------------------------------------------------|
| `h5zarr`        | 1, the version of this format                                                                   |
| `classic`       | true: the format has neither chunks nor filters, and its byte order does not matter             |
| `unlimited`     | the names of the group's own unlimited dimensions                                               |
| `types`         | the numpy types of attributes whose JSON form does not show them; a record has [name, type] pairs |
| `foreign`       | the names of attributes whose types netCDF does not know                                        |
| `padded`        | the size in bytes of text attributes that the file pads with blanks                             |
| `variables`     | by name; a contiguous variable with the type of its Zarr array needs no entry                   |
| – `types`, `foreign`, `padded` | as for the group                                                                 |
| – `fill_value`  | {"value": …, "type": …}: a `_FillValue` that the attributes cannot hold; numbers have a type |
| – `withheld`    | by name, attributes that are not written to Zarr, in the same form as `fill_value`              |
| – `chunks`      | the shape of a chunk in the file                                                                |
| – `filters`     | the filters in the order of writing: [number, [client data]]                                    |
| – `number`      | the numpy type of the elements, if the Zarr array has a different one                           |
| – `enumeration` | {"name": …, "members": {name: value}}                                                           |
| – `members`     | the names of a record's members, if the array shows gaps as members                             |
| – `padding`     | the character that pads fixed-length text in the file; the Zarr array has no padding            |
| `attributes`    | attributes of the file with the same name as the record                                         |
| `known`         | false: none of the above is known; the record exists only for `attributes`                      |

Missing keys are empty, or false. NaN and infinities are the words that Zarr uses in fill values, so that every JSON
parser can read the record.

The attribute is called `_nc_record` and is a JSON object. xarray hides attributes of groups that begin with `_nc`. In a
group that declares NZ it is called `netcdf_record`, because NZ requires names to begin with a letter. xarray shows this
one and cannot write objects to netCDF, so it is JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any, TypeVar

from h5zarr.errors import Problem
from h5zarr.tree import AttributeNotes, StoredEnumeration, StoredForm
from h5zarr.zarr_model.hierarchy import AttributeType, GroupNode, GroupRecord, Json, KeptValue, VariableRecord
from h5zarr.zarr_model.joined import decode_joined, encode_joined
from h5zarr.zarr_model.nz.declaration import is_declared

RECORD = "_nc_record"
NZ_RECORD = "netcdf_record"
RECORD_KIND = "record"
"""The kind of warning about a record that is ignored."""

_NAMES = (RECORD, NZ_RECORD)
_MARK = "h5zarr"
_VERSION = 1
_NUMERIC = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64|96|128)|complex(64|128|192|256)")
_WORDS = ("NaN", "Infinity", "-Infinity")
_REMEDY = "Translate the file again to restore its types and encodings."
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFilter:
    """A filter in the record, which does not store names of filters."""

    number: int
    values: tuple[int, ...]
    name: str = ""


# --- writing


def encode_group(node: GroupNode) -> dict[str, Json]:
    """Return the attributes of a group as they are stored: with its record, if it has one.

    An attribute of the file with the name of the record moves into the record. An attribute with the other of the two
    names stays. Then the record is stored even if it is empty: readers look for `_nc_record` first, and find the right
    one.
    """
    attributes = dict(node.attributes)
    taken = [name for name in _NAMES if name in attributes]
    if node.record is None and not taken:
        return attributes
    document: dict[str, Json] = {_MARK: _VERSION}
    document |= {"known": False} if node.record is None else encode_record(node.record)
    is_nz = is_declared(attributes)
    if moved := {name: _spell_out(attributes.pop(name)) for name in taken if is_nz or name == RECORD}:
        document["attributes"] = moved
    if is_nz:
        return {**attributes, NZ_RECORD: json.dumps(document, separators=(",", ":"))}
    return {**attributes, RECORD: document}


def encode_record(record: GroupRecord) -> dict[str, Json]:
    """Return the record as JSON, without the mark of the format."""
    document: dict[str, Json] = {}
    if record.is_classic:
        document["classic"] = True
    if record.unlimited:
        document["unlimited"] = list(record.unlimited)
    document |= _encode_types(record.types) | _encode_notes(record.notes)
    if variables := {name: found for name, one in record.variables.items() if (found := _encode_variable(one))}:
        document["variables"] = variables
    if record.joined:
        document["joined"] = {name: encode_joined(one) for name, one in record.joined.items()}
    return document


def _encode_variable(variable: VariableRecord) -> dict[str, Json]:
    document = _encode_types(variable.types)
    if (kept := variable.fill_value) is not None:
        document["fill_value"] = _encode_kept(kept)
    if variable.withheld:
        document["withheld"] = {name: _encode_kept(one) for name, one in variable.withheld.items()}
    form = variable.form
    if form.chunk_shape is not None:
        document["chunks"] = list(form.chunk_shape)
    if form.filters:
        document["filters"] = [[one.number, list(one.values)] for one in form.filters]
    if form.number is not None:
        document["number"] = form.number
    if form.enumeration is not None:
        document["enumeration"] = {"name": form.enumeration.name, "members": dict(form.enumeration.members)}
    if form.members:
        document["members"] = list(form.members)
    if form.padding:
        document["padding"] = form.padding
    if variable.parameters:
        document["parameters"] = dict(variable.parameters)
    return document | _encode_notes(form.notes)


def _encode_kept(kept: KeptValue) -> dict[str, Json]:
    return {"value": _spell_out(kept.value), **({} if kept.type is None else {"type": kept.type})}


def _encode_types(types: Mapping[str, AttributeType]) -> dict[str, Json]:
    if not types:
        return {}
    return {"types": {name: one if isinstance(one, str) else list(map(list, one)) for name, one in types.items()}}


def _encode_notes(notes: AttributeNotes) -> dict[str, Json]:
    document: dict[str, Json] = {}
    if notes.foreign:
        document["foreign"] = list(notes.foreign)
    if notes.padded:
        document["padded"] = dict(notes.padded)
    return document


def _spell_out(value: Json) -> Json:
    match value:
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list() | tuple():
            return [_spell_out(one) for one in value]
        case Mapping():
            return {name: _spell_out(one) for name, one in value.items()}
    return value


# --- reading


def decode_group(path: str, attributes: Mapping[str, Json]) -> tuple[GroupNode, tuple[Problem, ...]]:
    """Return the group with these stored attributes, and a warning if its record is ignored because it is malformed.

    An attribute with the name of a record, but without its mark, is an ordinary attribute.
    """
    for name in _NAMES:
        document = _find_mark(attributes.get(name))
        if document is None:
            continue
        others = {key: value for key, value in attributes.items() if key != name}
        try:
            moved = _decode_mapping(document.get("attributes", {}), lambda value: value)
            if not moved.keys() <= set(_NAMES):
                raise ValueError("attributes that do not have the name of the record")
            record = None if document.get("known") is False else decode_record(document)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"the record {name} is ignored, because it is malformed ({str(error)[:80]})"
            return GroupNode(attributes=others), (Problem(path, RECORD_KIND, what, _REMEDY),)
        return GroupNode(attributes=others | moved, record=record), ()
    return GroupNode(attributes=attributes), ()


def _find_mark(value: Json) -> Mapping[str, Json] | None:
    """Return a record that is stored as an object or as JSON text; None if the value does not have the mark."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) and _MARK in value else None


def decode_record(document: Mapping[str, Json]) -> GroupRecord:
    """Return the record that JSON describes. Raises ValueError or another built-in error if it is malformed."""
    if document[_MARK] != _VERSION:
        raise ValueError(f"its version is {document[_MARK]!r}, expected {_VERSION}")
    return GroupRecord(
        types=_decode_types(document),
        notes=_decode_notes(document),
        unlimited=_decode_names(document.get("unlimited", [])),
        is_classic=_decode_bool(document.get("classic", False)),
        variables=_decode_mapping(document.get("variables", {}), _decode_variable),
        joined=_decode_mapping(document.get("joined", {}), decode_joined),
    )


def _decode_variable(document: Json) -> VariableRecord:
    if not isinstance(document, Mapping):
        raise ValueError("a variable is not an object")
    kept = document.get("fill_value")
    return VariableRecord(
        types=_decode_types(document),
        fill_value=None if kept is None else _decode_kept(kept),
        withheld=_decode_mapping(document.get("withheld", {}), _decode_kept),
        form=_decode_form(document),
        parameters=_decode_mapping(document.get("parameters", {}), _decode_text),
    )


def _decode_form(document: Mapping[str, Json]) -> StoredForm:
    chunks, number, enumeration = document.get("chunks"), document.get("number"), document.get("enumeration")
    return StoredForm(
        chunk_shape=None if chunks is None else tuple(_decode_int(one, 1) for one in _decode_list(chunks)),
        filters=tuple(
            RecordedFilter(number=_decode_int(one), values=tuple(map(_decode_int, _decode_list(values))))
            for one, values in _decode_list(document.get("filters", []))
        ),
        number=None if number is None else _decode_text(number),
        enumeration=None if enumeration is None else _decode_enumeration(enumeration),
        members=_decode_names(document.get("members", [])),
        padding=" " if document.get("padding", "") else "",
        notes=_decode_notes(document),
    )


def _decode_enumeration(document: Json) -> StoredEnumeration:
    members = _decode_mapping(document["members"], lambda value: _decode_int(value, None))
    return StoredEnumeration(name=_decode_text(document["name"]), members=tuple(members.items()))


def _decode_kept(document: Json) -> KeptValue:
    kind = document.get("type")
    if kind is None:
        return KeptValue(value=document["value"], type=None)
    return KeptValue(value=_decode_numbers(document["value"]), type=_decode_type_name(kind))


def _decode_numbers(value: Json) -> Json:
    if isinstance(value, list):
        return [_decode_numbers(one) for one in value]
    if (isinstance(value, str) and value not in _WORDS) or not isinstance(value, str | int | float):
        raise ValueError("a fill value is not a number")
    return float(value) if isinstance(value, str) else value


def _decode_types(document: Mapping[str, Json]) -> Mapping[str, AttributeType]:
    return _decode_mapping(document.get("types", {}), _decode_type)


def _decode_type(value: Json) -> AttributeType:
    if isinstance(value, str):
        return _decode_type_name(value)
    return tuple((_decode_text(name), _decode_type_name(kind)) for name, kind in _decode_list(value))


def _decode_type_name(value: Json) -> str:
    if not _NUMERIC.fullmatch(_decode_text(value)):
        raise ValueError(f"{value!r} is not a numeric type")
    return str(value)


def _decode_notes(document: Mapping[str, Json]) -> AttributeNotes:
    padded = _decode_mapping(document.get("padded", {}), _decode_int)
    return AttributeNotes(foreign=_decode_names(document.get("foreign", [])), padded=tuple(padded.items()))


def _decode_names(value: Json) -> tuple[str, ...]:
    return tuple(map(_decode_text, _decode_list(value)))


def _decode_mapping(value: Json, decode: Callable[[Json], _Value]) -> dict[str, _Value]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{value!r} is not an object")
    return {name: decode(one) for name, one in value.items()}


def _decode_list(value: Json) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def _decode_text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value


def _decode_bool(value: Json) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _decode_int(value: Json, least: int | None = 0) -> int:
    if type(value) is not int or (least is not None and value < least):
        raise ValueError(f"{value!r} is not a valid number")
    return value
