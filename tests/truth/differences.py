"""Where h5zarr may differ from the netCDF library: the whole list, one line for each reason.

What the file contains, as h5py shows it, and the problems and warnings that h5zarr reports decide whether a reason
applies; a few variables are listed by name. No other difference is allowed.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5t

from h5zarr.commands.translate.translation import Translation
from tests.truth.same import native, same, same_but_rounded, same_numbers, texts
from tests.truth.xarray_view import Shown


class Reason(Enum):
    NAMED = "variable that is left out, and named as a problem"
    STRANGE = "variable of a type that netCDF4 does not show, and h5zarr does"
    LONG_NAME = "name of over 256 bytes, which the netCDF library cuts"
    LACKING_FILTER = "values that netCDF4 cannot read, for want of a filter"
    NOT_UTF8 = "values that netCDF4 cannot read, because they are not UTF-8"
    UNSET = "unwritten values of a dataset without fill, which netCDF4 shows as whatever is in memory"
    BEYOND = "beyond the end along two unlimited dimensions, where netCDF4 shows whatever is in memory"
    RECORD_WITH_TEXT = "record with text in it, of which netCDF4 shows one letter, and misreads what is behind it"
    RECORD_IN_RECORD = "record in a record, of which netCDF4 shows now this and now that"
    NOT_A_NUMBER_TYPE = "number of a type that netCDF has not, and netCDF4 takes for another"
    NULS_AS_PADDING = "text padded with blanks by its type, but with NULs in fact, which h5py removes alike"
    LATIN1 = "attribute that is not UTF-8: netCDF4 replaces the letters, h5zarr reads them"
    GARBAGE = "attribute with something behind the NUL that ends it, which netCDF4 shows"
    DIMENSION_OF_STRANGE = "made-up dimension of a variable that netCDF4 does not show"

    BOOLEAN = "boolean, which netCDF4 shows as an integer, or not at all"
    COMPLEX = "complex number, which netCDF4 shows as a record, or not at all"

    # Only of names
    HIDDEN_ATTRIBUTE = "attribute with a reserved name, or of a type that netCDF4 does not show"
    VIRTUAL_SHAPE = "shape of a virtual dataset that follows its sources"
    ZARR_NAME = "name that Zarr cannot have"

    # Only through xarray's zarr engine
    TEXT_TYPE = "text in another type"
    BLANKS = "text padded with blanks, which netCDF4 keeps"
    REPLACED = "text that is not UTF-8, which netCDF4 replaces"
    BEHIND_END = "garbage behind the end of a text, which netCDF4 shows"
    GAPS = "record, of which netCDF4 shows no gaps"
    ODD_INTEGER = "integer of odd precision, in another type"
    LOST_DIGIT = "least_significant_digit, which xarray's netCDF engine takes away"
    RECORD_ATTRIBUTE = "attribute that is a record, of which netCDF4 shows a part"
    WITHOUT_FILL = "_FillValue that was left out with a warning"
    FLOAT32_SCALE = "float32 scale_factor or add_offset, whose type JSON loses"


LISTED = {
    ("tstring-at.h5", "/dset1"): Reason.NULS_AS_PADDING,
}

# What h5zarr may say about a variable that it leaves out.
LEFT_OUT = (
    r"Zarr has no type for variable-length sequences",
    r"Zarr has no type for references to (region|attribute)s",
    r"Zarr has no type for records that contain (an array|variable-length text|references)",
    r"Zarr has no type for floating-point numbers of",
    r"filter \d+ \(.*\) (is|was used with)",
    r"Zarr readers treat the name",
    r"the fill value is an array, but Zarr supports only one element",
    r"zarr does not read records inside records from Zarr version 2",
    r"unwritten chunks read as .* which Zarr version 2 cannot express",
    r"dimension without a variable",
    r"some of the values cannot be referenced, and VirtualiZarr",
)

MOST_NAME_NBYTES = 256
NON_COORDINATE = "_nc4_non_coord_"
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"}
NUMBERS_AND_TEXT = (h5t.INTEGER, h5t.FLOAT, h5t.STRING)


def left_out_reason(message: str) -> Reason | None:
    """Return why a variable may be left out that h5zarr names with this message."""
    return Reason.NAMED if any(re.match(pattern, message) for pattern in LEFT_OUT) else None


class Allowed:
    """What may differ in one file through h5zarr's engine. `file` is None if it is not HDF5."""

    compares_encoding = True

    def __init__(self, path: Path, translation: Translation, file: h5py.File | None) -> None:
        self._name, self._file = path.name, file
        self._named = {one.path for one in translation.problems}

    def is_same(self, ours: Shown, theirs: Shown) -> bool:
        return bool(ours.dtype == theirs.dtype) and same(ours.values, theirs.values)

    def is_same_attribute(self, ours: Any, theirs: Any) -> bool:
        return same(ours, theirs)

    def missing_attribute(self, place: str, name: str) -> Reason | None:
        """Return why netCDF4 shows an attribute and h5zarr does not."""
        return None

    def extra_attribute(self, place: str, name: str) -> Reason | None:
        """Return why h5zarr shows an attribute and netCDF4 does not."""
        if self._file is None:
            return None
        kind = self._object(place).attrs.get_id(name).dtype.kind
        return {"b": Reason.BOOLEAN, "c": Reason.COMPLEX}.get(kind)

    def missing(self, place: str) -> Reason | None:
        """Return why netCDF4 shows a variable and h5zarr does not."""
        if len(place.rpartition("/")[2].encode()) >= MOST_NAME_NBYTES:
            return Reason.LONG_NAME
        return Reason.NAMED if place in self._named else None

    def extra(self, place: str) -> Reason | None:
        """Return why h5zarr shows a variable and netCDF4 does not."""
        if len(place.rpartition("/")[2].encode()) >= MOST_NAME_NBYTES:
            return Reason.LONG_NAME
        if self._file is not None and self._type(place).get_class() not in NUMBERS_AND_TEXT:
            return Reason.STRANGE
        return None

    def unreadable(self, place: str, why: str) -> Reason | None:
        """Return why netCDF4 announces a variable, but cannot read it."""
        if "Filter error" in why:
            return Reason.LACKING_FILTER
        if why.startswith("UnicodeDecodeError"):
            return Reason.NOT_UTF8
        return Reason.UNSET if self._has_no_fill(place) else None

    def variable(self, place: str, ours: Shown, theirs: Shown) -> Reason | None:
        """Return why a variable has other values, or another type."""
        if (self._name, place) in LISTED:
            return LISTED[self._name, place]
        if self._file is None:
            return None
        kind = self._type(place)
        if isinstance(kind, h5t.TypeCompoundID):
            members = {kind.get_member_class(number) for number in range(kind.get_nmembers())}
            if h5t.STRING in members:
                return Reason.RECORD_WITH_TEXT
            if h5t.COMPOUND in members:
                return Reason.RECORD_IN_RECORD
        if kind.get_class() == h5t.FLOAT and kind.get_size() > 8:
            return Reason.NOT_A_NUMBER_TYPE
        if not isinstance(ours.values, str) and (reason := _not_in_netcdf(ours.values, theirs.values)) is not None:
            return reason
        if ours.dtype != theirs.dtype or isinstance(ours.values, str):
            return None
        return self._other_values(place, ours.values, theirs.values)

    def _other_values(self, place: str, ours: Any, theirs: Any) -> Reason | None:
        dataset = self._dataset(place)
        if self._has_no_fill(place) and not ours[ours != theirs].any():
            return Reason.UNSET
        is_short = dataset.shape != ours.shape and dataset.maxshape.count(None) > 1
        inside = tuple(map(slice, dataset.shape))
        return Reason.BEYOND if is_short and np.array_equal(ours[inside], theirs[inside], equal_nan=True) else None

    def attribute(self, place: str, name: str, ours: Any, theirs: Any) -> Reason | None:
        """Return why an attribute is another."""
        if isinstance(ours, str) and isinstance(theirs, str):
            return self._other_text(place, name, ours, theirs)
        if self._file is None:
            return None
        if (reason := _not_in_netcdf(np.asarray(ours), np.asarray(theirs))) is not None:
            return reason
        kind = h5py.h5a.open(self._object(place).id, name.encode()).get_type()
        if isinstance(kind, h5t.TypeCompoundID):
            members = {_base_class(kind.get_member_type(number)) for number in range(kind.get_nmembers())}
            return Reason.RECORD_IN_RECORD if h5t.COMPOUND in members else None
        return None

    def _other_text(self, place: str, name: str, ours: str, theirs: str) -> Reason | None:
        if "\ufffd" in theirs:
            stored = ours.encode("latin-1", "replace")
            return Reason.LATIN1 if stored.decode("utf-8", "replace") == theirs else None
        if self._file is None:
            return None
        attribute = h5py.h5a.open(self._object(place).id, name.encode())
        stored = np.empty((), f"V{attribute.get_type().get_size()}")
        attribute.read(stored, mtype=attribute.get_type())
        text, ended, behind = stored.tobytes().partition(b"\0")
        is_garbage = ended and text + behind.replace(b"\0", b"") == theirs.encode() and text == ours.encode()
        return Reason.GARBAGE if is_garbage else None

    def unlimited(self, ours: set[str], theirs: set[str], used: set[str]) -> Reason | None:
        """Return why other dimensions are unlimited; `used` are those of the variables that netCDF4 shows."""
        return Reason.DIMENSION_OF_STRANGE if ours > theirs and not (ours - theirs) & used else None

    # --- what the file contains

    def _object(self, place: str) -> Any:
        assert self._file is not None
        parent, _, name = place.rpartition("/")
        prefixed = f"{parent}/{NON_COORDINATE}{name}"
        return self._file[prefixed if prefixed in self._file else place]

    def _dataset(self, place: str) -> h5py.Dataset:
        found = self._object(place)
        assert isinstance(found, h5py.Dataset)
        return found

    def _type(self, place: str) -> Any:
        return self._dataset(place).id.get_type()

    def _has_no_fill(self, place: str) -> bool:
        if self._file is None:
            return False
        settings = self._dataset(place).id.get_create_plist()
        undefined = settings.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED
        return bool(undefined or settings.get_fill_time() == h5d.FILL_TIME_NEVER)


class AllowedThroughZarr(Allowed):
    """What may differ through xarray's zarr engine, which has fewer types, and attributes from JSON."""

    compares_encoding = False

    def __init__(self, path: Path, translation: Translation, file: h5py.File | None) -> None:
        super().__init__(path, translation, file)
        self._named |= {one.path for one in translation.warnings}
        self._without_fill = {one.path for one in translation.warnings if one.kind == "fill value"}

    def is_same(self, ours: Shown, theirs: Shown) -> bool:
        mine, their = ours.values, theirs.values
        if mine.dtype.kind in "SUOT" and mine.dtype.kind == their.dtype.kind:
            return texts(mine) == texts(their) and mine.shape == their.shape
        return bool(native(mine.dtype) == native(their.dtype)) and same_numbers(mine, their)

    def is_same_attribute(self, ours: Any, theirs: Any) -> bool:
        mine, their = np.asarray(ours[-1]), np.asarray(theirs[-1])
        if their.dtype.kind in "biufc":
            return bool(mine.size == their.size) and same_numbers(mine.reshape(-1), their.reshape(-1))
        return their.dtype.names is None and texts(mine) == texts(their)

    def missing_attribute(self, place: str, name: str) -> Reason | None:
        return Reason.WITHOUT_FILL if name == "_FillValue" and place in self._without_fill else None

    def extra_attribute(self, place: str, name: str) -> Reason | None:
        if name == "least_significant_digit":
            return Reason.LOST_DIGIT
        if self._file is None:
            return None
        kind = h5py.h5a.open(self._object(place).id, name.encode()).get_type().get_class()
        return Reason.HIDDEN_ATTRIBUTE if name in RESERVED or kind not in NUMBERS_AND_TEXT else None

    def attribute(self, place: str, name: str, ours: Any, theirs: Any) -> Reason | None:
        their = np.asarray(theirs)
        if their.dtype.names is not None:
            return Reason.RECORD_ATTRIBUTE
        return None if their.dtype.kind in "biufc" else _other_texts(texts(ours), texts(theirs))

    def variable(self, place: str, ours: Shown, theirs: Shown) -> Reason | None:
        mine, their = ours.values, theirs.values
        if mine.dtype.kind in "SUOT" and their.dtype.kind in "SUOT":
            return Reason.TEXT_TYPE if texts(mine) == texts(their) else _other_texts(texts(mine), texts(their))
        if their.dtype.names is not None:
            return _other_records(mine, their)
        if native(mine.dtype) == native(their.dtype):
            return self._unset_or_beyond(place, mine, their)
        return self._other_type(place, mine, their, _is_packed_with_float32(theirs))

    def _unset_or_beyond(self, place: str, mine: Any, their: Any) -> Reason | None:
        if self._file is None:
            return None
        if self._has_no_fill(place):
            return Reason.UNSET
        dataset = self._dataset(place)
        inside = tuple(map(slice, dataset.shape))
        is_short = dataset.shape != mine.shape and dataset.maxshape.count(None) > 1
        return Reason.BEYOND if is_short and same_numbers(mine[inside], their[inside]) else None

    def _other_type(self, place: str, mine: Any, their: Any, is_packed: bool) -> Reason | None:
        kinds = mine.dtype.kind + their.dtype.kind
        if place in self._without_fill and kinds in ("if", "uf"):
            shown = ~np.isnan(their)
            return Reason.WITHOUT_FILL if same_numbers(mine[shown], their[shown]) else None
        if kinds == "ff" and is_packed and same_but_rounded(mine, their):
            return Reason.FLOAT32_SCALE
        if (reason := _not_in_netcdf(mine, their)) is not None:
            return reason
        if kinds in ("ii", "uu") and self._is_odd(place) and same_numbers(mine, their):
            return Reason.ODD_INTEGER
        return None

    def _is_odd(self, place: str) -> bool:
        return self._file is not None and bool(self._type(place).get_precision() != 8 * self._type(place).get_size())


def _is_packed_with_float32(shown: Shown) -> bool:
    """Return whether the netCDF engine unpacked the values with a float32 `scale_factor` or `add_offset`."""
    packing = [shown.encoding[name] for name in ("scale_factor", "add_offset") if name in shown.encoding]
    return "float32" in {frozen[0] for frozen in packing} | {str(frozen[1][1]) for frozen in packing if len(frozen) > 2}


def _other_texts(shown: list[str], expected: list[str]) -> Reason | None:
    if shown == [one.rstrip(" ") for one in expected]:
        return Reason.BLANKS
    if any("\ufffd" in one for one in expected):
        return Reason.REPLACED
    if len(shown) == len(expected) and all(map(str.startswith, expected, shown)):
        return Reason.BEHIND_END
    return None


def _not_in_netcdf(mine: Any, their: Any) -> Reason | None:
    """Return a reason if these are the same booleans or complex numbers, which netCDF lacks."""
    if mine.dtype.kind == "b" and their.dtype.kind in "iu":
        return Reason.BOOLEAN if same_numbers(mine, their) else None
    if mine.dtype.kind == "c" and len(their.dtype.names or ()) == 2:
        real, imaginary = their.dtype.names
        is_same = same_numbers(mine.real, their[real]) and same_numbers(mine.imag, their[imaginary])
        return Reason.COMPLEX if is_same else None
    return None


def _other_records(mine: Any, their: Any) -> Reason | None:
    if mine.dtype.kind == "c":
        return _not_in_netcdf(mine, their)
    if "S" in {kind.base.kind for kind, *_ in their.dtype.fields.values()}:
        return Reason.RECORD_WITH_TEXT
    if any(kind.names is not None for kind, *_ in their.dtype.fields.values()):
        return Reason.RECORD_IN_RECORD
    if mine.dtype.names is None:
        return None
    numbers = [name for name in their.dtype.names if their.dtype[name].base.kind in "biufc"]
    return Reason.GAPS if all(same_numbers(mine[name], their[name]) for name in numbers) else None


def _base_class(kind: Any) -> int:
    return int((kind.get_super() if kind.get_class() == h5t.ARRAY else kind).get_class())
