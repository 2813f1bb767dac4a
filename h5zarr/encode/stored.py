"""The record of how the file stores the variables of a group: facts that Zarr's metadata have no place for.

| key             | what it says                                                                                   |
|-----------------|------------------------------------------------------------------------------------------------|
| `classic`       | true: the format has neither chunks nor filters, and its byte order is nobody's business       |
| `unlimited`     | the names of the group's own dimensions that may grow                                           |
| `foreign`       | the names of attributes whose types netCDF does not know; of the group, or of a variable         |
| `padded`        | the size of attributes that are text filled up with blanks; of the group, or of a variable       |
| `variables`     | by name, what is not as usual: a variable without an entry is contiguous, and of Zarr's type      |
| – `chunks`      | the shape of a chunk                                                                            |
| – `filters`     | the filters in the order of writing: [number, [client data]]                                    |
| – `number`      | numpy's type of the elements, where it is not the array's                                        |
| – `enumeration` | {"name": …, "members": {name: value}}                                                           |
| – `members`     | the names of a record's members, where the array is of complex numbers, or shows gaps as members |
| – `padding`     | what the file fills fixed text up with, and the array does not                                   |

What is not there is empty, or False.
"""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.hierarchy import Json
from h5zarr.tree import AttributeNotes, StoredForm, TreeGroup


def encode_stored(group: TreeGroup, forms: Mapping[str, StoredForm] | None) -> Json | None:
    """Return the record of a group, whose variables have `forms`; None where nothing is known."""
    record: dict[str, Json] = {}
    if group.is_classic:
        record["classic"] = True
    if group.unlimited:
        record["unlimited"] = list(group.unlimited)
    record |= _encode_notes(group.notes)
    variables = {name: form for name, one in (forms or {}).items() if (form := _encode_form(one))}
    if variables:
        record["variables"] = variables
    return None if not record and forms is None else record


def _encode_form(form: StoredForm) -> dict[str, Json]:
    encoded: dict[str, Json] = {}
    if form.chunk_shape is not None:
        encoded["chunks"] = list(form.chunk_shape)
    if form.filters:
        encoded["filters"] = [[one.number, list(one.values)] for one in form.filters]
    if form.number is not None:
        encoded["number"] = form.number
    if form.enumeration is not None:
        encoded["enumeration"] = {"name": form.enumeration.name, "members": dict(form.enumeration.members)}
    if form.members:
        encoded["members"] = list(form.members)
    if form.padding:
        encoded["padding"] = form.padding
    return encoded | _encode_notes(form.notes)


def _encode_notes(notes: AttributeNotes) -> dict[str, Json]:
    encoded: dict[str, Json] = {}
    if notes.foreign:
        encoded["foreign"] = list(notes.foreign)
    if notes.padded:
        encoded["padded"] = dict(notes.padded)
    return encoded
