"""Give the groups and variables of a scanned file their netCDF names and dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.hdf5.datatype import FixedPoint, Padding, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, H5File
from h5zarr.netcdf4.dimensions import Axes, Dimensions, Draft, Inside
from h5zarr.netcdf4.element_forms import is_boolean, is_complex
from h5zarr.netcdf4.hidden import visible_on_dataset, visible_on_group
from h5zarr.netcdf4.known_types import KnownTypes
from h5zarr.netcdf4.links import Others
from h5zarr.netcdf4.named_file import Dimension, NamedGroup, NamedVariable, Naming
from h5zarr.netcdf4.repair import settle
from h5zarr.netcdf4.walk import GroupPath, walk
from h5zarr.tree import NO_NOTES, AttributeNotes

_NO_OTHERS: Others = {}
_UNREMARKABLE = (FixedPoint, VariableLengthString)  # types of most attributes, which need no notes


def interpret_names(file: H5File, others: Others = _NO_OTHERS) -> Naming:
    """Return the groups and variables of a file with their netCDF names, and a dimension for each axis.

    `others` are the files that external links refer to, by the file with the link and the file name in the link.
    """
    places, problems = walk(file, others)
    dimensions = Dimensions(places)
    problems += settle(dimensions)
    groups = tuple([_group(place, dimensions) for place in places])
    return Naming(groups, tuple(problems))


def _group(place: GroupPath, dimensions: Dimensions) -> NamedGroup:
    is_root, inside = place.parent is None, dimensions.inside(place)
    shown = {one.name: one for one in map(dimensions.shown, sorted(inside.dimensions, key=_number))}
    attributes = visible_on_group(place.group.attributes, is_root=is_root)
    return NamedGroup(
        path=place.path,
        attributes=attributes,
        variables=_variables(place, inside, dimensions.types),
        dimensions=tuple([_dimension(found) for found in shown.values()]),
        notes=_notes(attributes, dimensions.types),
    )


def _number(dimension: Draft) -> int:
    return dimension.number


def _variables(place: GroupPath, inside: Inside, types: KnownTypes) -> tuple[NamedVariable, ...]:
    """Return the variables of a group.

    The prefix that netCDF puts before some names is removed, unless the name is taken.
    """
    taken = {child.path.rpartition("/")[2] for child in place.children}
    taken |= {axes.name for axes in inside.variables if axes.name == axes.link_name}
    return tuple(_variable(axes, place, taken, types) for axes in inside.variables)


def _variable(axes: Axes, place: GroupPath, taken: set[str], types: KnownTypes) -> NamedVariable:
    prefixed = axes.name != axes.link_name
    name = axes.link_name if prefixed and axes.name in taken else axes.name
    found = [one for one in axes.found if one is not None]
    attributes = visible_on_dataset(axes.dataset)
    return NamedVariable(
        path=place.join(name),
        file=axes.file,
        dataset=axes.dataset,
        dimensions=tuple([one.name for one in found]),
        shape=tuple([one.length for one in found]),
        attributes=attributes,
        notes=_notes(attributes, types),
        type_name=axes.type_name,
    )


def _notes(attributes: Mapping[str, Attribute], types: KnownTypes) -> AttributeNotes:
    """Return which attributes netCDF-C omits because it does not know their types, and which were padded.

    Booleans and complex numbers are shown although netCDF-C omits them, as h5netcdf does.
    """
    foreign, padded = [], []
    for name, one in attributes.items():
        datatype = one.datatype
        if isinstance(datatype, _UNREMARKABLE):
            continue
        if isinstance(datatype, String):
            if datatype.padding is Padding.SPACE_PADDED:
                padded.append((name, datatype.nbytes))
        elif not types.knows(datatype) and not is_boolean(datatype) and not is_complex(datatype):
            foreign.append(name)
    if not foreign and not padded:
        return NO_NOTES
    return AttributeNotes(foreign=tuple(foreign), padded=tuple(padded))


def _dimension(draft: Draft) -> Dimension:
    return Dimension(
        path=draft.home.join(draft.name),
        length=draft.length,
        unlimited=draft.unlimited,
        dataset=draft.scale,
        has_variable=draft.has_variable,
    )
