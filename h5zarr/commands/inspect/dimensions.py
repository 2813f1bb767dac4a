"""The dimensions that a file itself declares, with names and lengths; None where it declares none.

`h5zarr.netcdf4` reads the attributes involved, and invents names for other axes where needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from h5zarr.display import text_of
from h5zarr.hdf5.model import Attribute, Dataset, H5File, Object
from h5zarr.netcdf4.scales import (
    NOT_COORDINATE,
    attached_scales,
    is_scale,
    is_without_variable,
    number_of,
    numbers_of,
)
from h5zarr.netcdf_names import OF_NUMBERS, OF_SCALES, WRITTEN_ON_ROOT

SCALE_ATTRIBUTES = OF_SCALES | {"REFERENCE_LIST"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A scale. `label` is its NAME if that says more than its path; `has_variable` is False if it is only a length."""

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
        """Return the dimensions of a group, in the order of netCDF's numbers, then of the file."""
        return self.by_group.get(group_path, ())

    def of_axes(self, path: str, dataset: Dataset) -> tuple[str | None, ...]:
        """Return the name of each axis, or None if no scale names it.

        A dimension that is neither in the dataset's group nor in a parent group is named by its path.
        """
        found = self.axes(dataset)
        return tuple(None if dimension is None else _name_from(parent(path), dimension) for dimension in found)

    def axes(self, dataset: Dataset) -> list[Dimension | None]:
        """Return the dimension of each axis, or None if no scale names it."""
        rank = dataset.dataspace.rank
        own = self.by_address.get(dataset.address)
        if own is not None and rank == 1:
            return [own]
        if (scales := attached_scales(dataset)) is not None:
            return [self._referred(addresses) for addresses in scales]
        if (numbers := numbers_of(dataset)) is not None:
            return [self.by_number.get(number) for number in numbers]
        return [own, *[None] * (rank - 1)] if own is not None and rank else [None] * rank

    def _referred(self, addresses: Sequence[int]) -> Dimension | None:
        """Return the last scale of an axis, as netCDF does; an axis may have none."""
        return next((self.by_address[one] for one in reversed(addresses) if one in self.by_address), None)


def find_dimensions(file: H5File) -> Dimensions:
    """Return the dimensions of a file; empty if it has no dimension scales."""
    by_address: dict[int, Dimension] = {}
    by_number: dict[int, Dimension] = {}
    for path, dataset in file.datasets():
        if not is_scale(dataset):
            continue
        dimension = by_address[dataset.address] = _dimension(path, dataset)
        if (number := number_of(dataset)) is not None:
            by_number.setdefault(number, dimension)
    found = Dimensions(by_address=by_address, by_number=by_number, by_group={})
    for address, length in _grown(file, found).items():
        by_address[address] = replace(by_address[address], length=length)
    by_path = {dimension.path: dimension for dimension in by_address.values()}
    by_number.update({key: by_path[dimension.path] for key, dimension in by_number.items()})
    return replace(found, by_group=_by_group(by_address, by_number))


def is_bookkeeping(attribute: Attribute, owner: Object, path: str, dimensions: Dimensions) -> bool:
    """Return whether an attribute is netCDF's own, or already shown as dimensions."""
    if attribute.name in SCALE_ATTRIBUTES:
        return owner.address in dimensions.by_address
    if attribute.name == "DIMENSION_LIST":
        return isinstance(owner, Dataset) and any(dimensions.of_axes(path, owner))
    if attribute.name in OF_NUMBERS:
        return bool(dimensions.by_number)
    return path == "/" and attribute.name in WRITTEN_ON_ROOT


def text_attribute(owner: Object, name: str) -> str | None:
    """Return the value of an attribute that is one string; None if it is absent or something else."""
    attribute = owner.attributes.get(name)
    if attribute is None or attribute.value is None or attribute.value.size != 1:
        return None
    element = attribute.value.reshape(-1)[0]
    return text_of(bytes(element)) if isinstance(element, bytes) else None


def parent(path: str) -> str:
    """Return the path of the parent group."""
    return path.rpartition("/")[0] or "/"


def _grown(file: H5File, dimensions: Dimensions) -> dict[int, int]:
    """Return lengths, by address, of unlimited dimensions whose variables outgrew the scale, as netCDF allows."""
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
    bare = is_without_variable(dataset)
    space = dataset.dataspace
    return Dimension(
        path=path,
        name=name,
        length=space.shape[0],
        unlimited=space.max_shape[0] is None,
        label="" if bare or label.rpartition("/")[2] in (name, path.rpartition("/")[2]) else label,
        has_variable=not bare,
    )


def _name_from(group_path: str, dimension: Dimension) -> str:
    home = parent(dimension.path).rstrip("/") + "/"
    return dimension.name if (group_path.rstrip("/") + "/").startswith(home) else dimension.path
