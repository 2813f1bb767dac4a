"""Random HDF5 files with dimensions: scales, numbers, groups, links, and types that netCDF skips."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import h5py
import numpy as np

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BARE = "This is a netCDF dimension but not a netCDF variable.%10d"
PLAIN: list[Any] = ["i4", "f8", "S1", "S4", h5py.string_dtype()]
OTHERS: list[Any] = [
    h5py.ref_dtype,
    np.dtype(("i2", (2,))),
    np.dtype([("a", "i4"), ("b", "f8")]),
    np.dtype([("a", np.dtype([("b", "i4")]))]),
    np.dtype([("r", h5py.ref_dtype)]),
    h5py.enum_dtype({"no": 0, "yes": 1}, basetype="i1"),
    h5py.vlen_dtype("f4"),
    np.dtype("V3"),
]


class Making:
    """A file under construction, with its objects, so that later ones can refer to them."""

    def __init__(self, file: h5py.File, choice: random.Random, *, sane: bool) -> None:
        self.file, self.choice, self.sane = file, choice, sane
        self.scales: list[h5py.Dataset] = []
        self.groups: list[h5py.Group] = [file]
        self.names = 0
        self.numbered = choice.random() < 0.5

    def name(self) -> str:
        """A new name with a random position in the alphabet."""
        self.names += 1
        return self.choice.choice(LETTERS) + self.choice.choice(LETTERS) + str(self.names)

    def group(self) -> None:
        parent = self.choice.choice(self.groups)
        self.groups.append(parent.create_group(self.name(), track_order=self.choice.random() < 0.5))

    def scale(self) -> None:
        length = self.choice.choice([1, 2, 3, 3, 4, 5, 0])
        limit = None if self.choice.random() < 0.3 else length
        name = self.name()
        scale = self.choice.choice(self.groups).create_dataset(
            name, (length,), self.choice.choice(["i4", "f8"]), maxshape=(limit,), chunks=(1,) if limit is None else None
        )
        scale.make_scale(BARE % length if self.choice.random() < 0.4 else name)
        if self.numbered and (self.sane or self.choice.random() < 0.9):
            scale.attrs["_Netcdf4Dimid"] = np.int32(len(self.scales))
        self.scales.append(scale)

    def variable(self) -> None:
        group = self.choice.choice(self.groups)
        rank = self.choice.choice([0, 1, 1, 2, 2, 3])
        datatype = self.choice.choice(self.choice.choice([PLAIN, PLAIN, PLAIN, OTHERS]))
        is_plain = any(datatype is one for one in PLAIN)
        seen = self.scales
        if self.sane:  # netCDF leaves out some of the other types, and does not count them as users of a dimension
            seen = [one for one in seen if in_sight(one, group) and (is_plain or one.maxshape[0] is not None)]
        chosen = [self.choice.choice(seen) for _ in range(rank)] if seen else []
        shape = [one.shape[0] for one in chosen] or [self.choice.choice([0, 1, 2, 3, 4]) for _ in range(rank)]
        limits = [None if one.maxshape[0] is None else one.shape[0] for one in chosen]
        if not chosen:
            limits = [None if self.choice.random() < 0.3 else extent for extent in shape]
        for axis, limit in enumerate(limits):
            if limit is None and (is_plain or not self.sane):
                shape[axis] += self.choice.choice([0, 0, 1, 2])
        made = self.dataset(group, datatype, shape, limits)
        if self.choice.random() < 0.75:
            self.describe(made, chosen)

    def dataset(self, group: h5py.Group, datatype: Any, shape: list[int], limits: list[int | None]) -> h5py.Dataset:
        name = self.name()
        if self.choice.random() < 0.05:
            name = "_nc4_non_coord_" + name
        if not shape:
            return group.create_dataset(name, (), datatype)
        if None in limits:  # a chunked axis must have room for a chunk
            limits = [1 if limit == 0 else limit for limit in limits]
        chunks = (1,) * len(shape) if None in limits else None
        return group.create_dataset(name, shape, datatype, maxshape=limits, chunks=chunks)

    def describe(self, made: h5py.Dataset, chosen: list[h5py.Dataset]) -> None:
        """Attach all scales, or only some if the file need not be sane, or store their numbers."""
        if chosen and self.numbered and self.choice.random() < 0.3:
            numbers = [one.attrs.get("_Netcdf4Dimid", 0) for one in chosen]
            made.attrs["_Netcdf4Coordinates"] = np.array(numbers, "i4")
        for axis, scale in enumerate(chosen):
            if self.sane or self.choice.random() < 0.8:
                made.dims[axis].attach_scale(scale)
            if not self.sane and self.choice.random() < 0.2:
                made.dims[axis].attach_scale(self.choice.choice(self.scales))

    def alias(self) -> None:
        """A second name for a dataset, or (rarely) for a group, which may then contain itself."""
        found = [one for group in self.groups for one in group.values() if isinstance(one, h5py.Dataset)]
        if self.sane:  # netCDF measures an unlimited dimension only from where it was last named
            found = [one for one in found if not (self.numbered and one.is_scale and one.maxshape[0] is None)]
        group = self.choice.choice(self.groups)
        if not found:
            return
        target = self.choice.choice(found)
        if self.choice.random() < 0.5:
            group[self.name()] = target
        elif self.choice.random() < 0.7:
            group[self.name()] = h5py.SoftLink(target.name)
        elif not self.sane:
            group[self.name()] = self.choice.choice([self.choice.choice(self.groups), h5py.SoftLink("nowhere")])


def in_sight(scale: h5py.Dataset, group: h5py.Group) -> bool:
    home = scale.parent.name.rstrip("/") + "/"
    return (group.name.rstrip("/") + "/").startswith(home)


def make_file(path: Path, seed: int, *, sane: bool) -> None:
    """Write a file that depends only on `seed`. netCDF can open a sane file."""
    choice = random.Random(seed)
    libver = choice.choice(["earliest", "latest"])
    with h5py.File(path, "w", track_order=choice.random() < 0.5, libver=libver) as file:
        making = Making(file, choice, sane=sane)
        makers = [making.group] * 2 + [making.scale] * 4 + [making.variable] * 6 + [making.alias]
        for _ in range(choice.randint(1, 25)):
            choice.choice(makers)()
