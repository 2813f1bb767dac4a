"""Where the engine may differ from xarray's netCDF engine: the whole list, one line for each reason.

Whether a reason applies is decided by what stands in the file, which h5py tells, and by what h5zarr says of it; a few
variables are listed by name. Nothing is excused that is not here.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5t

from h5zarr.translating import Translation
from tests.engine.view import Shown
from tests.roundtrip.values import NON_COORDINATE


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


LISTED = {
    ("tstring-at.h5", "/dset1"): Reason.NULS_AS_PADDING,
}

MOST_NAME_NBYTES = 256
NUMBERS_AND_TEXT = (h5t.INTEGER, h5t.FLOAT, h5t.STRING)


class Excuses:
    """The exceptions of one file. `file` is None where it is none of HDF5."""

    def __init__(self, path: Path, translation: Translation, file: h5py.File | None) -> None:
        self._name, self._file = path.name, file
        self._named = {one.path for one in translation.problems}

    def missing(self, place: str) -> Reason | None:
        """Return why netCDF4 shows a variable and the engine does not."""
        if len(place.rpartition("/")[2].encode()) >= MOST_NAME_NBYTES:
            return Reason.LONG_NAME
        return Reason.NAMED if place in self._named else None

    def extra(self, place: str) -> Reason | None:
        """Return why the engine shows a variable and netCDF4 does not."""
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

    # --- what stands in the file

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


def _base_class(kind: Any) -> int:
    return int((kind.get_super() if kind.get_class() == h5t.ARRAY else kind).get_class())
