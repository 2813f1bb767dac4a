"""Find dimensions where netCDF-C would reject the file, omit the variable or show a wrong length.

Zarr and xarray need a name for every axis, and one length for every name within a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from h5zarr.errors import Problem
from h5zarr.hdf5.model import Dataset
from h5zarr.netcdf4.dimensions import Axes, Dimensions, Draft, Inside
from h5zarr.netcdf4.scales import Key, attached_scales, key_of
from h5zarr.netcdf4.walk import GroupPath

_KIND = "dimension"
_REMEDY = "The values are correct; only the name of this axis differs from the file."


def settle(dimensions: Dimensions) -> list[Problem]:
    """Give every axis a matching dimension, and every dimension its length. Returns problems found on the way."""
    dimensions.match()
    _measure(dimensions)
    repairing = _Repairing(dimensions)
    for axes in dimensions.variables():
        for axis, found in enumerate(axes.found):
            if found is None or not _fits(found, axes, axis):
                repairing.replace(axes, axis)
    for place in dimensions.places:
        repairing.separate(dimensions.inside(place))
    return repairing.problems


def _measure(dimensions: Dimensions) -> None:
    """Set the logical length of each dimension: that of its longest axis if unlimited, else that of its scale."""
    for place in dimensions.places:
        for found in dimensions.inside(place).dimensions:
            found.length = 0 if found.unlimited else found.extent
    for axes in dimensions.variables():
        for named, extent in zip(axes.found, axes.dataset.dataspace.shape, strict=True):
            if named is not None and named.unlimited and extent > named.length:
                named.length = extent


def _fits(dimension: Draft, axes: Axes, axis: int) -> bool:
    return dimension.unlimited or dimension.length == axes.dataset.dataspace.shape[axis]


class _Repairing:
    """Adds dimensions where needed, and collects problems."""

    def __init__(self, dimensions: Dimensions) -> None:
        self.problems: list[Problem] = []
        self._dimensions = dimensions

    # --- a dimension for every axis

    def replace(self, axes: Axes, axis: int) -> None:
        """Give an axis another dimension: that of another attached scale, or a made-up one."""
        extent, wrong = axes.dataset.dataspace.shape[axis], axes.found[axis]
        axes.found[axis] = None
        for candidate in self._candidates(axes, axis):
            if _fits(candidate, axes, axis) and candidate not in axes.found:
                candidate.length = max(candidate.length, extent)
                axes.found[axis] = candidate
                return
        axes.found[axis] = chosen = self._phony(axes, axis)
        if wrong is not None:
            what = f"axis {axis} has {extent} elements, but its dimension {wrong.home.join(wrong.name)!r} has"
            self._complain(axes, f"{what} {wrong.length}; the axis is called {chosen.name!r}")

    def _candidates(self, axes: Axes, axis: int) -> Iterator[Draft]:
        """Yield the dimensions of an axis's scales: visible ones first, and the last attached scale first."""
        scales = attached_scales(axes.dataset)
        addresses = scales[axis][::-1] if scales else []
        for address in addresses:
            if (found := self._dimensions.visible(axes.home, key_of(axes.file, address))) is not None:
                yield found
        for address in addresses:
            hidden = self._anywhere.get(key_of(axes.file, address))
            if hidden is not None and not self._is_name_taken(axes.home, hidden):
                yield hidden
        for address in addresses:
            if (nameless := self._from_dataset(axes, axis, address)) is not None:
                yield nameless

    def _from_dataset(self, axes: Axes, axis: int, address: int) -> Draft | None:
        """Return a dimension for an attached dataset that is not a scale, or that has no path from here.

        The latter is common behind an external link to a single variable.
        """
        dataset, path = axes.file.objects.get(address), axes.file.paths.get(address)
        if not isinstance(dataset, Dataset) or dataset.dataspace.rank != 1 or path is None:
            return None
        inside, space = self._dimensions.inside(axes.home), dataset.dataspace
        for found in inside.by_name.get(path.rpartition("/")[2], ()):
            if found.scale is dataset:
                return found
        draft = Draft(
            name=path.rpartition("/")[2],
            number=-1,
            extent=space.shape[0],
            unlimited=space.max_shape[0] is None or space.shape[0] == 0,
            home=axes.home,
            file=axes.file,
            scale=dataset,
            length=space.shape[0],
        )
        if not _fits(draft, axes, axis) or self._is_name_taken(axes.home, draft):
            return None
        draft.number = self._dimensions.take_number()
        inside.add(draft)
        return draft

    @cached_property
    def _anywhere(self) -> dict[Key, Draft]:
        """The dimensions of all groups by scale. If a scale has several names, the first counts."""
        insides = [self._dimensions.inside(place) for place in self._dimensions.places]
        return {key: found for inside in reversed(insides) for key, found in inside.by_key.items()}

    def _is_name_taken(self, place: GroupPath, dimension: Draft) -> bool:
        """Return whether another dimension with this name but a different length is visible."""
        return any(
            other.length != dimension.length
            for above in place.above()
            for other in self._dimensions.inside(above).by_name.get(dimension.name, ())
            if other is not dimension
        )

    def _phony(self, axes: Axes, axis: int) -> Draft:
        """Return a matching made-up dimension of the group, or a new one.

        A real dimension is not chosen by length alone.
        """
        space = axes.dataset.dataspace
        extent, unlimited = space.shape[axis], space.max_shape[axis] is None
        for found in self._dimensions.inside(axes.home).by_extent.get((extent, unlimited), ()):
            if found.scale is None and found not in axes.found:
                return found
        return self._new_phony(axes.home, extent, unlimited)

    def _new_phony(self, place: GroupPath, length: int, unlimited: bool) -> Draft:
        made = self._dimensions.add_phony(place, length, unlimited)
        made.length = length
        return made

    # --- one length for every name

    def separate(self, inside: Inside) -> None:
        """Rename dimensions if two in a group have the same name but different lengths, or if a variable has both."""
        owners = {found.name: found for found in reversed(inside.dimensions)}
        renamed: dict[Draft, Draft] = {}
        for axes in inside.variables:
            mine: dict[str, Draft] = {}
            for axis, found in enumerate(axes.found):
                assert found is not None
                owner = owners.setdefault(found.name, found)
                if owner.length == found.length and mine.setdefault(found.name, found) is found:
                    continue
                if found not in renamed:
                    renamed[found] = other = self._renamed(found, inside, owners)
                    self._say_renamed(axes, found, owner, other)
                axes.found[axis] = renamed[found]

    def _renamed(self, dimension: Draft, inside: Inside, owners: dict[str, Draft]) -> Draft:
        other = self._new_phony(inside.place, dimension.length, dimension.unlimited)
        while other.name in owners:
            other = self._new_phony(inside.place, dimension.length, dimension.unlimited)
        owners[other.name] = other
        return other

    def _say_renamed(self, axes: Axes, found: Draft, owner: Draft, other: Draft) -> None:
        what = f"dimension {found.home.join(found.name)!r} of length {found.length} is called {other.name!r} here"
        self._complain(
            axes, f"{what}, because {owner.home.join(owner.name)!r} of length {owner.length} has the same name"
        )

    def _complain(self, axes: Axes, message: str) -> None:
        self.problems.append(Problem(axes.home.join(axes.name), _KIND, message, _REMEDY))
