"""Fill values: the value of unwritten space, inside a dataset and beyond its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.hdf5.model import Dataset, FillKind
from h5zarr.hdf5.numpy_values import decode_elements
from h5zarr.netcdf4.element_forms import TEXT, ElementForm

# The values of netCDF's NC_FILL_* constants by type.
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
    """Return one element, the value of unallocated space, or None for zeros.

    Raises Unrepresentable if the elements of an array type have different fill values.
    """
    element = dataset.fill.unwritten
    if element is None or form.dtype == TEXT or not any(element):
        return None
    if form.is_plain:
        fills = np.frombuffer(element, form.dtype)
    else:
        fills = decode_elements(dataset.datatype, element, 1).astype(form.dtype).reshape(-1)
    if any(one.tobytes() != fills[0].tobytes() for one in fills[1:]):
        raise Unrepresentable("the fill value is an array, but Zarr supports only one element")
    return fills[:1].reshape(())


def fill_beyond(dataset: Dataset, form: ElementForm) -> npt.NDArray[Any] | None:
    """Return the value that netCDF shows where a dataset is shorter than its unlimited dimension. None means zeros.

    This is the dataset's own fill value, or netCDF's default for its type.
    """
    if dataset.fill.kind is FillKind.USER_DEFINED:
        return interpret_fill(dataset, form)
    default = _NETCDF_FILLS.get(form.dtype.str[1:])
    return None if default is None else np.array(default, form.dtype)
