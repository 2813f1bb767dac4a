"""Fill values: what unwritten space reads as, inside a dataset and beyond its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.hdf5.model import Dataset, FillKind
from h5zarr.hdf5.values import decode_elements
from h5zarr.netcdf4.elements import TEXT, ElementForm

# The values of netCDF's NC_FILL_* for each type.
_NETCDF_FILLS: dict[str, Any] = {
    "i1": -127,
    "u1": 255,
    "i2": -32767,
    "u2": 65535,
    "i4": -2147483647,
    "u4": 4294967295,
    "i8": -9223372036854775806,
    "u8": 18446744073709551614,
    "f4": 9.969209968386869e36,
    "f8": 9.969209968386869e36,
}


def interpret_fill(dataset: Dataset, form: ElementForm) -> npt.NDArray[Any] | None:
    """Return one element, what unallocated space reads as; None where that is zeros.

    Raises Unrepresentable where the elements of an array type would need a fill value each.
    """
    element = dataset.fill.unwritten
    if element is None or form.dtype == TEXT or not any(element):
        return None
    if form.is_plain:
        fills = np.frombuffer(element, form.dtype)
    else:
        fills = decode_elements(dataset.datatype, element, 1).astype(form.dtype).reshape(-1)
    if any(one.tobytes() != fills[0].tobytes() for one in fills[1:]):
        raise Unrepresentable("the fill value is an array, and Zarr's is one element")
    return fills[:1].reshape(())


def fill_beyond(dataset: Dataset, form: ElementForm) -> npt.NDArray[Any] | None:
    """Return what netCDF shows where a dataset is shorter than its unlimited dimension; None for zeros.

    That is the dataset's own fill value, and netCDF's default for its type where it has none.
    """
    if dataset.fill.kind is FillKind.USER_DEFINED:
        return interpret_fill(dataset, form)
    default = _NETCDF_FILLS.get(form.dtype.str[1:])
    return None if default is None else np.array(default, form.dtype)
