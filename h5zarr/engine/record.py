"""The record of storage, read back: `encode/stored.py` says what stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from h5zarr.errors import MalformedFile
from h5zarr.hierarchy import Json
from h5zarr.tree import NO_NOTES, AttributeNotes, StoredEnumeration, StoredForm


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFilter:
    """A filter, as the record has it: without a name."""

    number: int
    values: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """What is recorded of a group. A variable that is not mentioned is contiguous, and of Zarr's type."""

    is_classic: bool = False
    unlimited: tuple[str, ...] = ()
    notes: AttributeNotes = NO_NOTES
    forms: Mapping[str, StoredForm] = field(default_factory=dict)

    def form_of(self, name: str) -> StoredForm:
        return self.forms.get(name, _USUAL)


_USUAL = StoredForm()


def decode_record(record: Json | None) -> GroupRecord | None:
    """Return the record of a group; None where there is none, as in references that others wrote."""
    if record is None:
        return None
    try:
        return GroupRecord(
            is_classic=bool(record.get("classic", False)),
            unlimited=tuple(record.get("unlimited", ())),
            notes=_decode_notes(record),
            forms={name: _decode_form(form) for name, form in record.get("variables", {}).items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MalformedFile(f"the record of storage is not as h5zarr writes it: {error!r}") from error


def _decode_form(form: Mapping[str, Json]) -> StoredForm:
    chunks, enumeration = form.get("chunks"), form.get("enumeration")
    return StoredForm(
        chunk_shape=None if chunks is None else tuple(map(_positive, chunks)),
        filters=tuple(
            RecordedFilter(number=int(number), values=tuple(map(int, values)))
            for number, values in form.get("filters", ())
        ),
        number=form.get("number"),
        enumeration=None
        if enumeration is None
        else StoredEnumeration(name=enumeration["name"], members=tuple(enumeration["members"].items())),
        members=tuple(form.get("members", ())),
        padding=" " if form.get("padding", "") else "",
        notes=_decode_notes(form),
    )


def _positive(length: Json) -> int:
    if int(length) < 1:
        raise ValueError(f"{length} is no length of a chunk")
    return int(length)


def _decode_notes(record: Mapping[str, Json]) -> AttributeNotes:
    padded = tuple((name, int(nbytes)) for name, nbytes in record.get("padded", {}).items())
    return AttributeNotes(foreign=tuple(record.get("foreign", ())), padded=padded)
