"""Determine whether a scan of one group shows it as a scan of the whole file does.

Usually it does: a variable depends on its own group and on the dimensions of the groups above. But a link may lead
anywhere, netCDF-C numbers made-up names and unknown types through the whole file, and an unlimited dimension is as long
as the longest variable that uses it. Then the whole file must be scanned.

One difference is not looked for, because that would take a scan of the whole file. If two dimensions have the same
number, as in files that were assembled from others or have further names for a dimension, netCDF-C shows the name of
the last one for both. In a group that is scanned alone, each has its own name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from h5zarr.hdf5.datatype import Datatype, FixedPoint, FloatingPoint, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, Dataset, Group, H5File, HardLink
from h5zarr.hdf5.scope import Scope
from h5zarr.netcdf4.dimensions import Axes, Dimensions, Draft
from h5zarr.netcdf4.hidden import visible_on_dataset, visible_on_group
from h5zarr.netcdf4.scales import users_of
from h5zarr.netcdf4.walk import GroupPath, walk

_USUAL_FLOATS = (4, 8)


def is_certain(file: H5File, scope: Scope) -> bool:
    """Return whether a group, and all below it if the scope is deep, is sure to look as in the whole file."""
    if not file.unscanned and scope.is_deep and not scope.names:
        return True
    if not _is_tree(file):
        return False
    places, problems = walk(file, {})
    inside = [place for place in places if _is_within(place, scope)]
    if not inside or problems:
        return False
    dimensions = Dimensions(places)
    dimensions.match()
    return all(_is_group_certain(dimensions, place, scope) for place in inside)


def _is_tree(file: H5File) -> bool:
    """Return whether the scanned objects have one name each."""
    groups = [one for one in file.objects.values() if isinstance(one, Group)]
    links = [link for group in groups for link in group.links.values()]
    counts = Counter(link.address for link in links if isinstance(link, HardLink))
    if len(counts) < len(links) or file.root.address in counts:
        return False
    named = (one for one in file.objects.values() if isinstance(one, Group | Dataset))
    return all(one.notes.reference_count <= 1 for one in named)


def _is_within(place: GroupPath, scope: Scope) -> bool:
    """Return whether a group is the one that was asked for, or below it."""
    if place.path == scope.path:
        return place.group.address not in place.file.unscanned
    return scope.is_deep and place.path.startswith(f"{scope.path.rstrip('/')}/")


def _is_group_certain(dimensions: Dimensions, place: GroupPath, scope: Scope) -> bool:
    inside = dimensions.inside(place)
    if not _are_usual(visible_on_group(place.group.attributes, is_root=place.parent is None)):
        return False
    if any(not isinstance(member.target, Dataset) for member in place.members):
        return False
    used = {id(one): one for axes in inside.variables for one in axes.found if one is not None}
    known = [*used.values(), *(one for one in inside.dimensions if id(one) not in used)]
    if len({one.name for one in known}) < len(known):
        return False
    if any(one.unlimited and not _has_all_users(one, scope) for one in known):
        return False
    return all(_is_variable_certain(axes) for axes in inside.variables)


def _has_all_users(dimension: Draft, scope: Scope) -> bool:
    """Return whether all variables that may use a dimension were scanned."""
    home = dimension.home
    if not _is_within(home, scope) or (home.children and not scope.is_deep):
        return False
    return dimension.scale is None or users_of(dimension.scale) <= dimension.file.objects.keys()


def _is_variable_certain(axes: Axes) -> bool:
    dataset = axes.dataset
    if not _is_usual(dataset.datatype) or not _are_usual(visible_on_dataset(dataset)):
        return False
    for found, extent in zip(axes.found, dataset.dataspace.shape, strict=True):
        if found is None or found.scale is None or not (found.unlimited or found.extent == extent):
            return False
    return True


def _are_usual(attributes: Mapping[str, Attribute]) -> bool:
    return all(_is_usual(one.datatype) for one in attributes.values())


def _is_usual(datatype: Datatype) -> bool:
    """Return whether netCDF-C knows a type before it reads a file."""
    if isinstance(datatype, FloatingPoint):
        return datatype.nbytes in _USUAL_FLOATS
    return isinstance(datatype, FixedPoint | String | VariableLengthString)
