"""Unpack numbers exactly as xarray does: signed or unsigned, then `scale_factor` and `add_offset` in xarray's type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.meaning import Meaning
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.missing import FILL_VALUE

Values = npt.NDArray[Any]
PACKING = ("scale_factor", "add_offset")


def is_packed(meaning: Meaning) -> bool:
    """Return whether stored numbers are not the values that they mean."""
    return any(name in meaning.parameters for name in PACKING)


def unpack(values: Values, attributes: Mapping[str, Json], meaning: Meaning) -> Values:
    """Return the values that stored numbers mean. Missing data are not marked."""
    values = _with_sign(values.astype(values.dtype.newbyteorder("="), copy=False), attributes.get("_Unsigned"))
    if not is_packed(meaning):
        return values
    scale, offset = (meaning.parameters.get(name) for name in PACKING)
    if FILL_VALUE in meaning.parameters or "missing_value" in meaning.parameters:
        values = values.astype(_choose_type(values.dtype, scale, offset))  # xarray masks missing data first
    made = values.astype(_choose_type(values.dtype, scale, offset))
    if scale is not None:
        made *= scale
    if offset is not None:
        made += offset
    return made


def _with_sign(values: Values, unsigned: Json) -> Values:
    """Return integers as `_Unsigned` says. Spec: NUG, appendix A."""
    signs = {("i", "true"): "u", ("u", "false"): "i"}
    kind = signs.get((values.dtype.kind, str(unsigned)))
    return values if kind is None else values.view(f"{kind}{values.dtype.itemsize}")


def _choose_type(dtype: np.dtype[Any], scale: Any, offset: Any) -> np.dtype[Any]:
    """Return the type of unpacked values, as xarray's `_choose_float_dtype` chooses it."""
    if offset is None:
        return np.dtype(type(scale))
    if scale is not None and type(scale) is type(offset) and isinstance(scale, np.float32 | np.float64):
        is_long = dtype.itemsize == 4 and dtype.kind in "iu"
        return np.dtype(np.float64 if is_long else type(scale))
    return np.dtype(np.float64)
