"""Dimension scales: which dataset names which axis, as the HDF5 scale convention and netCDF-4 write it.

Scales carry CLASS = "DIMENSION_SCALE"; a dataset's DIMENSION_LIST refers to the scales of each axis. NetCDF-4 numbers
its dimensions (`_Netcdf4Dimid`) and says by these numbers (`_Netcdf4Coordinates`) which axes a scale of rank 2 has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from h5zarr.hdf5.model import Attribute, Dataset, H5File, Object, ObjectReference
from h5zarr.inspect.escape import text_of

WITHOUT_VARIABLE = "This is a netCDF dimension but not a netCDF variable"
NOT_COORDINATE = "_nc4_non_coord_"  # prefix of a variable whose name is that of a dimension it does not describe
SCALE_ATTRIBUTES = frozenset({"CLASS", "NAME", "REFERENCE_LIST"})
NETCDF_ATTRIBUTES = frozenset({"_Netcdf4Dimid", "_Netcdf4Coordinates"})
NETCDF_ROOT_ATTRIBUTES = frozenset({"_NCProperties", "_nc3_strict"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A scale. `label` is its NAME where that says more than its path; `has_variable` is False for a mere length."""

    path: str
    name: str
    length: int
    unlimited: bool
    label: str
    has_variable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The dimensions of a file: by the address of their scale, by netCDF's number, and by the path of their group."""

    by_address: Mapping[int, Dimension]
    by_number: Mapping[int, Dimension]
    by_group: Mapping[str, Sequence[Dimension]]

    def of_group(self, group_path: str) -> Sequence[Dimension]:
        """Return the dimensions that stand in a group, in the order of netCDF's numbers, then of the file."""
        return self.by_group.get(group_path, ())

    def of_axes(self, path: str, dataset: Dataset) -> tuple[str | None, ...]:
        """Return the name of each axis, None where no scale names it.

        A dimension that neither the dataset's group nor a group above it holds is named by its path.
        """
        found = self.axes(dataset)
        return tuple(None if dimension is None else _name_from(parent(path), dimension) for dimension in found)

    def axes(self, dataset: Dataset) -> list[Dimension | None]:
        """Return the dimension of each axis, None where no scale names it."""
        rank = dataset.dataspace.rank
        own = self.by_address.get(dataset.address)
        if own is not None and rank == 1:
            return [own]
        listed = dataset.attributes.get("DIMENSION_LIST")
        if listed is not None and listed.value is not None and listed.value.shape == (rank,):
            return [self._referred(scales) for scales in listed.value]
        numbers = dataset.attributes.get("_Netcdf4Coordinates")
        if numbers is not None and numbers.value is not None and numbers.value.shape == (rank,):
            return [self.by_number.get(int(number)) for number in numbers.value]
        return [own, *[None] * (rank - 1)] if own is not None and rank else [None] * rank

    def _referred(self, scales: Any) -> Dimension | None:
        """Return the first scale of an axis; an axis may have none, or several."""
        for scale in np.atleast_1d(scales):
            if isinstance(scale, ObjectReference) and scale.address is not None and scale.address in self.by_address:
                return self.by_address[scale.address]
        return None


def find_dimensions(file: H5File) -> Dimensions:
    """Return the dimensions of a file; none when it has no dimension scales."""
    by_address: dict[int, Dimension] = {}
    by_number: dict[int, Dimension] = {}
    for path, dataset in file.datasets():
        if text_attribute(dataset, "CLASS") != "DIMENSION_SCALE":
            continue
        dimension = by_address[dataset.address] = _dimension(path, dataset)
        number = dataset.attributes.get("_Netcdf4Dimid")
        if number is not None and number.value is not None and number.value.size and number.value.dtype.kind in "iu":
            by_number.setdefault(int(number.value.reshape(-1)[0]), dimension)
    found = Dimensions(by_address=by_address, by_number=by_number, by_group={})
    for address, length in _grown(file, found).items():
        by_address[address] = replace(by_address[address], length=length)
    by_path = {dimension.path: dimension for dimension in by_address.values()}
    by_number.update({key: by_path[dimension.path] for key, dimension in by_number.items()})
    return replace(found, by_group=_by_group(by_address, by_number))


def is_bookkeeping(attribute: Attribute, owner: Object, path: str, dimensions: Dimensions) -> bool:
    """Return True for an attribute that the dimensions or netCDF's own notes have already told."""
    if attribute.name in SCALE_ATTRIBUTES:
        return owner.address in dimensions.by_address
    if attribute.name == "DIMENSION_LIST":
        return isinstance(owner, Dataset) and any(dimensions.of_axes(path, owner))
    if attribute.name in NETCDF_ATTRIBUTES:
        return bool(dimensions.by_number)
    return path == "/" and attribute.name in NETCDF_ROOT_ATTRIBUTES


def text_attribute(owner: Object, name: str) -> str | None:
    """Return the value of an attribute that is one string, None where it is absent or something else."""
    attribute = owner.attributes.get(name)
    if attribute is None or attribute.value is None or attribute.value.size != 1:
        return None
    element = attribute.value.reshape(-1)[0]
    return text_of(bytes(element)) if isinstance(element, bytes) else None


def parent(path: str) -> str:
    """Return the path of the group that holds the object at `path`."""
    return path.rpartition("/")[0] or "/"


def _grown(file: H5File, dimensions: Dimensions) -> dict[int, int]:
    """Return lengths by address where a variable has outgrown the scale of an unlimited dimension, as netCDF allows."""
    grown: dict[int, int] = {}
    addresses = {dimension.path: address for address, dimension in dimensions.by_address.items()}
    if not any(dimension.unlimited for dimension in dimensions.by_address.values()):
        return grown
    for _, dataset in file.datasets():
        for dimension, extent in zip(dimensions.axes(dataset), dataset.dataspace.shape, strict=True):
            if dimension is not None and dimension.unlimited and extent > dimension.length:
                address = addresses[dimension.path]
                grown[address] = max(grown.get(address, 0), extent)
    return grown


def _by_group(
    by_address: Mapping[int, Dimension], by_number: Mapping[int, Dimension]
) -> dict[str, Sequence[Dimension]]:
    numbers = {dimension.path: number for number, dimension in by_number.items()}
    by_group: dict[str, list[Dimension]] = {}
    for dimension in sorted(by_address.values(), key=lambda found: numbers.get(found.path, len(by_address))):
        by_group.setdefault(parent(dimension.path), []).append(dimension)
    return dict(by_group)


def _dimension(path: str, dataset: Dataset) -> Dimension:
    name = path.rpartition("/")[2].removeprefix(NOT_COORDINATE)
    label = text_attribute(dataset, "NAME") or ""
    bare = label.startswith(WITHOUT_VARIABLE)
    space = dataset.dataspace
    return Dimension(
        path=path,
        name=name,
        length=space.shape[0] if space.shape else space.count,
        unlimited=bool(space.max_shape) and space.max_shape[0] is None,
        label="" if bare or label.rpartition("/")[2] in (name, path.rpartition("/")[2]) else label,
        has_variable=not bare,
    )


def _name_from(group_path: str, dimension: Dimension) -> str:
    home = parent(dimension.path).rstrip("/") + "/"
    return dimension.name if (group_path.rstrip("/") + "/").startswith(home) else dimension.path
