"""All that xarray shows of a group, with every type, in a form that another process can send."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

MOST_VALUES = 2_500
RAW = {"mask_and_scale": False, "decode_times": False, "concat_characters": False, "decode_coords": False}


@dataclass
class Shown:
    """A variable. `dtype` is what was announced before `values`, which may be an error instead, were read."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Any
    values: Any
    attrs: dict[str, Any]
    encoding: dict[str, Any]


@dataclass
class ShownGroup:
    variables: dict[str, Shown]
    coordinates: set[str]
    attrs: dict[str, Any]
    encoding: dict[str, Any]


def show(dataset: xr.Dataset) -> ShownGroup:
    """Return all that is shown of a group, values of large variables in part."""
    return ShownGroup(
        variables={str(name): _show(one) for name, one in dataset.variables.items()},
        coordinates={str(name) for name in dataset.coords},
        attrs={name: frozen(value) for name, value in dataset.attrs.items()},
        encoding={name: frozen(value) for name, value in dataset.encoding.items()},
    )


def frozen(value: Any) -> Any:
    """Return a value with its type, and what no pickle or comparison keeps: notes on a numpy type."""
    if isinstance(value, np.dtype):
        return "dtype", str(value), value.metadata and sorted(value.metadata.items(), key=str)
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, frozen(value.dtype), value.shape, value
    if isinstance(value, dict):
        return "dict", {name: frozen(one) for name, one in value.items()}
    return type(value).__name__, value


def _show(variable: xr.Variable) -> Shown:
    values: Any
    dtype = frozen(variable.dtype)
    try:
        part = variable
        if variable.size > MOST_VALUES:
            side = max(1, int(MOST_VALUES ** (1 / variable.ndim)))
            part = variable[tuple(slice(0, side) for _ in variable.shape)]
        values = np.asarray(part.values)
    except Exception as error:
        values = f"{type(error).__name__}: {error}"
    return Shown(
        dims=tuple(map(str, variable.dims)),
        shape=variable.shape,
        dtype=dtype,
        values=values,
        attrs={name: frozen(value) for name, value in variable.attrs.items()},
        encoding={name: frozen(value) for name, value in variable.encoding.items()},
    )


def show_both(open_group: Callable[..., xr.Dataset]) -> tuple[ShownGroup | str, ShownGroup | str]:
    """Return what is shown raw and decoded; or, for either, why there is nothing.

    `open_group` takes xarray's options.
    """
    return _attempt(open_group, RAW), _attempt(open_group, {})


def _attempt(open_group: Callable[..., xr.Dataset], options: dict[str, Any]) -> ShownGroup | str:
    try:
        with warnings.catch_warnings():
            # About what stands in the file, whichever engine opens it.
            warnings.simplefilter("ignore", xr.SerializationWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("ignore", "Duplicate dimension names present")
            return show(open_group(decode_timedelta=False, **options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
