"""What xarray shows of a file, whatever engine opens it, in a form that can be compared and sent to another process."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

MOST_VALUES = 2_500
RAW = {"mask_and_scale": False, "decode_times": False}


@dataclass
class Shown:
    """A variable: `values` may be an error instead."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    values: Any
    attrs: dict[str, Any]


@dataclass
class ShownGroup:
    variables: dict[str, Shown]
    coordinates: set[str]
    attrs: dict[str, Any]


def show(dataset: xr.Dataset) -> ShownGroup:
    """Return all that xarray shows of a group."""
    return ShownGroup(
        variables={str(name): _show(dataset[name].variable) for name in dataset.variables},
        coordinates={str(name) for name in dataset.coords},
        attrs=dict(dataset.attrs),
    )


def _show(variable: xr.Variable) -> Shown:
    values: Any
    try:
        part = variable
        if variable.size > MOST_VALUES:
            side = max(1, int(MOST_VALUES ** (1 / variable.ndim)))
            part = variable[tuple(slice(0, side) for _ in variable.shape)]
        values = np.asarray(part.values)
    except Exception as error:
        values = f"{type(error).__name__}: {error}"
    return Shown(tuple(map(str, variable.dims)), variable.shape, variable.dtype, values, dict(variable.attrs))


def show_both(open_group: Any) -> tuple[ShownGroup | str, ShownGroup | str]:
    """Return what is shown raw and decoded; or, for either, why there is nothing.

    `open_group` takes xarray's options.
    """
    raw = _attempt(open_group, RAW)
    if isinstance(raw, ShownGroup) and not raw.variables:
        return raw, raw
    return raw, _attempt(open_group, {})


def _attempt(open_group: Any, options: dict[str, Any]) -> ShownGroup | str:
    try:
        with warnings.catch_warnings():
            # About what stands in the file, whichever engine opens it.
            warnings.simplefilter("ignore", xr.SerializationWarning)
            warnings.filterwarnings("ignore", "Duplicate dimension names present")
            return show(open_group(decode_timedelta=False, **options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
