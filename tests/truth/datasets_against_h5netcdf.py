"""Files that netCDF4 does not open, next to what h5netcdf shows of them: shapes, real dimensions, and numbers.

It makes up other names for dimensions, shows text, records and attributes in other forms, and a null dataspace as one
element: those are not compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from h5zarr.commands.translate.translation import Translation
from h5zarr.zarr_model.hierarchy import GroupNode
from tests.engine.opening import Opened
from tests.truth.datasets_against_netcdf import Agreement
from tests.truth.same import native, same

MOST_VALUES = 1_000
RAW = {"mask_and_scale": False, "decode_times": False, "decode_coords": False}


def compare_loosely(path: Path, translation: Translation, groups: Sequence[str] | None = None) -> Agreement:
    """Return how the variables that both show agree, of all groups, or of some, that h5netcdf opens."""
    found, nodes = Agreement(), translation.hierarchy.nodes
    if groups is None:
        groups = [place for place, node in nodes.items() if isinstance(node, GroupNode)]
    if not groups or not h5py.is_hdf5(path):
        return found
    opened = Opened(translation, str(path))
    for group in groups:
        theirs = _open(path, group)
        if theirs is None:
            continue
        ours = opened.open(group, **RAW, decode_timedelta=False)
        for name in ours.variables.keys() & theirs.variables.keys():
            mine, their = ours.variables[name], theirs.variables[name]
            if their.dtype.kind in "iuf" and mine.dims != (f"{name}_null",):
                found.variables += 1
                found.differences += [f"{group.rstrip('/')}/{name}: {what}" for what in _differences(mine, their)]
    return found


def _open(path: Path, group: str) -> xr.Dataset | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options: dict[str, Any] = {"engine": "h5netcdf", "phony_dims": "access", "decode_timedelta": False, **RAW}
            return xr.open_dataset(path, group=group, **options)
    except Exception:
        return None


def _differences(mine: xr.Variable, their: xr.Variable) -> list[str]:
    if mine.shape != their.shape:
        return [f"shape {mine.shape} is {their.shape}"]
    found = [
        f"dimension {our_name!r} is {their_name!r}"
        for our_name, their_name in zip(mine.dims, their.dims, strict=True)
        if our_name != their_name and "phony_dim" not in f"{our_name}{their_name}"
    ]
    part = tuple(slice(0, max(1, int(MOST_VALUES ** (1 / mine.ndim)))) for _ in mine.shape)
    try:
        values = np.asarray(their[part].values)
    except OSError:
        return found  # for want of a filter
    shown = np.asarray(mine[part].values)
    is_same = same(shown.astype(native(shown.dtype)), values.astype(native(values.dtype)))
    return found if is_same else [*found, f"values {shown.reshape(-1)[:3]!r} are {values.reshape(-1)[:3]!r}"]
