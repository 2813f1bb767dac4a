"""Small files for the tests of whole translations."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np


def make_ocean(path: Path) -> Path:
    """Write a file with a coordinate, a packed variable in a group, a problem and a warning."""
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=np.arange(4.0))
        time.make_scale("time")
        temp = file.create_dataset("grid/temp", (4, 500), "<i2", chunks=(1, 500), shuffle=True, compression=4)
        temp[...] = np.arange(2000).reshape(4, 500)
        temp.dims[0].attach_scale(time)
        temp.attrs["_FillValue"] = np.float64(np.nan)
        file["ragged"] = np.array([np.arange(2), np.arange(3)], h5py.vlen_dtype(np.dtype("i4")))
    return path


def make_plain(path: Path) -> Path:
    """Write a file that has neither problems nor warnings, and one chunk that is too large to be inlined."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4000, dtype="<i4"))
    return path
