"""The engine's datasets next to those of xarray's netCDF engine, group by group, raw and decoded: identical or not.

Everything counts: dimensions, values, the types that are announced and read, attributes and encoding with the type of
each, which variables are coordinates, and unlimited dimensions. What may differ is in `exceptions.py`.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from h5zarr.translating import Translation
from tests.engine.exceptions import Excuses, Reason
from tests.engine.opening import Opened
from tests.engine.view import Shown, ShownGroup, show_both


@dataclass
class Agreement:
    """What came out: of the `variables` that netCDF4 shows, `identical` ones differ in nothing at all."""

    variables: int = 0
    identical: int = 0
    groups: int = 0
    unopened: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    excused: set[tuple[str, Reason]] = field(default_factory=set)


def compare(path: Path, translation: Translation, theirs: dict[str, Any]) -> Agreement:
    """Return how the engine over the references agrees with `theirs`, which is what the netCDF engine shows."""
    found = Agreement()
    opened = Opened(translation, str(path))
    with h5py.File(path) if h5py.is_hdf5(path) else nullcontext() as file:
        comparing = _Comparing(found, Excuses(path, translation, file))
        for group, shown in theirs.items():
            ours = show_both(partial(opened.open, group))
            for mine, their in zip(ours, shown, strict=True):
                comparing.group(group, mine, their)
            comparing.finish()
    return found


class _Comparing:
    def __init__(self, found: Agreement, excuses: Excuses) -> None:
        self.found, self.excuses = found, excuses
        self.seen: set[str] = set()
        self.differing: set[str] = set()

    def finish(self) -> None:
        self.found.variables += len(self.seen)
        self.found.identical += len(self.seen - self.differing)
        self.seen, self.differing = set(), set()

    def differ(self, place: str, what: str, reason: Reason | None = None) -> None:
        """Note that something differs: with a reason it is excused."""
        self.differing.add(place.partition("@")[0])
        if reason is None:
            self.found.differences.append(f"{place}: {what}")
        else:
            self.found.excused.add((place, reason))

    def group(self, path: str, ours: ShownGroup | str, theirs: ShownGroup | str) -> None:
        if isinstance(theirs, str):
            self.found.unopened.add(path)
            return
        if isinstance(ours, str):
            self.differ(path, f"does not open: {ours}")
            return
        self.found.groups += 1
        self.attributes(path, ours.attrs, theirs.attrs)
        self.unlimited(path, ours, theirs)
        both = ours.variables.keys() & theirs.variables.keys()
        if ours.coordinates & both != theirs.coordinates & both:
            self.differ(path, f"coordinates {ours.coordinates & both} are {theirs.coordinates & both}")
        for name in ours.variables.keys() - both:
            place = _join(path, name)
            if (reason := self.excuses.extra(place)) is not Reason.LONG_NAME:
                self.differ(place, "is not in the netCDF engine's", reason)
        for name in theirs.variables:
            place = _join(path, name)
            if name in both:
                self.variable(place, ours.variables[name], theirs.variables[name])
            elif (reason := self.excuses.missing(place)) is not Reason.LONG_NAME:
                self.differ(place, "is missing", reason)
            else:  # which of them are shown, and how, is a matter of luck
                continue
            self.seen.add(place)

    def unlimited(self, path: str, ours: ShownGroup, theirs: ShownGroup) -> None:
        (_, mine), (_, their) = ours.encoding["unlimited_dims"], theirs.encoding["unlimited_dims"]
        if mine != their:
            used = {name for one in theirs.variables.values() for name in one.dims}
            self.differ(path, f"unlimited {mine} is {their}", self.excuses.unlimited(mine, their, used))
        if ours.encoding.keys() != theirs.encoding.keys():
            self.differ(path, f"encoding {sorted(ours.encoding)} is {sorted(theirs.encoding)}")

    def variable(self, place: str, ours: Shown, theirs: Shown) -> None:
        if ours.dims != theirs.dims or ours.shape != theirs.shape:
            self.differ(place, f"dimensions {ours.dims} {ours.shape} are {theirs.dims} {theirs.shape}")
            return
        if isinstance(theirs.values, str):
            self.differ(place, f"netCDF4: {theirs.values}", self.excuses.unreadable(place, theirs.values))
            if ours.dtype != theirs.dtype:
                self.differ(place, f"{ours.dtype} is {theirs.dtype}")
        elif isinstance(ours.values, str):
            self.differ(place, f"cannot be read: {ours.values}")
        elif ours.dtype != theirs.dtype or not same(ours.values, theirs.values):
            what = f"{ours.dtype} {ours.values.reshape(-1)[:3]!r} is {theirs.dtype} {theirs.values.reshape(-1)[:3]!r}"
            self.differ(place, what, self.excuses.variable(place, ours, theirs))
        self.attributes(place, ours.attrs, theirs.attrs)
        for name in ours.encoding.keys() | theirs.encoding.keys():
            mine, their = ours.encoding.get(name), theirs.encoding.get(name)
            if not _same_encoding(name, mine, their):
                reason = self.excuses.variable(place, ours, theirs) if name == "dtype" else None
                self.differ(f"{place}@@{name}", f"{mine} is {their}", reason)

    def attributes(self, place: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        for name in ours.keys() | theirs.keys():
            if name not in ours or name not in theirs:
                what = (
                    f"is missing: {theirs[name]}" if name in theirs else f"is not in the netCDF engine's: {ours[name]}"
                )
                self.differ(f"{place}@{name}", what)
            elif not same(ours[name], theirs[name]):
                reason = self.excuses.attribute(place, name, ours[name][-1], theirs[name][-1])
                self.differ(f"{place}@{name}", f"{ours[name]} is {theirs[name]}", reason)


def same(mine: Any, their: Any) -> bool:
    """True for things of the same type and value; NaN is NaN, and the order of bytes is part of a type."""
    if isinstance(mine, tuple | list) and type(mine) is type(their):
        return len(mine) == len(their) and all(map(same, mine, their))
    if isinstance(mine, dict) and isinstance(their, dict):
        return mine.keys() == their.keys() and all(same(mine[key], their[key]) for key in mine)
    if isinstance(mine, np.ndarray | np.generic) and isinstance(their, np.ndarray | np.generic):
        return mine.shape == their.shape and _same_dtype(mine.dtype, their.dtype) and _same_values(mine, their)
    return type(mine) is type(their) and bool(mine == their or (mine != mine and their != their))


def _same_dtype(mine: np.dtype[Any], their: np.dtype[Any]) -> bool:
    """True for types that are the same on this machine: `<i4` is `i4` where that is the machine's order."""
    return mine == their and mine.isnative == their.isnative and mine.isalignedstruct == their.isalignedstruct


def _same_values(mine: Any, their: Any) -> bool:
    if mine.dtype.names is not None:
        return all(_same_values(mine[name], their[name]) for name in mine.dtype.names)
    return bool(np.all((mine == their) | ((mine != mine) & (their != their))))


def _same_encoding(name: str, mine: Any, their: Any) -> bool:
    if name == "source" and mine is not None and their is not None:
        return mine[0] == their[0] and os.path.realpath(mine[1]) == os.path.realpath(their[1])
    return same(mine, their)


def _join(group: str, name: str) -> str:
    return f"{group.rstrip('/')}/{name}"
