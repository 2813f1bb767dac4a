"""Elements of an HDF5 type that numpy has no type for, as the type that readers see."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.values import decode_elements
from h5zarr.netcdf4.elements import interpret_element


def convert_elements(message: bytes, content: bytes) -> npt.NDArray[Any]:
    """Return elements of the type that is stated by a datatype message, in a row, converted."""
    datatype = decode_datatype(message)
    count, rest = divmod(len(content), datatype.nbytes)
    if rest:
        raise MalformedFile(f"{len(content)} bytes are no whole number of elements of {datatype.nbytes} bytes")
    return decode_elements(datatype, content, count).astype(interpret_element(datatype).dtype)


def stored_nbytes(message: bytes) -> int:
    """Return how many bytes one such element takes in the file."""
    return decode_datatype(message).nbytes
