"""Read dimension information from datasets: HDF5 dimension scales and the additional notes of netCDF-4."""

from __future__ import annotations

from typing import TypeAlias

from h5zarr.hdf5.datatype import Padding, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, Dataset, H5File
from h5zarr.hdf5.object_references import ObjectReference
from h5zarr.netcdf_names import NUMBER, NUMBERS

NOT_COORDINATE = "_nc4_non_coord_"  # prefix of a variable that has the name of a dimension but does not describe it
_END_OF_NUMBERS = 1 << 30  # netCDF keeps a list indexed by number, and would not open a file with such a number
_SCALE = b"DIMENSION_SCALE"
_WITHOUT_VARIABLE = b"This is a netCDF dimension but not a netCDF variable."

Key: TypeAlias = tuple[int, int]  # identifies a dataset independent of its links: its file, and its address there


def key_of(file: H5File, address: int) -> Key:
    """Return a key that identifies an object among several files."""
    return id(file), address


def is_scale(dataset: Dataset) -> bool:
    """Return whether the HDF5 library treats a dataset as a dimension scale.

    Its CLASS must be "DIMENSION_SCALE", NUL-terminated in 16 bytes. HDF5 2.2 also accepts a variable-length string,
    while 2.0 does not. A scale without an axis has no length, and netCDF cannot read it. Here it does not count as a
    dimension.
    """
    attribute = dataset.attributes.get("CLASS")
    if attribute is None or not dataset.dataspace.shape:
        return False
    datatype = attribute.datatype
    if isinstance(datatype, String):
        if datatype.nbytes != len(_SCALE) + 1 or datatype.padding is not Padding.NULL_TERMINATED:
            return False
    elif not isinstance(datatype, VariableLengthString):
        return False
    return _first_bytes(attribute) == _SCALE


def is_without_variable(scale: Dataset) -> bool:
    """Return whether a scale is only a dimension, as stated in its NAME."""
    attribute = scale.attributes.get("NAME")
    if attribute is None or not isinstance(attribute.datatype, String):
        return False
    return _first_bytes(attribute).startswith(_WITHOUT_VARIABLE)


def number_of(scale: Dataset) -> int | None:
    """Return the number that netCDF gave a dimension, or None."""
    numbers = _integers(scale, NUMBER)
    return numbers[0] if numbers and 0 <= numbers[0] < _END_OF_NUMBERS else None


def numbers_of(dataset: Dataset) -> tuple[int, ...] | None:
    """Return the numbers of a variable's dimensions, one per axis, or None if netCDF did not store them."""
    numbers = _integers(dataset, NUMBERS)
    return numbers if numbers is not None and len(numbers) == dataset.dataspace.rank else None


def attached_scales(dataset: Dataset) -> list[list[int]] | None:
    """Return the addresses of each axis's scales in order of attachment, or None if there is no list."""
    attribute = dataset.attributes.get("DIMENSION_LIST")
    if attribute is None or attribute.value is None or attribute.value.dtype.kind != "O":
        return None
    axes = attribute.value.reshape(-1)
    if len(axes) != dataset.dataspace.rank:
        return None
    return [_addresses(scales) for scales in axes]


def users_of(scale: Dataset) -> set[int]:
    """Return the addresses of the datasets that say that they use a scale. Some writers do not record them."""
    attribute = scale.attributes.get("REFERENCE_LIST")
    if attribute is None or attribute.value is None or not attribute.value.dtype.names:
        return set()
    rows = attribute.value[attribute.value.dtype.names[0]].reshape(-1).tolist()
    return {one.address for one in rows if isinstance(one, ObjectReference) and one.address is not None}


def _integers(dataset: Dataset, name: str) -> tuple[int, ...] | None:
    attribute = dataset.attributes.get(name)
    if attribute is None or attribute.value is None or attribute.value.dtype.kind not in "iu":
        return None
    return tuple(attribute.value.reshape(-1).tolist())


def _addresses(scales: object) -> list[int]:
    """Return the addresses that the references of one axis point to. An axis whose list was never written has none."""
    found = scales.reshape(-1).tolist() if hasattr(scales, "reshape") else [scales]
    return [one.address for one in found if isinstance(one, ObjectReference) and one.address is not None]


def _first_bytes(attribute: Attribute) -> bytes:
    if attribute.value is None or not attribute.value.size:
        return b""
    return bytes(attribute.value.reshape(-1)[0]).partition(b"\0")[0]
