"""Compares what zarr reads through references with what h5py reads from the file.

Every dataset that h5py reads must have the same values, or be left out for a known reason. Where netCDF and HDF5
differ, netCDF counts: the prefix `_nc4_non_coord_` is not part of a name, and a variable that is shorter than its
unlimited dimension reads as fill beyond its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from tests.truth.agreement import Agreement, Comparing
from tests.truth.differences import NON_COORDINATE, left_out_reason
from tests.truth.same import Hdf5Values

MOST_VALUES, MOST_CHUNKS = 2_000_000, 5_000
UNREADABLE = (OSError, RuntimeError, TypeError, ValueError, KeyError, AttributeError)


def compare(path: Path, options: dict[str, Any] | None = None) -> Agreement:
    """Return how references to the file at `path` agree with h5py."""
    found, translation = Agreement(), None
    try:
        translation = h5zarr.translate(path, **(options or {}))
    except H5ZarrError as error:
        found.refused = str(error)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        found.unopened[""] = str(error)
        return found
    with file:
        if translation is None:
            found.differences += [f"{name}: is missing: {found.refused}" for name, _ in walk(file)]
            return found
        return compare_translation(file, translation)


def compare_translation(file: h5py.File, translation: Translation, group: Any = None) -> Agreement:
    """Return how references agree with an open file, or how a Zarr group does that was made from them.

    Counts `unreadable`: datasets that h5py cannot read.
    """
    found = Agreement()
    _Comparing(found, file, translation, group).datasets()
    return found


def walk(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield every dataset at every path that leads to it, including soft and external links."""
    waiting: list[tuple[str, h5py.Group, tuple[Any, ...]]] = [("", file, (identity(file),))]
    while waiting:
        path, group, above = waiting.pop()
        try:
            names = list(group)
        except RuntimeError:
            continue  # h5py lists no link if there is one that it cannot show
        for name in names:
            try:
                member = group[name]
                here = identity(member)
            except UNREADABLE:
                continue
            place = f"{path}/{name if isinstance(name, str) else text(name)}"
            if isinstance(member, h5py.Dataset):
                yield place, member
            elif isinstance(member, h5py.Group) and here not in above:
                waiting.append((place, member, (*above, here)))


def identity(one: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(one.id)
    return info.fileno, info.addr


class _Comparing(Comparing):
    def __init__(self, found: Agreement, file: h5py.File, translation: Translation, group: Any) -> None:
        super().__init__(found)
        self.file = file
        self.group = open_group(translation) if group is None else group
        self.arrays = translation.arrays()
        self.bare = set(translation.bare_dimensions)
        self.problems = {problem.path: problem.message for problem in translation.problems}
        self.problems |= dict.fromkeys(self.bare, "dimension without a variable")
        # Links without a usable target are reported as warnings. The dataset is not missing: it has another path.
        self.problems |= {one.path: one.message for one in translation.warnings if one.path not in self.arrays}
        self.values = Hdf5Values(self.target_of, as_stored=False)

    def datasets(self) -> None:
        for path, dataset in walk(self.file):
            array_path = self.array_path(path)
            try:
                expected = None if dataset.shape is None else read(dataset)
            except UNREADABLE:
                self.found.counts["unreadable"] += 1
                continue
            self.found.compared.add(path)
            if array_path not in self.arrays:
                message = next((self.problems[place] for place in _upwards(path) if place in self.problems), "")
                self.differ(path, f"is missing: {message}", left_out_reason(message))
                continue
            try:
                difference = self.differs(dataset, self.group[array_path.lstrip("/")], expected)
            except Exception as error:
                difference = f"{type(error).__name__}: {error}"
            if difference:
                self.differ(path, difference)

    def array_path(self, path: str) -> str:
        """Return the path with netCDF's name, without the prefix of variables that share the name of a dimension.

        It is "" for a dimension without a variable.
        """
        if path in self.bare:
            return ""
        parent, _, name = path.rpartition("/")
        plain = f"{parent}/{name.removeprefix(NON_COORDINATE)}"
        return plain if plain in self.arrays and path not in self.arrays else path

    def differs(self, dataset: h5py.Dataset, array: Any, expected: Any) -> str | None:
        """Return how an array differs from a dataset."""
        if dataset.shape is None:
            return None if array.shape == (0,) else f"shape {array.shape} of an empty dataspace"
        kind = dataset.id.get_type()
        inner = _inner_shape(kind)
        shape, limits = dataset.shape + inner, dataset.maxshape + inner
        extents = zip(array.shape, shape, limits, strict=False)
        is_fitting = all(got == extent or (got > extent and limit is None) for got, extent, limit in extents)
        if len(array.shape) != len(shape) or not is_fitting:
            return f"shape {array.shape} is {shape}"
        for part, theirs in expected:
            whole = part or tuple(slice(0, extent) for extent in dataset.shape)
            ours = np.asarray(array[(*whole, ...)] if array.shape else array[...])
            if difference := self.values.differ(kind, ours, np.asarray(theirs)):
                return difference
        return self.differs_beyond(dataset, array) if array.shape != shape else None

    def differs_beyond(self, dataset: h5py.Dataset, array: Any) -> str | None:
        """Beyond its end a dataset reads as its fill value, or netCDF's default if it has none."""
        whole = np.asarray(array[...])
        beyond = np.ones(whole.shape, bool)
        beyond[tuple(map(slice, dataset.shape))] = False
        fill = netcdf_fill(dataset)
        same = whole[beyond] == np.asarray(fill, whole.dtype) if fill == fill else np.isnan(whole[beyond])
        return None if same.all() else f"beyond the end it reads {whole[beyond][0]}, not {fill}"

    def target_of(self, reference: Any) -> tuple[int, int] | None:
        """Return the identity of what h5py's reference, or a path of ours, points to. None if there is nothing."""
        if isinstance(reference, str):
            return identity(self.file[reference]) if reference else None
        try:
            return identity(self.file[reference]) if reference else None
        except (ValueError, RuntimeError, KeyError):
            return None  # the target was deleted


def read(dataset: h5py.Dataset) -> list[tuple[Any, Any]]:
    """Return values with their selection: all, or the first, the last and some written ones of a large dataset."""
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
    """Return a selection of some chunks around an element."""
    side = max(1, int((MOST_VALUES / 4) ** (1 / len(shape))))
    reach = [min(max(1, side // 2), 2 * size) for size in chunk]
    return tuple(
        slice(max(0, at - by), min(extent, at + by)) for at, by, extent in zip(origin, reach, shape, strict=True)
    )


def netcdf_fill(dataset: h5py.Dataset) -> Any:
    settings = dataset.id.get_create_plist()
    if settings.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
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
