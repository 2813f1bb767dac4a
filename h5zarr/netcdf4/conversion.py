"""Convert elements of HDF5 types without a numpy equivalent to the type that readers see."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.numpy_values import decode_elements
from h5zarr.netcdf4.element_forms import interpret_element


def convert_elements(message: bytes, content: bytes) -> npt.NDArray[Any]:
    """Return the converted elements as a flat array. `message` is the datatype message of the stored elements."""
    datatype = decode_datatype(message)
    count, rest = divmod(len(content), datatype.nbytes)
    if rest:
        raise MalformedFile(f"{len(content)} bytes are not a whole number of elements of {datatype.nbytes} bytes")
    return decode_elements(datatype, content, count).astype(interpret_element(datatype).dtype)


def stored_nbytes(message: bytes) -> int:
    """Return the size of one stored element in bytes."""
    return decode_datatype(message).nbytes
