"""Small archives: one dataset, written as several files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from h5zarr.commands.combine.combine import combine

WIDTH = 600  # wide enough that a file is not inlined
DAYS = "days since 2000-01-01"


def write_days(path: Path, days: Sequence[float], *, x0: int = 0, units: str = DAYS, **how: Any) -> Path:
    """Write v(time, x) = 10 * day + x, with the time in `units`. `how` is for the variable."""
    dtype = how.pop("dtype", "f4")
    names = how.pop("names", ("v",))
    attributes = how.pop("attributes", {})
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", WIDTH)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = units, "standard"
        origin = netCDF4.num2date(np.asarray(days, "f8"), "days since 2000-01-01", "standard")
        time[:] = netCDF4.date2num(origin, units, "standard")
        file.createVariable("x", "f8", ("x",))[:] = x0 + np.arange(WIDTH)
        for name in names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the byte order
                variable = file.createVariable(name, dtype, ("time", "x"), **how)
            variable[:] = np.asarray(days)[:, None] * 10 + x0 + np.arange(WIDTH)
            variable.setncatts(attributes)
    return path


def open_combined(paths: Sequence[Path], out: Path, **options: Any) -> xr.Dataset:
    """Join files, and return what the engine shows."""
    combine(paths, out, **options)
    with xr.open_dataset(out, engine="h5zarr") as opened:
        return opened.load()


def concatenated(paths: Sequence[Path], dimension: str = "time") -> xr.Dataset:
    """Return what xarray makes of files in this order."""
    opened = [xr.open_dataset(path, engine="netcdf4").load() for path in paths]
    for one in opened:
        one.close()
    how: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
    return xr.concat(opened, dimension, combine_attrs="override", **how)
