"""h5py as the oracle of the whole way: does zarr read through the references what h5py reads from the file?

`score(path)` sorts every dataset that h5py reads into one of five outcomes: `same`; `named`, left out with a reason;
and those that must not be, `wrong`, `missing` and `error`.

Where netCDF means something else than HDF5, its meaning counts: the prefix `_nc4_non_coord_` is no part of a name, and
a variable that is shorter than its unlimited dimension reads as fill beyond its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5t
from netCDF4 import default_fillvals

import h5zarr
from h5zarr.commands.translate.translation import Translation
from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.cursor import text
from tests.roundtrip.reading import open_group

MOST_VALUES, MOST_CHUNKS = 2_000_000, 5_000
NON_COORDINATE = "_nc4_non_coord_"
UNREADABLE = (OSError, RuntimeError, TypeError, ValueError, KeyError, AttributeError)

REASONS = {
    "variable-length sequences": r"Zarr has no type for variable-length sequences",
    "references to regions": r"Zarr has no type for references to (region|attribute)s",
    "records that contain an array": r"Zarr has no type for records that contain an array",
    "records with text in them": r"Zarr has no type for records that contain (variable-length text|references)",
    "floats of another form": r"Zarr has no type for floating-point numbers of",
    "filter without a codec": r"filter \d+ \(.*\) (is|was used with)",
    "name that Zarr cannot have": r"Zarr readers treat the name",
    "fill value that is an array": r"the fill value is an array, but Zarr supports only one element",
    "record inside a record, in version 2": r"zarr does not read records inside records from Zarr version 2",
    "unwritten chunks, in version 2": r"unwritten chunks read as .* which Zarr version 2 cannot express",
    "dimension without a variable": r"dimension without a variable",
    "what old versions of VirtualiZarr cannot hold": r"some of the values cannot be referenced, and VirtualiZarr",
}


@dataclass
class Score:
    """How the datasets of a file fared. `named` counts by the kind of reason; `odd` are reasons of no known kind."""

    same: int = 0
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    named: Counter[str] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)
    unreadable: int = 0  # by h5py: there is nothing to compare with
    refused: str | None = None  # the whole file, by h5zarr

    @property
    def failures(self) -> list[str]:
        kinds = {"wrong": self.wrong, "missing": self.missing, "error": self.error, "named": self.odd}
        return [f"{kind}: {what}" for kind, each in kinds.items() for what in each]


def score(path: Path, options: dict[str, Any] | None = None) -> Score:
    """Return how the references of the file at `path` fare against h5py."""
    found = Score()
    try:
        translation = h5zarr.translate(path, **(options or {}))
    except H5ZarrError as error:
        translation, found.refused = None, str(error)
    try:
        file = h5py.File(path, "r")
    except OSError:
        return found
    with file:
        if translation is None:
            found.missing += [f"{name}: {found.refused}" for name, _ in walk(file)]
            return found
        return score_translation(file, translation)


def score_translation(file: h5py.File, translation: Translation, group: Any = None) -> Score:
    """Return how references fare against an open file; or how a Zarr group does that was made of them."""
    found = Score()
    _Scoring(found, file, translation, group).all()
    return found


def walk(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield every dataset at every path that leads to it, soft and external links included."""
    waiting: list[tuple[str, h5py.Group, tuple[Any, ...]]] = [("", file, ())]
    while waiting:
        path, group, above = waiting.pop()
        try:
            names = list(group)
        except RuntimeError:
            continue  # one link that it cannot show, and it shows none
        for name in names:
            try:
                member = group[name]
                here = identity(member)
            except UNREADABLE:
                continue
            place = f"{path}/{name if isinstance(name, str) else text(name)}"
            if isinstance(member, h5py.Dataset):
                yield place, member
            elif isinstance(member, h5py.Group) and here not in above and here != identity(file):
                waiting.append((place, member, (*above, here)))


def identity(one: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(one.id)
    return info.fileno, info.addr


class _Scoring:
    def __init__(self, found: Score, file: h5py.File, translation: Translation, group: Any) -> None:
        self.found, self.file = found, file
        self.group = open_group(translation) if group is None else group
        self.arrays = translation.arrays()
        self.bare = set(translation.bare_dimensions)
        self.problems = {problem.path: problem.message for problem in translation.problems}
        self.problems |= dict.fromkeys(self.bare, "dimension without a variable")
        # Links that lead nowhere useful are told as warnings: what stands behind another path is not missing.
        self.problems |= {one.path: one.message for one in translation.warnings if one.path not in self.arrays}

    def all(self) -> None:
        for path, dataset in walk(self.file):
            array_path = self.array_path(path)
            try:
                expected = None if dataset.shape is None else read(dataset)
            except UNREADABLE:
                self.found.unreadable += 1
                continue
            if array_path not in self.arrays:
                self.left_out(path)
                continue
            try:
                array = self.group[array_path.lstrip("/")]
                difference = self.compare(dataset, array, expected)
            except Exception as error:
                self.found.error.append(f"{path}: {type(error).__name__}: {error}")
                continue
            if difference:
                self.found.wrong.append(f"{path}: {difference}")
            else:
                self.found.same += 1

    def array_path(self, path: str) -> str:
        """Return the path in netCDF's names, where a prefix keeps a variable apart from the dimension of its name.

        It is "" for a dimension that is no variable.
        """
        if path in self.bare:
            return ""
        parent, _, name = path.rpartition("/")
        plain = f"{parent}/{name.removeprefix(NON_COORDINATE)}"
        return plain if plain in self.arrays and path not in self.arrays else path

    def left_out(self, path: str) -> None:
        reason = next((self.problems[place] for place in _upwards(path) if place in self.problems), None)
        if reason is None:
            self.found.missing.append(path)
            return
        kind = next((kind for kind, pattern in REASONS.items() if re.match(pattern, reason)), None)
        if kind is None:
            self.found.odd.append(f"{path}: {reason}")
        else:
            self.found.named[kind] += 1

    def compare(self, dataset: h5py.Dataset, array: Any, expected: Any) -> str | None:
        """Return how an array differs from a dataset."""
        if dataset.shape is None:
            return None if array.shape == (0,) else f"shape {array.shape} of an empty dataspace"
        shape = dataset.shape + _inner_shape(dataset.id.get_type())
        if len(array.shape) != len(shape):
            return f"shape {array.shape} is {shape}"
        longer = [axis for axis, extent in enumerate(shape) if array.shape[axis] > extent]
        if longer and not all(axis < dataset.ndim and dataset.maxshape[axis] is None for axis in longer):
            return f"shape {array.shape} is {shape}"
        if any(got < extent for got, extent in zip(array.shape, shape, strict=True)):
            return f"shape {array.shape} is {shape}"
        if difference := self.compare_parts(dataset, array, expected):
            return difference
        return self.compare_beyond(dataset, array) if longer else None

    def compare_parts(self, dataset: h5py.Dataset, array: Any, expected: Any) -> str | None:
        kind = dataset.id.get_type()
        for part, theirs in expected:
            whole = part or tuple(slice(0, extent) for extent in dataset.shape)
            ours = np.asarray(array[(*whole, ...)] if array.shape else array[...])
            if difference := self.differs(kind, ours, np.asarray(theirs)):
                return difference
        return None

    def compare_beyond(self, dataset: h5py.Dataset, array: Any) -> str | None:
        """What is behind the end of a dataset is its fill value, and netCDF's for its type where it has none."""
        whole = np.asarray(array[...])
        beyond = np.ones(whole.shape, bool)
        beyond[tuple(map(slice, dataset.shape))] = False
        fill = netcdf_fill(dataset)
        same = whole[beyond] == np.asarray(fill, whole.dtype) if fill == fill else np.isnan(whole[beyond])
        return None if same.all() else f"beyond the end it reads {whole[beyond][0]}, not {fill}"

    # --- values, as their HDF5 types mean them

    def differs(self, kind: Any, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
        """Return how values differ; None where they are the same, bit for bit but for the padding of strings."""
        match kind:
            case h5t.TypeArrayID():
                return self.differs(kind.get_super(), ours, theirs)
            case h5t.TypeCompoundID() if theirs.dtype.names is not None:
                return self.records_differ(kind, ours, theirs)
            case h5t.TypeStringID():
                return self.texts_differ(kind, ours, theirs)
            case h5t.TypeReferenceID():
                return self.references_differ(ours, theirs)
        if theirs.dtype.kind in "mM" and np.datetime_data(theirs.dtype)[0] == "generic":
            theirs = theirs.view(f"V{theirs.dtype.itemsize}")  # a time without a unit, which zarr has no type for
        if ours.dtype.newbyteorder("=") != theirs.dtype.newbyteorder("="):
            return f"type {ours.dtype} is {theirs.dtype}"
        if ours.shape != theirs.shape:
            return f"shape {ours.shape} is {theirs.shape}"
        return _bits_differ(kind, ours, theirs)

    def records_differ(self, kind: Any, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
        names = [name for name in ours.dtype.names or () if not name.startswith("_gap")]
        if names != list(theirs.dtype.names or ()):
            return f"members {names} are {theirs.dtype.names}"
        for number, name in enumerate(names):
            if difference := self.differs(kind.get_member_type(number), ours[name], theirs[name]):
                return f"member {name}: {difference}"
        return None

    def texts_differ(self, kind: Any, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
        if not kind.is_variable_str() and ours.dtype != theirs.dtype:
            return f"type {ours.dtype} is {theirs.dtype}"
        if kind.is_variable_str() and ours.dtype.kind not in "OTSU":
            return f"type {ours.dtype} is text"
        mine = [_encoded(one) for one in ours.reshape(-1).tolist()]
        expected = [_unpadded(kind, _encoded(one)) for one in theirs.reshape(-1).tolist()]
        return None if mine == expected else f"texts {mine[:3]} are {expected[:3]}"

    def references_differ(self, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
        for path, reference in zip(ours.reshape(-1).tolist(), theirs.reshape(-1).tolist(), strict=True):
            target = self.target_of(reference)
            if (identity(self.file[path]) if path else None) != target:
                return f"a reference is {path!r}, not {target}"
        return None

    def target_of(self, reference: Any) -> tuple[int, int] | None:
        try:
            return identity(self.file[reference]) if reference else None
        except (ValueError, RuntimeError, KeyError):
            return None  # it points to what is no more


def read(dataset: h5py.Dataset) -> list[tuple[Any, Any]]:
    """Return the values with where they are; of very many, the first, the last and some that were written."""
    if not dataset.shape or dataset.size == 0:
        return [((), dataset[()])]
    chunk = dataset.chunks or dataset.shape
    count = int(np.prod([-(-extent // size) for extent, size in zip(dataset.shape, chunk, strict=True)], dtype=object))
    if dataset.size <= MOST_VALUES and count <= MOST_CHUNKS:
        return [((), dataset[()])]
    origins = [(0,) * dataset.ndim, tuple(extent - 1 for extent in dataset.shape)]
    if dataset.size <= MOST_VALUES:
        written = np.argwhere(dataset[()] != dataset.fillvalue)
        origins += map(tuple, written[:: max(1, len(written) // 50)])
    return [(part, dataset[part]) for part in (_around(origin, dataset.shape, chunk) for origin in origins)]


def _around(origin: Sequence[int], shape: Sequence[int], chunk: Sequence[int]) -> tuple[slice, ...]:
    """Return some chunks around an element, and not too many values."""
    side = max(1, int((MOST_VALUES / 4) ** (1 / len(shape))))
    reach = [min(max(1, side // 2), 2 * size) for size in chunk]
    return tuple(
        slice(max(0, at - by), min(extent, at + by)) for at, by, extent in zip(origin, reach, shape, strict=True)
    )


def netcdf_fill(dataset: h5py.Dataset) -> Any:
    plist = dataset.id.get_create_plist()
    if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
        return dataset.fillvalue
    if dataset.dtype.kind == "O":
        return ""
    return default_fillvals.get("S1" if dataset.dtype.kind == "S" else dataset.dtype.str[1:], 0)


def _inner_shape(kind: Any) -> tuple[int, ...]:
    return kind.get_array_dims() + _inner_shape(kind.get_super()) if isinstance(kind, h5t.TypeArrayID) else ()


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _bits_differ(kind: Any, ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> str | None:
    native = ours.dtype.newbyteorder("=")
    mine, expected = (
        np.ascontiguousarray(one, native).view(np.uint8).reshape(-1, native.itemsize) for one in (ours, theirs)
    )
    other = (mine != expected).any(axis=-1)
    # Which NaN a conversion makes is nobody's business; and zarr reads a fill value of float16 by way of Python's
    # struct, which knows only one NaN of that type.
    if native.kind in "fc" and (_is_converted(kind) or native.itemsize == 2):
        other &= ~(np.isnan(ours) & np.isnan(theirs)).reshape(-1)
    if not other.any():
        return None
    where = int(np.flatnonzero(other)[0])
    pair = ours.reshape(-1)[where], theirs.reshape(-1)[where]
    return f"{int(other.sum())} of {other.size} values differ, {pair[0]!r} is {pair[1]!r}"


def _is_converted(kind: Any) -> bool:
    """True for floats of another form than numpy's, which h5py reads as the next larger of those."""
    return isinstance(kind, h5t.TypeFloatID) and kind.get_fields() not in {
        h5t.IEEE_F16LE.get_fields(),
        h5t.IEEE_F32LE.get_fields(),
        h5t.IEEE_F64LE.get_fields(),
    }


def _encoded(one: Any) -> bytes:
    return one.encode("utf-8", "surrogateescape") if isinstance(one, str) else bytes(one or b"")


def _unpadded(kind: Any, content: bytes) -> bytes:
    if kind.is_variable_str():
        return content
    if kind.get_strpad() == h5t.STR_SPACEPAD:
        return content.rstrip(b" \0")
    return content.partition(b"\0")[0] if kind.get_strpad() == h5t.STR_NULLTERM else content.rstrip(b"\0")
