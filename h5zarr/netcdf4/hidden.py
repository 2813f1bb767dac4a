"""Which attributes netCDF keeps from its users: those by which HDF5 and netCDF note dimensions, and their own marks.

NetCDF-C hides them by name alone. Here a name is hidden only where it plays its part: on a dimension scale CLASS and
NAME are notes about the scale, but elsewhere they are what somebody wrote about an image or a table.
"""

from __future__ import annotations

from collections.abc import Mapping

from h5zarr.hdf5.datatype import Compound, FixedPoint, Reference, VariableLengthSequence
from h5zarr.hdf5.model import Attribute, Dataset
from h5zarr.netcdf4.scales import NUMBER, NUMBERS, is_scale

_OF_SCALES = frozenset({"CLASS", "NAME"})
_OF_NUMBERS = frozenset({NUMBER, NUMBERS})
_OF_REFERENCES = frozenset({"DIMENSION_LIST", "REFERENCE_LIST"})
# Other forms of Zarr state shapes, filters and dimensions in these; in a Zarr array of ours they would be believed.
_OF_ZARR = frozenset({"_ARRAY_DIMENSIONS", "_Codecs", "_nczarr_array", "_nczarr_attr", "_nczarr_group"})
_OF_ZARR_ROOT = frozenset({"_nczarr_superblock"})
_OF_ROOT = frozenset({"_Format", "_IsNetcdf4", "_NCProperties", "_SuperblockVersion", "_nc3_strict"})
_ON_DATASETS = _OF_SCALES | _OF_NUMBERS | _OF_REFERENCES | _OF_ZARR
_ON_GROUPS = _OF_ROOT | _OF_ZARR | _OF_ZARR_ROOT


def visible_on_dataset(dataset: Dataset) -> Mapping[str, Attribute]:
    """Return the attributes of a variable that a netCDF user sees, in the file's order."""
    attributes = _in_order(dataset.attributes)
    if _ON_DATASETS.isdisjoint(attributes):
        return attributes
    return {name: one for name, one in attributes.items() if name not in _ON_DATASETS or not _is_note(one, dataset)}


def visible_on_group(attributes: Mapping[str, Attribute], *, is_root: bool) -> Mapping[str, Attribute]:
    """Return the attributes of a group that a netCDF user sees, in the file's order."""
    attributes = _in_order(attributes)
    if _ON_GROUPS.isdisjoint(attributes):
        return attributes
    hidden = _ON_GROUPS if is_root else _OF_ZARR
    return {name: one for name, one in attributes.items() if name not in hidden}


def _in_order(attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """Return attributes in the order of their creation, where the file tracks that: a full header loses it."""
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
    if attribute.name in _OF_SCALES:
        return is_scale(dataset)
    if attribute.name in _OF_NUMBERS:
        return isinstance(attribute.datatype, FixedPoint)
    if attribute.name in _OF_REFERENCES:
        return _refers(attribute)
    return True


def _refers(attribute: Attribute) -> bool:
    """True for sequences of references (which scales) and for pairs of a reference and an axis (whose scale)."""
    match attribute.datatype:
        case VariableLengthSequence(base=Reference()):
            return True
        case Compound(members=members):
            return any(isinstance(member.datatype, Reference) for member in members)
    return False
