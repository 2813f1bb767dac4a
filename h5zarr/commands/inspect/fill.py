"""Fill values, decoded if their type does not need the heap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from h5zarr.commands.inspect.values import value_text
from h5zarr.errors import H5ZarrError, Unsupported
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.model import FillKind, FillValue
from h5zarr.hdf5.numpy_values import ValueReader
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from h5zarr.io.steps import run


def fill_array(fill: FillValue, datatype: Datatype) -> npt.NDArray[Any] | None:
    """Return the user-defined fill value, with the axes of an array type if it is one; None if there is none."""
    if fill.kind is not FillKind.USER_DEFINED:
        return None
    element = fill.element if fill.element is not None else bytes(datatype.nbytes)
    sizes = Sizes()
    try:
        values: npt.NDArray[Any] = run(ValueReader(sizes, GlobalHeap(sizes)).read(datatype, element, 1), _read_nothing)
    except H5ZarrError:
        return None
    return values.reshape(values.shape[1:])


def fill_text(fill: FillValue, datatype: Datatype, *, limit: int | None = 40) -> str:
    """Return the fill value as text with seven digits, or in hexadecimal if its type has no numeric form."""
    if fill.kind is FillKind.UNDEFINED:
        return "undefined"
    value = fill_array(fill, datatype)
    if value is None:
        return "0x" + (fill.element or b"").hex()
    if value.dtype.kind == "f" and value.ndim == 0:
        return min(str(value), f"{float(value):.7g}", key=len)
    return value_text(value, datatype, limit=limit)


def _read_nothing(spans: Sequence[Span]) -> Sequence[memoryview]:
    raise Unsupported("fill values in the heap")
