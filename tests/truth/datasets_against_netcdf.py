"""Compares datasets through h5zarr with those of xarray's netCDF engine, group by group, in each view.

There are two ways through h5zarr: its own engine, and xarray's zarr engine over references. Dimensions, values, types,
attributes and coordinates must be identical, and through h5zarr's engine also encoding and unlimited dimensions.
`differences.py` lists what may differ. Groups that netCDF4 does not open are compared with h5netcdf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import xarray as xr

from h5zarr.commands.translate.translation import Translation
from h5zarr.zarr_model.hierarchy import GroupNode
from tests.containers.hierarchies import open_store
from tests.engine.opening import Opened
from tests.roundtrip.reading import written
from tests.truth.agreement import Agreement, Comparing
from tests.truth.differences import Allowed, AllowedAgainstH5netcdf, AllowedThroughZarr, Reason
from tests.truth.same import same, short
from tests.truth.xarray_view import Shown, ShownGroup, show

Theirs = Mapping[str, Mapping[str, ShownGroup | str]]


def compare(path: Path, translation: Translation, theirs: Theirs) -> Agreement:
    """Return how h5zarr's engine agrees with `theirs`: what the netCDF engine shows of each group, in each view."""
    return _compare(path, Opened(translation, str(path)).open, theirs, translation, Allowed)


def compare_through_zarr(path: Path, translation: Translation, theirs: Theirs) -> Agreement:
    """Return how xarray's zarr engine over references agrees with `theirs`."""
    store = open_store(written(translation))

    def open_group(group: str, **options: Any) -> xr.Dataset:
        return xr.open_dataset(store, engine="zarr", group=group, **options)

    return _compare(path, open_group, theirs, translation, AllowedThroughZarr)


def compare_with_h5netcdf(path: Path, translation: Translation, groups: Sequence[str] | None = None) -> Agreement:
    """Return how h5zarr's engine agrees with h5netcdf, in groups that h5netcdf opens, by default all.

    h5netcdf shows text, records and attributes in other forms, and a null dataspace as one element: only shapes, named
    dimensions and numbers are compared.
    """
    nodes = translation.hierarchy.nodes
    if groups is None:
        groups = [place for place, node in nodes.items() if isinstance(node, GroupNode)]
    if not groups or not h5py.is_hdf5(path):
        return Agreement()
    opened = partial(xr.open_dataset, path, engine="h5netcdf", phony_dims="access")
    shown = {group: show(partial(opened, group=group), "raw") for group in groups}
    theirs = {group: {"raw": one} for group, one in shown.items() if isinstance(one, ShownGroup)}
    if not theirs:
        return Agreement()
    return _compare(path, Opened(translation, str(path)).open, theirs, translation, AllowedAgainstH5netcdf)


def _compare(
    path: Path, open_group: Callable[..., Any], theirs: Theirs, translation: Translation, allowed: type[Allowed]
) -> Agreement:
    found = Agreement()
    with h5py.File(path) if h5py.is_hdf5(path) else nullcontext() as file:
        comparing = _Comparing(found, allowed(path, translation, file))
        for group, views in theirs.items():
            for view, their in views.items():
                if isinstance(their, str):
                    found.unopened[group] = their
                else:
                    comparing.group(group, show(partial(open_group, group), view), their)
    return found


class _Comparing(Comparing):
    def __init__(self, found: Agreement, allowed: Allowed) -> None:
        super().__init__(found)
        self.allowed = allowed

    def group(self, path: str, ours: ShownGroup | str, theirs: ShownGroup) -> None:
        if isinstance(ours, str):
            self.differ(path, f"does not open: {ours}")
            return
        if self.allowed.only_numbers:
            ours, theirs = _only_numbers(ours, theirs)
        self.found.counts["groups"] += 1
        self.attributes(path, ours.attrs, theirs.attrs)
        if self.allowed.compares_encoding:
            self.unlimited(path, ours, theirs)
        both = ours.variables.keys() & theirs.variables.keys()
        self.equal(path, "coordinates", ours.coordinates & both, theirs.coordinates & both)
        for name in ours.variables.keys() | theirs.variables.keys():
            place = f"{path.rstrip('/')}/{name}"
            if name in both:
                self.variable(place, ours.variables[name], theirs.variables[name])
            elif (reason := self.allowed.in_one(place, is_ours=name in ours.variables)) is Reason.LONG_NAME:
                self.found.unopened[path] = reason.value  # which of these are shown depends on memory
                continue
            else:
                self.differ(place, "is not in the netCDF engine's" if name in ours.variables else "is missing", reason)
            if name in theirs.variables:
                self.found.compared.add(place)

    def unlimited(self, path: str, ours: ShownGroup, theirs: ShownGroup) -> None:
        (_, mine), (_, their) = ours.encoding["unlimited_dims"], theirs.encoding["unlimited_dims"]
        used = {name for one in theirs.variables.values() for name in one.dims}
        self.equal(path, "unlimited", mine, their, self.allowed.unlimited(mine, their, used))
        self.equal(path, "encoding", sorted(ours.encoding), sorted(theirs.encoding))

    def variable(self, place: str, ours: Shown, theirs: Shown) -> None:
        if not self.equal(place, "dimensions", (ours.dims, ours.shape), (theirs.dims, theirs.shape)):
            return
        if isinstance(ours.values, str):
            self.differ(place, f"cannot be read: {ours.values}")
        elif isinstance(theirs.values, str):
            self.differ(place, f"netCDF4: {theirs.values}", self.allowed.unreadable(place, theirs.values))
            self.equal(place, "type", ours.dtype, theirs.dtype)
        elif not self.allowed.is_same(ours, theirs):
            what = f"{ours.dtype} {short(ours.values)} is {theirs.dtype} {short(theirs.values)}"
            self.differ(place, what, self.allowed.variable(place, ours, theirs))
        self.attributes(place, ours.attrs, theirs.attrs)
        for name in (ours.encoding.keys() | theirs.encoding.keys()) if self.allowed.compares_encoding else ():
            mine, their = ours.encoding.get(name), theirs.encoding.get(name)
            if not _same_encoding(name, mine, their):
                reason = self.allowed.variable(place, ours, theirs) if name == "dtype" else None
                self.differ(f"{place}@@{name}", f"{mine} is {their}", reason)

    def attributes(self, place: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for name in ours.keys() | theirs.keys():
            mine, their = ours.get(name), theirs.get(name)
            if mine is None:
                self.differ(f"{place}@{name}", f"is missing: {their}", self.allowed.missing_attribute(place, name))
            elif their is None:
                reason = self.allowed.extra_attribute(place, name)
                self.differ(f"{place}@{name}", f"is not in the netCDF engine's: {mine}", reason)
            elif not self.allowed.is_same_attribute(mine, their):
                reason = self.allowed.attribute(place, name, mine[-1], their[-1])
                self.differ(f"{place}@{name}", f"{mine} is {their}", reason)


def _same_encoding(name: str, mine: Any, their: Any) -> bool:
    if name == "source" and mine is not None and their is not None:
        return mine[0] == their[0] and os.path.realpath(mine[1]) == os.path.realpath(their[1])
    return same(mine, their)


def _only_numbers(ours: ShownGroup, theirs: ShownGroup) -> tuple[ShownGroup, ShownGroup]:
    """Return the numeric variables that both show, without attributes, coordinates and made-up dimension names."""
    mine, their = {}, {}
    for name in ours.variables.keys() & theirs.variables.keys():
        one, other = ours.variables[name], theirs.variables[name]
        if not other.dtype[1].lstrip("<>").startswith(("i", "u", "f")) or one.dims == (f"{name}_null",):
            continue
        made_up = [
            axis for axis, pair in enumerate(zip(one.dims, other.dims, strict=False)) if "phony_dim" in str(pair)
        ]
        mine[name], their[name] = (
            replace(shown, attrs={}, dims=tuple("" if axis in made_up else dim for axis, dim in enumerate(shown.dims)))
            for shown in (one, other)
        )
    return ShownGroup(mine, set(), {}, {}), ShownGroup(their, set(), {}, {})
