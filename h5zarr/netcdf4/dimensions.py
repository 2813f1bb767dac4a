"""Find and number the dimensions of a file exactly as netCDF-C does when it opens the file.

NetCDF-C reads the file twice. In the first pass, parents first, it creates a dimension for every scale. In the second
pass, child groups first, it finds the dimensions of every variable, and makes up missing ones. The order matters,
because made-up names contain the next free number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from h5zarr.hdf5.datatype import Enumeration
from h5zarr.hdf5.model import CommittedDatatype, Dataset, H5File
from h5zarr.netcdf4.known_types import KnownTypes
from h5zarr.netcdf4.scales import (
    NOT_COORDINATE,
    Key,
    attached_scales,
    is_scale,
    is_without_variable,
    key_of,
    number_of,
    numbers_of,
)
from h5zarr.netcdf4.walk import GroupMember, GroupPath


@dataclass(slots=True, kw_only=True, eq=False)
class Draft:
    """A dimension that is being determined. `extent` is its length as known to netCDF-C at this point."""

    name: str
    number: int
    extent: int
    unlimited: bool
    home: GroupPath
    file: H5File
    scale: Dataset | None = None
    has_variable: bool = False
    length: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class Axes:
    """A variable and the dimensions found so far. `is_shown` is False if netCDF-C omits the variable.

    `type_name` is the name that netCDF-C gives an enumeration type.
    """

    name: str
    link_name: str
    file: H5File
    dataset: Dataset
    home: GroupPath
    numbers: tuple[int, ...] | None
    found: list[Draft | None]
    is_settled: bool = False
    is_shown: bool = True
    type_name: str | None = None


@dataclass(slots=True, eq=False)
class Inside:
    """The dimensions and variables of one group, in netCDF order.

    `by_extent` finds dimensions by length. `longest` maps the number of a dimension to the longest axis that uses it,
    among variables that store the numbers of their dimensions.
    """

    place: GroupPath
    dimensions: list[Draft] = field(default_factory=list)
    variables: list[Axes] = field(default_factory=list)
    by_extent: dict[tuple[int, bool], list[Draft]] = field(default_factory=dict)
    by_key: dict[Key, Draft] = field(default_factory=dict)
    by_name: dict[str, list[Draft]] = field(default_factory=dict)
    longest: dict[int, int] = field(default_factory=dict)

    def add_variable(self, axes: Axes) -> None:
        self.variables.append(axes)
        if axes.is_shown and axes.is_settled:
            numbers = axes.numbers or [found.number for found in axes.found if found is not None]
            for number, extent in zip(numbers, axes.dataset.dataspace.shape, strict=False):
                self.longest[number] = max(self.longest.get(number, 0), extent)

    def add(self, dimension: Draft) -> None:
        self.dimensions.append(dimension)
        self.by_name.setdefault(dimension.name, []).append(dimension)
        self.by_extent.setdefault((dimension.extent, dimension.unlimited), []).append(dimension)


class Dimensions:
    """All dimensions and variables of a file, by group."""

    def __init__(self, places: Sequence[GroupPath]) -> None:
        self.places = places
        self._inside = {id(place): Inside(place) for place in places}
        self._by_number: dict[tuple[int, int], Draft] = {}
        self._has_twins = False
        self._next_number = 0
        self.types = types = KnownTypes()
        for place in places:
            for member in place.members:
                self._read(place, member, types)

    def inside(self, place: GroupPath) -> Inside:
        return self._inside[id(place)]

    def variables(self) -> Iterator[Axes]:
        """Yield all variables in reading order."""
        return (axes for place in self.places for axes in self.inside(place).variables)

    # --- first pass: dimensions from scales

    def _read(self, place: GroupPath, member: GroupMember, types: KnownTypes) -> None:
        if isinstance(member.target, CommittedDatatype):
            types.learn(member.target.datatype, member.name)
            return
        inside, dataset = self.inside(place), member.target
        own = None
        if is_scale(dataset):
            own = self._read_scale(inside, member, dataset)
            if not own.has_variable:
                return
        axes = Axes(
            name=member.name.removeprefix(NOT_COORDINATE) or member.name,
            link_name=member.name,
            file=member.file,
            dataset=dataset,
            home=place,
            numbers=numbers_of(dataset) if own is None or dataset.dataspace.rank > 1 else None,
            found=[None] * dataset.dataspace.rank,
            is_shown=types.admits(dataset.datatype),
        )
        if isinstance(dataset.datatype, Enumeration):
            axes.type_name = types.name_of(dataset.datatype)
        if own is not None and len(axes.found) == 1:
            axes.found[0], axes.is_settled = own, True
        elif axes.numbers is not None:
            axes.found = [self._by_number.get((id(member.file), number)) for number in axes.numbers]
            axes.is_settled = True
        elif own is not None:  # netCDF-C cannot open such a file: a scale with several axes needs numbers
            axes.found[0], axes.is_settled = own, True
        inside.add_variable(axes)

    def _read_scale(self, inside: Inside, member: GroupMember, scale: Dataset) -> Draft:
        if (number := number_of(scale)) is None:
            number = self.take_number()
        self._next_number = max(self._next_number, number + 1)
        space = scale.dataspace
        dimension = Draft(
            name=member.name,
            number=number,
            extent=space.shape[0],
            # NetCDF-C stores an unlimited length as zero, and therefore treats a length of zero as unlimited.
            unlimited=space.max_shape[0] is None or space.shape[0] == 0,
            home=inside.place,
            file=member.file,
            scale=scale,
            has_variable=not is_without_variable(scale),
        )
        if not dimension.has_variable and dimension.unlimited:
            dimension.extent = inside.longest.get(number, 0)
        self._has_twins |= self._by_number.setdefault((id(member.file), number), dimension) is not dimension
        self._by_number[id(member.file), number] = dimension
        inside.by_key.setdefault(key_of(member.file, scale.address), dimension)
        inside.add(dimension)
        return dimension

    # --- second pass: dimensions of variables

    def match(self) -> None:
        """Find the dimensions of all variables, and make up missing ones.

        Variables that netCDF-C omits come last, so that they do not affect the numbers of the others. Some axes remain
        without a dimension: netCDF-C cannot show such variables, and usually rejects the file.
        """
        for place in _children_first(self.places):
            for axes in self.inside(place).variables:
                if axes.is_shown:
                    self._match(axes)
        for axes in self.variables():
            if not axes.is_shown:
                self._match(axes)
            if self._has_twins:
                axes.found = [None if found is None else self.shown(found) for found in axes.found]

    def _match(self, axes: Axes) -> None:
        if axes.numbers is not None and None in axes.found:
            for axis, number in enumerate(axes.numbers):
                axes.found[axis] = axes.found[axis] or self._by_number.get((id(axes.file), number))
        if axes.is_settled:
            return
        scales = attached_scales(axes.dataset)
        if scales and scales[0]:  # netCDF-C checks only the first axis for scales
            for axis, addresses in enumerate(scales):
                if addresses:
                    axes.found[axis] = self.visible(axes.home, key_of(axes.file, addresses[-1]))
        else:
            for axis in range(len(axes.found)):
                self.invent(axes, axis)

    def visible(self, place: GroupPath, key: Key) -> Draft | None:
        """Return the dimension of a scale that is visible from a group: in the group itself or one of its ancestors."""
        for above in place.above():
            if (found := self.inside(above).by_key.get(key)) is not None:
                return found
        return None

    def invent(self, axes: Axes, axis: int) -> None:
        """Assign a matching dimension of the group that no earlier axis of the variable uses, or else a new one."""
        space, inside = axes.dataset.dataspace, self.inside(axes.home)
        extent, unlimited = space.shape[axis], space.max_shape[axis] is None
        taken = {found.number for found in axes.found[:axis] if found is not None}
        for found in inside.by_extent.get((extent, unlimited), ()):
            if found.number not in taken:
                axes.found[axis] = found
                return
        axes.found[axis] = self.add_phony(axes.home, extent, unlimited)

    def add_phony(self, place: GroupPath, extent: int, unlimited: bool) -> Draft:
        """Add a dimension with a made-up name to a group, and return it."""
        number = self.take_number()
        unlimited = unlimited or extent == 0
        name = f"phony_dim_{number}"
        dimension = Draft(name=name, number=number, extent=extent, unlimited=unlimited, home=place, file=place.file)
        self.inside(place).add(dimension)
        return dimension

    def shown(self, dimension: Draft) -> Draft:
        """Return the dimension that netCDF-C shows instead of this one: the last one read with the same number.

        Other names of a numbered scale share its number. A file assembled from several files may have two dimensions
        with the same number and different lengths. NetCDF-C gets these wrong, so this code does not follow it there.
        """
        last = self._by_number.get((id(dimension.file), dimension.number), dimension)
        if last.unlimited != dimension.unlimited or (not last.unlimited and last.extent != dimension.extent):
            return dimension
        return last

    def take_number(self) -> int:
        """Return the next unused number."""
        self._next_number += 1
        return self._next_number - 1


def _children_first(places: Sequence[GroupPath]) -> Iterator[GroupPath]:
    """Return groups in the order of netCDF-C's second pass: each after all of its descendants.

    This is the reverse of a depth-first order that visits the last child first.
    """
    waiting, found = [places[0]], []
    while waiting:
        place = waiting.pop()
        found.append(place)
        waiting += place.children
    return reversed(found)
