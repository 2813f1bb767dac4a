"""Convert the elements of a Zarr array to those that netCDF4 returns. Their type is known before any are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.tree import StoredForm
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import BYTES, OBJECT, decode_data_type
from h5zarr.zarr_model.hierarchy import ArrayNode

_TEXT = np.dtype("O", metadata={"element_type": str})  # xarray's mark for variable-length text


class Change(Enum):
    """How values are converted."""

    CAST = "to another numeric type"
    MEMBERS = "records to records with fewer members"
    FIXED_TEXT = "bytes to text"
    TEXT = "text to objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How elements are shown. `dtype` is the type of the values, `in_encoding` the type on disk that xarray reports.

    Text of fixed length is padded with `padding` to `nbytes`.
    """

    dtype: np.dtype[Any]
    in_encoding: Any
    change: Change = Change.CAST
    padding: str = ""
    nbytes: int = 0


def choose_presentation(array: ArrayNode, form: StoredForm, *, is_classic: bool = False) -> Presentation:
    """Return how netCDF4 shows the elements of an array that the file stores in `form`.

    It shows numbers of HDF5 files in the byte order of the file, and all others in that of the machine. Booleans and
    complex numbers, which netCDF lacks, are shown as such, as h5netcdf does.
    """
    dtype = stored_dtype(array)
    if is_classic:
        dtype = dtype.newbyteorder("=")
    number = dtype if form.number is None else _check_number(np.dtype(form.number), dtype)
    if form.enumeration is not None:
        return _enumeration(number, form)
    if form.number is not None:
        return _plain(number)
    if array.data_type == BYTES:
        return _plain(dtype)
    if dtype.kind == "O":
        return Presentation(dtype=_TEXT, in_encoding=str, change=Change.TEXT)
    if dtype.kind == "S" and dtype.itemsize > 1:
        return Presentation(
            dtype=_TEXT, in_encoding=str, change=Change.FIXED_TEXT, padding=form.padding, nbytes=dtype.itemsize
        )
    if dtype.names is not None and dtype.fields is not None:
        fields = {name: dtype.fields[name][0] for name in form.members or dtype.names}
        return _plain(_aligned(fields), Change.MEMBERS)
    return _plain(dtype)


def _check_number(recorded: np.dtype[Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the recorded type. Integers may have any integer type; other numbers may only differ in byte order."""
    if recorded.newbyteorder("=") != dtype.newbyteorder("=") and not (recorded.kind in "biu" and dtype.kind in "biu"):
        raise MalformedFile(f"the record says {recorded}, but the values are {dtype}")
    return recorded


def _plain(dtype: np.dtype[Any], change: Change = Change.CAST) -> Presentation:
    return Presentation(dtype=dtype, in_encoding=dtype, change=change)


def _enumeration(dtype: np.dtype[Any], form: StoredForm) -> Presentation:
    assert form.enumeration is not None
    native = dtype.newbyteorder("=")
    notes = {"enum": dict(form.enumeration.members), "enum_name": form.enumeration.name}
    return Presentation(dtype=native, in_encoding=np.dtype(native, metadata=notes))


def _aligned(fields: Mapping[str, np.dtype[Any]]) -> np.dtype[Any]:
    """Return a record type aligned like a C struct, as netCDF4 requests records."""
    formats = [one.newbyteorder("=") for one in fields.values()]
    return np.dtype({"names": list(fields), "formats": formats}, align=True)


def present(values: npt.NDArray[Any], presentation: Presentation) -> npt.NDArray[Any]:
    """Return values as netCDF4 returns them. A single text is a numpy string, as in netCDF4, not an object."""
    dtype = presentation.dtype
    match presentation.change:
        case Change.CAST:
            return _cast(values, dtype)
        case Change.MEMBERS:
            shown = np.zeros(values.shape, dtype)
            for name in dtype.names or ():
                shown[name] = values[name]
            return shown
        case Change.FIXED_TEXT:
            texts = [_text(one, presentation) for one in values.reshape(-1).tolist()]
        case Change.TEXT:
            texts = [str(one) for one in values.reshape(-1).tolist()]
    if values.ndim == 0:
        return np.asarray(texts[0])
    objects = np.empty(len(texts), object)
    objects[:] = texts
    return objects.reshape(values.shape)


def _cast(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the same values in another type. Only a wrong record can name a type that is too small."""
    shown = values.astype(dtype, copy=False)
    if values.dtype.kind in "iu" and not np.can_cast(values.dtype, dtype) and not np.array_equal(shown, values):
        raise MalformedFile(f"the record says {dtype}, which is too small for the values")
    return shown


def _text(stored: bytes, presentation: Presentation) -> str:
    """Return the text before the first NUL. Text that is not UTF-8 is read as Latin-1, where netCDF4 fails."""
    if presentation.padding and b"\0" not in stored:
        stored = stored.ljust(presentation.nbytes, presentation.padding.encode())
    stored = stored.partition(b"\0")[0]
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")


def stored_dtype(array: ArrayNode) -> np.dtype[Any]:
    """Return numpy's type for the elements of a Zarr array, in the byte order of its chunks."""
    if array.data_type == BYTES:
        return OBJECT
    return decode_data_type(array.data_type, byte_order(array.codecs))
