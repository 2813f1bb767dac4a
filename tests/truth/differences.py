"""What may differ between h5zarr and the libraries that it is compared with: the whole list of reasons.

The content of the file, as h5py reads it, and the problems and warnings of h5zarr decide whether a reason applies. One
variable is listed by name. No other difference is allowed.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
from h5py import h5d, h5t

from h5zarr.commands.translate.translation import Translation
from tests.truth.same import native, same, same_but_rounded, same_numbers, texts
from tests.truth.xarray_view import Shown


class Reason(Enum):
    NAMED = "variable that h5zarr leaves out and names as a problem"
    STRANGE = "variable of a type that netCDF4 does not show"
    LONG_NAME = "name of over 256 bytes, which the netCDF library cuts"
    LACKING_FILTER = "values that netCDF4 cannot read because it lacks a filter"
    UNSET = "unwritten values without a fill value, which are uninitialised memory in netCDF4"
    BEYOND = "values beyond the end along two unlimited dimensions, which are uninitialised memory in netCDF4"
    RECORD_WITH_TEXT = "record with text, of which netCDF4 shows one letter and misreads the rest"
    RECORD_IN_RECORD = "record in a record, which netCDF4 does not show reliably"
    LONG_FLOAT = "float of over 8 bytes, which netCDF4 mistakes for another type"
    NULS_AS_PADDING = "text that should be padded with blanks but has NULs, which h5py removes too"
    LATIN1 = "attribute that is not UTF-8: netCDF4 replaces the letters, h5zarr reads them as Latin-1"
    GARBAGE = "attribute with bytes after its terminating NUL, which netCDF4 shows"
    DIMENSION_OF_STRANGE = "made-up dimension of a variable that netCDF4 does not show"
    BOOLEAN = "boolean, which netCDF4 shows as an integer, or not at all"
    COMPLEX = "complex number, which netCDF4 shows as a record, or not at all"

    # Only in names
    HIDDEN_ATTRIBUTE = "attribute with a reserved name, or of a type that netCDF4 does not show"
    VIRTUAL_SHAPE = "shape of a virtual dataset that depends on its sources"
    ZARR_NAME = "name that Zarr cannot have"

    # Only through xarray's zarr engine
    TEXT_TYPE = "text in another type"
    BLANKS = "text padded with blanks, which netCDF4 keeps"
    GAPS = "record, whose gaps netCDF4 does not show"
    ODD_INTEGER = "integer of unusual precision, in another type"
    LOST_DIGIT = "least_significant_digit, which xarray's netCDF engine removes"
    RECORD_ATTRIBUTE = "attribute that is a record, of which netCDF4 shows a part"
    WITHOUT_FILL = "_FillValue that h5zarr leaves out with a warning"
    FLOAT32_SCALE = "float32 scale_factor or add_offset, whose type JSON loses"


# The only variables that are allowed by name.
LISTED = {("tstring-at.h5", "/dset1"): Reason.NULS_AS_PADDING}

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
    r"the values are in the raw file '[^']*', which does not exist",
)

MOST_NAME_NBYTES = 256
NON_COORDINATE = "_nc4_non_coord_"
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"}
NUMBERS_AND_TEXT = (h5t.INTEGER, h5t.FLOAT, h5t.STRING)
NETCDF_FILTERS = (1, 2, 3)  # deflate, shuffle and fletcher32, which every build of the netCDF library has


def left_out_reason(message: str) -> Reason | None:
    """Return why a variable may be left out that h5zarr names with this message."""
    return Reason.NAMED if any(re.match(pattern, message) for pattern in LEFT_OUT) else None


class Allowed:
    """What may differ in one file through h5zarr's engine. `file` is None if it is not HDF5."""

    compares_encoding = True
    only_numbers = False

    def __init__(self, path: Path, translation: Translation, file: h5py.File | None) -> None:
        self._path, self._file = path, file
        self._problems = {one.path: one.message for one in translation.problems}

    def is_same(self, ours: Shown, theirs: Shown) -> bool:
        return bool(ours.dtype == theirs.dtype) and same(ours.values, theirs.values)

    def is_same_attribute(self, ours: Any, theirs: Any) -> bool:
        return same(ours, theirs)

    def missing_attribute(self, place: str, name: str) -> Reason | None:
        """Return why netCDF4 shows an attribute and h5zarr does not."""
        return None

    def extra_attribute(self, place: str, name: str) -> Reason | None:
        """Return why h5zarr shows an attribute and netCDF4 does not."""
        if self._file is None or name not in self._object(place).attrs:
            return None
        kind = self._object(place).attrs.get_id(name).dtype.kind
        return {"b": Reason.BOOLEAN, "c": Reason.COMPLEX}.get(kind)

    def in_one(self, place: str, *, is_ours: bool) -> Reason | None:
        """Return why only h5zarr, or only netCDF4, shows a variable."""
        if len(place.rpartition("/")[2].encode()) >= MOST_NAME_NBYTES:
            return Reason.LONG_NAME
        if not is_ours:
            return left_out_reason(self._problems.get(place, ""))
        is_strange = self._file is not None and self._type(place).get_class() not in NUMBERS_AND_TEXT
        return Reason.STRANGE if is_strange else None

    def unreadable(self, place: str, why: str) -> Reason | None:
        """Return why netCDF4 shows a variable, but cannot read it."""
        if self._file is None:
            return None
        settings = self._dataset(place).id.get_create_plist()
        filters = {settings.get_filter(number)[0] for number in range(settings.get_nfilters())}
        if "Filter error" in why and not filters <= set(NETCDF_FILTERS):
            return Reason.LACKING_FILTER
        return Reason.UNSET if self._has_no_fill(place) else None

    def variable(self, place: str, ours: Shown, theirs: Shown) -> Reason | None:
        """Return why a variable has other values, or another type."""
        if (self._path.name, place) in LISTED:
            return LISTED[self._path.name, place]
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
            return Reason.LONG_FLOAT
        if not isinstance(ours.values, str) and (reason := _not_in_netcdf(ours.values, theirs.values)) is not None:
            return reason
        if ours.dtype != theirs.dtype or isinstance(ours.values, str):
            return None
        return self._unset_or_beyond(place, ours.values, theirs.values)

    def attribute(self, place: str, name: str, ours: Any, theirs: Any) -> Reason | None:
        """Return why an attribute has another value."""
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

    def unlimited(self, ours: set[str], theirs: set[str], used: set[str]) -> Reason | None:
        """Return why other dimensions are unlimited. `used` are those of the variables that netCDF4 shows."""
        return Reason.DIMENSION_OF_STRANGE if ours > theirs and not (ours - theirs) & used else None

    def _other_text(self, place: str, name: str, ours: str, theirs: str) -> Reason | None:
        if "\ufffd" in theirs:
            shown = ours.encode("latin-1", "replace").decode("utf-8", "replace")
            return Reason.LATIN1 if shown == theirs else None
        if self._file is None:
            return None
        attribute = h5py.h5a.open(self._object(place).id, name.encode())
        stored = np.empty((), f"V{attribute.get_type().get_size()}")
        attribute.read(stored, mtype=attribute.get_type())
        text, ended, behind = stored.tobytes().partition(b"\0")
        is_garbage = ended and text + behind.replace(b"\0", b"") == theirs.encode() and text == ours.encode()
        return Reason.GARBAGE if is_garbage else None

    def _unset_or_beyond(self, place: str, ours: Any, theirs: Any) -> Reason | None:
        """Return why values of one type differ."""
        if self._file is None:
            return None
        if self._has_no_fill(place) and not ours[ours != theirs].any():
            return Reason.UNSET
        dataset = self._dataset(place)
        is_short = dataset.shape != ours.shape and dataset.maxshape.count(None) > 1
        inside = tuple(map(slice, dataset.shape))
        return Reason.BEYOND if is_short and same_numbers(ours[inside], theirs[inside]) else None

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


class AllowedAgainstH5netcdf(Allowed):
    """What may differ from h5netcdf, of which only numbers are compared."""

    compares_encoding = False
    only_numbers = True

    def is_same(self, ours: Shown, theirs: Shown) -> bool:
        return _same_natively(ours.values, theirs.values)

    def unreadable(self, place: str, why: str) -> Reason | None:
        return None

    def variable(self, place: str, ours: Shown, theirs: Shown) -> Reason | None:
        return None


class AllowedThroughZarr(Allowed):
    """What may differ through xarray's zarr engine, which has fewer types, and attributes from JSON."""

    compares_encoding = False

    def __init__(self, path: Path, translation: Translation, file: h5py.File | None) -> None:
        super().__init__(path, translation, file)
        self._without_fill = {one.path for one in translation.warnings if one.kind == "fill value"}

    def is_same(self, ours: Shown, theirs: Shown) -> bool:
        mine, their = ours.values, theirs.values
        if mine.dtype.kind in "SUOT" and mine.dtype.kind == their.dtype.kind:
            return texts(mine) == texts(their) and mine.shape == their.shape
        return _same_natively(mine, their)

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
        if self._file is None or name not in self._object(place).attrs:
            return None
        kind = h5py.h5a.open(self._object(place).id, name.encode()).get_type().get_class()
        return Reason.HIDDEN_ATTRIBUTE if name in RESERVED or kind not in NUMBERS_AND_TEXT else None

    def attribute(self, place: str, name: str, ours: Any, theirs: Any) -> Reason | None:
        their = np.asarray(theirs)
        if their.dtype.names is not None:
            return Reason.RECORD_ATTRIBUTE
        if their.dtype.kind in "biufc":
            return None
        if (
            isinstance(ours, str)
            and isinstance(theirs, str)
            and (reason := self._other_text(place, name, ours, theirs))
        ):
            return reason
        return _other_texts(ours, theirs)

    def variable(self, place: str, ours: Shown, theirs: Shown) -> Reason | None:
        mine, their = ours.values, theirs.values
        if mine.dtype.kind in "SUOT" and their.dtype.kind in "SUOT":
            return Reason.TEXT_TYPE if texts(mine) == texts(their) else _other_texts(mine, their)
        if their.dtype.names is not None:
            return _other_records(mine, their)
        if native(mine.dtype) == native(their.dtype):
            return self._unset_or_beyond(place, mine, their)
        return self._other_type(place, mine, their)

    def _other_type(self, place: str, mine: Any, their: Any) -> Reason | None:
        kinds = mine.dtype.kind + their.dtype.kind
        if place in self._without_fill and kinds in ("if", "uf"):
            shown = ~np.isnan(their)
            return Reason.WITHOUT_FILL if same_numbers(mine[shown], their[shown]) else None
        if kinds == "ff" and self._is_packed_with_float32(place) and same_but_rounded(mine, their):
            return Reason.FLOAT32_SCALE
        if (reason := _not_in_netcdf(mine, their)) is not None:
            return reason
        if kinds in ("ii", "uu") and self._is_odd(place) and same_numbers(mine, their):
            return Reason.ODD_INTEGER
        return None

    def _is_odd(self, place: str) -> bool:
        return self._file is not None and bool(self._type(place).get_precision() != 8 * self._type(place).get_size())

    def _is_packed_with_float32(self, place: str) -> bool:
        names = ("scale_factor", "add_offset")
        if self._file is not None:
            packing = [self._dataset(place).attrs[name] for name in names if name in self._dataset(place).attrs]
        else:
            with netCDF4.Dataset(self._path) as file:
                packing = [file[place].getncattr(name) for name in names if name in file[place].ncattrs()]
        return np.dtype("f4") in [native(np.asarray(one).dtype) for one in packing]


def _same_natively(mine: Any, their: Any) -> bool:
    return bool(native(mine.dtype) == native(their.dtype)) and same_numbers(mine, their)


def _other_texts(mine: Any, their: Any) -> Reason | None:
    return Reason.BLANKS if texts(mine) == [one.rstrip(" ") for one in texts(their)] else None


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
