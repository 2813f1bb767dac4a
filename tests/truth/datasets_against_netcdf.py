"""Datasets through h5zarr next to those of xarray's netCDF engine, group by group, raw and decoded: identical or not.

There are two ways through h5zarr: its own engine, and xarray's zarr engine over the references. Everything counts:
dimensions, values, types, attributes and which variables are coordinates; of h5zarr's own engine also encoding and
unlimited dimensions. What may differ is in `differences.py`.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import xarray as xr

from h5zarr.commands.translate.translation import Translation
from tests.containers.hierarchies import open_store
from tests.engine.opening import Opened
from tests.roundtrip.reading import written
from tests.truth.differences import Allowed, AllowedThroughZarr, Reason
from tests.truth.same import same
from tests.truth.xarray_view import Shown, ShownGroup, show_both


@dataclass
class Agreement:
    """What came out: of the `variables` that netCDF4 shows, `identical` ones differ in nothing at all."""

    variables: int = 0
    identical: int = 0
    groups: int = 0
    unopened: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    allowed: set[tuple[str, Reason]] = field(default_factory=set)


def compare(path: Path, translation: Translation, theirs: dict[str, Any]) -> Agreement:
    """Return how h5zarr's engine agrees with `theirs`, which is what the netCDF engine shows."""
    return _compare(path, Opened(translation, str(path)).open, theirs, translation, Allowed)


def compare_through_zarr(path: Path, translation: Translation, theirs: dict[str, Any]) -> Agreement:
    """Return how xarray's zarr engine over the references agrees with `theirs`."""
    store = open_store(written(translation))

    def open_group(group: str, **options: Any) -> xr.Dataset:
        return xr.open_dataset(store, engine="zarr", group=group, **options)

    return _compare(path, open_group, theirs, translation, AllowedThroughZarr)


def _compare(
    path: Path, open_group: Any, theirs: dict[str, Any], translation: Translation, allowed: type[Allowed]
) -> Agreement:
    found = Agreement()
    with h5py.File(path) if h5py.is_hdf5(path) else nullcontext() as file:
        comparing = _Comparing(found, allowed(path, translation, file))
        for group, shown in theirs.items():
            ours = show_both(partial(open_group, group))
            for mine, their in zip(ours, shown, strict=True):
                comparing.group(group, mine, their)
            comparing.finish()
    return found


class _Comparing:
    def __init__(self, found: Agreement, allowed: Allowed) -> None:
        self.found, self.allowed = found, allowed
        self.seen: set[str] = set()
        self.differing: set[str] = set()

    def finish(self) -> None:
        self.found.variables += len(self.seen)
        self.found.identical += len(self.seen - self.differing)
        self.seen, self.differing = set(), set()

    def differ(self, place: str, what: str, reason: Reason | None = None) -> None:
        """Note a difference; with a reason it is allowed."""
        self.differing.add(place.partition("@")[0])
        if reason is None:
            self.found.differences.append(f"{place}: {what}")
        else:
            self.found.allowed.add((place, reason))

    def group(self, path: str, ours: ShownGroup | str, theirs: ShownGroup | str) -> None:
        if isinstance(theirs, str):
            self.found.unopened.add(path)
            return
        if isinstance(ours, str):
            self.differ(path, f"does not open: {ours}")
            return
        self.found.groups += 1
        self.attributes(path, ours.attrs, theirs.attrs)
        if self.allowed.compares_encoding:
            self.unlimited(path, ours, theirs)
        both = ours.variables.keys() & theirs.variables.keys()
        if ours.coordinates & both != theirs.coordinates & both:
            self.differ(path, f"coordinates {ours.coordinates & both} are {theirs.coordinates & both}")
        for name in ours.variables.keys() - both:
            place = _join(path, name)
            if (reason := self.allowed.extra(place)) is not Reason.LONG_NAME:
                self.differ(place, "is not in the netCDF engine's", reason)
        for name in theirs.variables:
            place = _join(path, name)
            if name in both:
                self.variable(place, ours.variables[name], theirs.variables[name])
            elif (reason := self.allowed.missing(place)) is not Reason.LONG_NAME:
                self.differ(place, "is missing", reason)
            else:  # which of them are shown, and how, is a matter of luck
                continue
            self.seen.add(place)

    def unlimited(self, path: str, ours: ShownGroup, theirs: ShownGroup) -> None:
        (_, mine), (_, their) = ours.encoding["unlimited_dims"], theirs.encoding["unlimited_dims"]
        if mine != their:
            used = {name for one in theirs.variables.values() for name in one.dims}
            self.differ(path, f"unlimited {mine} is {their}", self.allowed.unlimited(mine, their, used))
        if ours.encoding.keys() != theirs.encoding.keys():
            self.differ(path, f"encoding {sorted(ours.encoding)} is {sorted(theirs.encoding)}")

    def variable(self, place: str, ours: Shown, theirs: Shown) -> None:
        if ours.dims != theirs.dims or ours.shape != theirs.shape:
            self.differ(place, f"dimensions {ours.dims} {ours.shape} are {theirs.dims} {theirs.shape}")
            return
        if isinstance(theirs.values, str):
            self.differ(place, f"netCDF4: {theirs.values}", self.allowed.unreadable(place, theirs.values))
            if ours.dtype != theirs.dtype:
                self.differ(place, f"{ours.dtype} is {theirs.dtype}")
        elif isinstance(ours.values, str):
            self.differ(place, f"cannot be read: {ours.values}")
        elif not self.allowed.is_same(ours, theirs):
            what = f"{ours.dtype} {ours.values.reshape(-1)[:3]!r} is {theirs.dtype} {theirs.values.reshape(-1)[:3]!r}"
            self.differ(place, what, self.allowed.variable(place, ours, theirs))
        self.attributes(place, ours.attrs, theirs.attrs)
        for name in (ours.encoding.keys() | theirs.encoding.keys()) if self.allowed.compares_encoding else ():
            mine, their = ours.encoding.get(name), theirs.encoding.get(name)
            if not _same_encoding(name, mine, their):
                reason = self.allowed.variable(place, ours, theirs) if name == "dtype" else None
                self.differ(f"{place}@@{name}", f"{mine} is {their}", reason)

    def attributes(self, place: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for name in ours.keys() | theirs.keys():
            if name not in ours:
                reason = self.allowed.missing_attribute(place, name)
                self.differ(f"{place}@{name}", f"is missing: {theirs[name]}", reason)
            elif name not in theirs:
                reason = self.allowed.extra_attribute(place, name)
                self.differ(f"{place}@{name}", f"is not in the netCDF engine's: {ours[name]}", reason)
            elif not self.allowed.is_same_attribute(ours[name], theirs[name]):
                reason = self.allowed.attribute(place, name, ours[name][-1], theirs[name][-1])
                self.differ(f"{place}@{name}", f"{ours[name]} is {theirs[name]}", reason)


def _same_encoding(name: str, mine: Any, their: Any) -> bool:
    if name == "source" and mine is not None and their is not None:
        return mine[0] == their[0] and os.path.realpath(mine[1]) == os.path.realpath(their[1])
    return same(mine, their)


def _join(group: str, name: str) -> str:
    return f"{group.rstrip('/')}/{name}"
