"""Hide the attributes in which HDF5 and netCDF store dimensions and internal notes.

NetCDF-C hides them by name alone. Here an attribute is hidden only where it has its special meaning. On a dimension
scale, CLASS and NAME describe the scale. Elsewhere they are ordinary attributes, for example of an image or a table.
"""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.hdf5.datatype import Compound, FixedPoint, Reference, VariableLengthSequence
from h5zarr.hdf5.model import Attribute, Dataset
from h5zarr.netcdf4.scales import is_scale
from h5zarr.netcdf_names import OF_NUMBERS, OF_REFERENCES, OF_SCALES, OF_ZARR, ON_DATASETS, ON_GROUPS


def visible_on_dataset(dataset: Dataset) -> Mapping[str, Attribute]:
    """Return the attributes of a variable that netCDF users see, in file order."""
    attributes = _in_order(dataset.attributes)
    if ON_DATASETS.isdisjoint(attributes):
        return attributes
    return {name: one for name, one in attributes.items() if name not in ON_DATASETS or not _is_note(one, dataset)}


def visible_on_group(attributes: Mapping[str, Attribute], *, is_root: bool) -> Mapping[str, Attribute]:
    """Return the attributes of a group that netCDF users see, in file order."""
    attributes = _in_order(attributes)
    if ON_GROUPS.isdisjoint(attributes):
        return attributes
    hidden = ON_GROUPS if is_root else OF_ZARR
    return {name: one for name, one in attributes.items() if name not in hidden}


def _in_order(attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Sort attributes by creation order if the file tracks it. Object headers do not always keep this order."""
    orders = [one.creation_order for one in attributes.values()]
    if None in orders:
        return attributes
    ordered = sorted(orders)  # type: ignore[type-var]
    if orders == ordered:
        return attributes
    return dict(sorted(attributes.items(), key=_creation_order))


def _creation_order(item: tuple[str, Attribute]) -> int:
    return item[1].creation_order or 0


def _is_note(attribute: Attribute, dataset: Dataset) -> bool:
    if attribute.name in OF_SCALES:
        return is_scale(dataset)
    if attribute.name in OF_NUMBERS:
        return isinstance(attribute.datatype, FixedPoint)
    if attribute.name in OF_REFERENCES:
        return _refers(attribute)
    return True


def _refers(attribute: Attribute) -> bool:
    """Return whether an attribute holds references to scales, or pairs of a reference and an axis."""
    match attribute.datatype:
        case VariableLengthSequence(base=Reference()):
            return True
        case Compound(members=members):
            return any(isinstance(member.datatype, Reference) for member in members)
    return False
