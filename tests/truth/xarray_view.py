"""What xarray shows of a group, with every type, in a form that can be sent to another process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

MOST_VALUES = 2_500
VIEWS: dict[str, dict[str, Any]] = {
    "raw": {"mask_and_scale": False, "decode_times": False, "concat_characters": False, "decode_coords": False},
    "decoded": {},
    "joined": {"mask_and_scale": False, "decode_times": False},  # raw, but characters are joined to text
}


@dataclass
class Shown:
    """A variable. `dtype` is what xarray states before values are read. `values` may be the message of an error."""

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


def show_views(open_group: Callable[..., xr.Dataset]) -> dict[str, ShownGroup | str]:
    """Return a group in each view: all that xarray shows, or why it does not open. `open_group` takes xarray's options.

    Joined characters are shown only if there are characters.
    """
    shown = {view: show(open_group, view) for view in ("raw", "decoded")}
    raw = shown["raw"]
    if isinstance(raw, ShownGroup) and any(one.dtype[1] == "|S1" for one in raw.variables.values()):
        shown["joined"] = show(open_group, "joined")
    return shown


def show(open_group: Callable[..., xr.Dataset], view: str) -> ShownGroup | str:
    try:
        with warnings.catch_warnings():
            # These concern the content of the file, whichever engine opens it.
            warnings.simplefilter("ignore", xr.SerializationWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("ignore", "Duplicate dimension names present")
            dataset = open_group(decode_timedelta=False, **VIEWS[view])
            return ShownGroup(
                variables={str(name): _show_variable(one) for name, one in dataset.variables.items()},
                coordinates={str(name) for name in dataset.coords},
                attrs={name: frozen(value) for name, value in dataset.attrs.items()},
                encoding={name: frozen(value) for name, value in dataset.encoding.items()},
            )
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def frozen(value: Any) -> Any:
    """Return a value with its type and the metadata of its numpy type, which pickling and comparing would lose."""
    if isinstance(value, np.dtype):
        return "dtype", str(value), value.metadata and sorted(value.metadata.items(), key=str)
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, frozen(value.dtype), value.shape, value
    if isinstance(value, dict):
        return "dict", {name: frozen(one) for name, one in value.items()}
    return type(value).__name__, value


def _show_variable(variable: xr.Variable) -> Shown:
    dtype, values = frozen(variable.dtype), None
    try:
        side = max(1, int(MOST_VALUES ** (1 / max(1, variable.ndim))))
        is_large = variable.size > MOST_VALUES
        values = np.asarray((variable[(slice(0, side),) * variable.ndim] if is_large else variable).values)
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
