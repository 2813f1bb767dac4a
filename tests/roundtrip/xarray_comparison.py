"""xarray over the references next to xarray over the file, group by group, raw and decoded.

What is meant to differ is listed in `MEANT` and counted. Whether it applies is decided by what stands in the file,
which h5py tells, and by the problems and warnings that h5zarr gave: not by what would be convenient.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from h5py import h5d, h5t

from h5zarr.translating import Translation
from tests.refs.hierarchies import open_store
from tests.roundtrip.reading import written
from tests.roundtrip.values import NON_COORDINATE
from tests.roundtrip.xarray_view import Shown, ShownGroup, show_both

MEANT = {
    "group that xarray's netCDF engine does not open",
    "variable that is left out, and named",
    "variable of a type that netCDF4 does not show",
    "filter that the netCDF library lacks",
    "unwritten values of a dataset without fill, which netCDF4 shows as whatever is in memory",
    "beyond the end along two unlimited dimensions, where netCDF4 shows whatever is in memory",
    "text in another type",
    "text padded with blanks, which netCDF4 keeps",
    "text that is not UTF-8, which netCDF4 replaces",
    "garbage behind the end of a text, which netCDF4 shows",
    "boolean, which netCDF4 shows as an integer",
    "complex number, which netCDF4 shows as a record",
    "record, of which netCDF4 shows no gaps",
    "record with text in it, which netCDF4 misreads",
    "record in a record, of which netCDF4 shows now this and now that",
    "name of over 256 bytes, which the netCDF library cuts",
    "integer of odd precision, in another type",
    "attribute that netCDF4 hides or cannot read",
    "attribute that is a record, of which netCDF4 shows a part",
    "attribute that xarray's netCDF engine takes away",
    "_FillValue that was left out with a warning",
    "float32 scale_factor or add_offset, whose type JSON loses",
}
MOST_NAME_NBYTES = 256
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"}
NUMBERS_AND_TEXT = (h5t.INTEGER, h5t.FLOAT, h5t.STRING)


@dataclass
class Agreement:
    """What came out: `identical` variables differ in nothing at all, `meant` counts explained differences."""

    variables: int = 0
    identical: int = 0
    differences: list[str] = field(default_factory=list)
    meant: Counter[str] = field(default_factory=Counter)


def compare(path: Path, translation: Translation, theirs: dict[str, Any]) -> Agreement:
    """Return how the references agree with `theirs`, which is what the netCDF engine shows."""
    found = Agreement()
    store = open_store(written(translation))
    with h5py.File(path) as file:
        comparing = _Comparing(found, file, translation)
        for group, shown in theirs.items():
            ours = show_both(partial(xr.open_dataset, store, engine="zarr", group=group))
            for mine, their in zip(ours, shown, strict=True):
                comparing.group(group, mine, their)
            comparing.finish()
    return found


class _Comparing:
    def __init__(self, found: Agreement, file: h5py.File, translation: Translation) -> None:
        self.found, self.file = found, file
        self.left_out = {one.path for one in translation.problems} | {one.path for one in translation.warnings}
        self.without_fill = {one.path for one in translation.warnings if one.kind == "fill value"}
        self.seen: set[str] = set()
        self.differing: set[str] = set()

    def differ(self, path: str, what: str) -> None:
        self.found.differences.append(f"{path}: {what}")
        self.differing.add(path)

    def mean(self, path: str, kind: str) -> None:
        assert kind in MEANT
        self.found.meant[kind] += 1
        self.differing.add(path)

    def finish(self) -> None:
        self.found.variables += len(self.seen)
        self.found.identical += len(self.seen - self.differing)
        self.seen, self.differing = set(), set()

    def group(self, path: str, ours: ShownGroup | str, theirs: ShownGroup | str) -> None:
        if isinstance(theirs, str):
            self.mean(path, "group that xarray's netCDF engine does not open")
            return
        if isinstance(ours, str):
            self.differ(path, f"the references do not open: {ours}")
            return
        self.attributes(path, self.file[path], ours.attrs, theirs.attrs)
        both = ours.variables.keys() & theirs.variables.keys()
        if ours.coordinates & both != theirs.coordinates & both:
            self.differ(path, f"coordinates {ours.coordinates & both} are {theirs.coordinates & both}")
        for name in ours.variables.keys() | theirs.variables.keys():
            place = f"{path.rstrip('/')}/{name}"
            self.seen.add(place)
            if name in both:
                self.variable(place, ours.variables[name], theirs.variables[name])
            elif len(name.encode()) >= MOST_NAME_NBYTES:
                self.mean(place, "name of over 256 bytes, which the netCDF library cuts")
            elif name in theirs.variables and place in self.left_out:
                self.mean(place, "variable that is left out, and named")
            elif name in ours.variables and self.is_strange(place):
                self.mean(place, "variable of a type that netCDF4 does not show")
            else:
                self.differ(place, "is missing" if name in theirs.variables else "is not in the netCDF engine's")

    def variable(self, path: str, ours: Shown, theirs: Shown) -> None:
        if ours.dims != theirs.dims or ours.shape != theirs.shape:
            self.differ(path, f"dimensions {ours.dims} {ours.shape} are {theirs.dims} {theirs.shape}")
            return
        if isinstance(ours.values, str):
            self.differ(path, f"cannot be read: {ours.values}")
        elif isinstance(theirs.values, str):
            self.unreadable(path, theirs.values)
        else:
            self.values(path, ours, theirs)
        self.attributes(path, self.dataset(path), ours.attrs, theirs.attrs)

    def unreadable(self, path: str, why: str) -> None:
        if "Filter error" in why:
            self.mean(path, "filter that the netCDF library lacks")
        elif self.has_no_fill(path):
            self.mean(path, "unwritten values of a dataset without fill, which netCDF4 shows as whatever is in memory")
        else:
            self.differ(path, f"the netCDF engine cannot read it: {why}")

    def values(self, path: str, ours: Shown, theirs: Shown) -> None:
        mine, their = ours.values, theirs.values
        if "SUOT".find(their.dtype.kind) >= 0 and mine.dtype.kind in "SUOT":
            self.texts(path, mine, their)
        elif their.dtype.names is not None:
            self.records(path, mine, their)
        elif _native(mine.dtype) == _native(their.dtype):
            if not _same(mine, their):
                self.other_values(path, mine, their)
        else:
            self.other_type(path, ours, theirs)

    def texts(self, path: str, mine: Any, their: Any) -> None:
        if mine.dtype.kind != their.dtype.kind:
            self.mean(path, "text in another type")
        if (expected := _texts(their)) != (shown := _texts(mine)):
            self.other_texts(path, shown, expected)

    def other_texts(self, path: str, shown: list[str], expected: list[str]) -> None:
        if shown == [one.rstrip(" ") for one in expected]:
            self.mean(path, "text padded with blanks, which netCDF4 keeps")
        elif any("\ufffd" in one for one in expected):
            self.mean(path, "text that is not UTF-8, which netCDF4 replaces")
        elif all(whole.startswith(one) for one, whole in zip(shown, expected, strict=True)):
            self.mean(path, "garbage behind the end of a text, which netCDF4 shows")
        else:
            self.differ(path, f"text {shown[:3]} is {expected[:3]}")

    def records(self, path: str, mine: Any, their: Any) -> None:
        if mine.dtype.kind == "c":
            real, imaginary = their.dtype.names
            if not (_same(mine.real, their[real]) and _same(mine.imag, their[imaginary])):
                self.differ(path, f"{mine.reshape(-1)[:2]} is {their.reshape(-1)[:2]}")
            self.mean(path, "complex number, which netCDF4 shows as a record")
        elif "S" in {kind.base.kind for kind, *_ in their.dtype.fields.values()}:
            self.mean(path, "record with text in it, which netCDF4 misreads")
        elif any(kind.names is not None for kind, *_ in their.dtype.fields.values()):
            self.mean(path, "record in a record, of which netCDF4 shows now this and now that")
        elif mine.dtype.names is None:
            self.differ(path, f"type {mine.dtype} is {their.dtype}")
        elif not _same_records(mine, their):
            self.differ(path, f"{mine.reshape(-1)[:2]} is {their.reshape(-1)[:2]}")
        elif _native(mine.dtype) != _native(their.dtype):
            self.mean(path, "record, of which netCDF4 shows no gaps")

    def other_values(self, path: str, mine: Any, their: Any) -> None:
        dataset = self.dataset(path)
        if self.has_no_fill(path):
            self.mean(path, "unwritten values of a dataset without fill, which netCDF4 shows as whatever is in memory")
        elif dataset.shape != mine.shape and dataset.maxshape.count(None) > 1:
            inside = tuple(map(slice, dataset.shape))
            if not _same(mine[inside], their[inside]):
                self.differ(path, "values inside differ")
            self.mean(path, "beyond the end along two unlimited dimensions, where netCDF4 shows whatever is in memory")
        else:
            self.differ(path, f"values {mine.reshape(-1)[:3]} are {their.reshape(-1)[:3]}")

    def other_type(self, path: str, ours: Shown, theirs: Shown) -> None:
        mine, their = ours.values, theirs.values
        kinds = mine.dtype.kind + their.dtype.kind
        if path in self.without_fill and kinds in ("if", "uf"):
            masked = np.isnan(their)
            if not _same(mine[~masked], their[~masked]):
                self.differ(path, "values that are not masked differ")
            self.mean(path, "_FillValue that was left out with a warning")
        elif kinds == "ff" and self.is_packed_with_float32(path) and _same_but_rounded(mine, their):
            self.mean(path, "float32 scale_factor or add_offset, whose type JSON loses")
        elif kinds == "bi" and _same(mine, their):
            self.mean(path, "boolean, which netCDF4 shows as an integer")
        elif kinds in ("ii", "uu") and self.is_odd(path) and _same(mine, their):
            self.mean(path, "integer of odd precision, in another type")
        else:
            self.differ(path, f"type {mine.dtype} is {their.dtype}")

    # --- attributes

    def attributes(self, path: str, owner: Any, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for name in ours.keys() | theirs.keys():
            if name not in theirs:
                if name == "least_significant_digit":
                    self.mean(path, "attribute that xarray's netCDF engine takes away")
                elif name in RESERVED or _class_of(owner, name) not in NUMBERS_AND_TEXT:
                    self.mean(path, "attribute that netCDF4 hides or cannot read")
                else:
                    self.differ(f"{path}@{name}", f"{ours[name]!r} is not in the netCDF engine's")
            elif name not in ours:
                if name == "_FillValue" and path in self.without_fill:
                    self.mean(path, "_FillValue that was left out with a warning")
                else:
                    self.differ(f"{path}@{name}", f"is missing, and should be {theirs[name]!r}")
            else:
                self.attribute(path, name, ours[name], np.asarray(theirs[name]))

    def attribute(self, path: str, name: str, ours: Any, theirs: Any) -> None:
        if theirs.dtype.names is not None:
            self.mean(path, "attribute that is a record, of which netCDF4 shows a part")
        elif theirs.dtype.kind in "biufc":
            mine = np.asarray(ours)
            if mine.size != theirs.size or not _same(mine.reshape(-1), theirs.reshape(-1)):
                self.differ(f"{path}@{name}", f"{ours!r} is {theirs!r}")
        elif (shown := _texts(np.asarray(ours))) != (expected := _texts(theirs)):
            self.other_texts(path, shown, expected)

    # --- what stands in the file

    def dataset(self, path: str) -> h5py.Dataset:
        parent, _, name = path.rpartition("/")
        prefixed = f"{parent}/{NON_COORDINATE}{name}"
        return self.file[prefixed if prefixed in self.file else path]

    def is_strange(self, path: str) -> bool:
        """True for a dataset of a class that netCDF has no type for, or none that netCDF4-python reads."""
        return self.dataset(path).id.get_type().get_class() not in NUMBERS_AND_TEXT

    def is_odd(self, path: str) -> bool:
        kind = self.dataset(path).id.get_type()
        return bool(kind.get_precision() != 8 * kind.get_size())

    def has_no_fill(self, path: str) -> bool:
        plist = self.dataset(path).id.get_create_plist()
        undefined = plist.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED
        return bool(undefined or plist.get_fill_time() == h5d.FILL_TIME_NEVER)

    def is_packed_with_float32(self, path: str) -> bool:
        attributes = self.dataset(path).attrs
        kinds = {attributes[name].dtype for name in ("scale_factor", "add_offset") if name in attributes}
        return np.dtype("f4") in {_native(kind) for kind in kinds}


def _class_of(owner: Any, name: str) -> int:
    return int(h5py.h5a.open(owner.id, name.encode()).get_type().get_class())


def _native(dtype: Any) -> Any:
    return dtype.newbyteorder("=") if dtype.kind in "biufcmMV" else dtype


def _same(mine: Any, their: Any) -> bool:
    return mine.shape == their.shape and bool(np.all((mine == their) | ((mine != mine) & (their != their))))


def _same_but_rounded(mine: Any, their: Any) -> bool:
    """True when numbers are the same up to the rounding of float32, even after an offset was added."""
    largest = float(np.nanmax(np.abs(their), initial=0))
    return bool(np.allclose(mine, their, rtol=1e-6, atol=1e-6 * largest, equal_nan=True))


def _same_records(mine: Any, their: Any) -> bool:
    """True when all members that are numbers are the same."""
    numbers = [name for name in their.dtype.names if their.dtype[name].base.kind in "biufc"]
    return all(_same(mine[name], their[name]) for name in numbers)


def _texts(values: Any) -> list[str]:
    flat = np.asarray(values).reshape(-1).tolist()
    return [(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)).rstrip("\0") for one in flat]
