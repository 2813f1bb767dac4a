"""Times that are packed, in units of each file's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from tests.commands.combine.files import concatenated
from tests.commands.combine.splitting import check_same

PACKINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "float64": {"scale_factor": 0.0003814756, "add_offset": -5.0},
    "float32": {"scale_factor": np.float32(0.25), "add_offset": np.float32(3)},
    "mixed": {"scale_factor": np.float32(0.1), "add_offset": 7.0},
    "scale": {"scale_factor": np.float32(0.1)},
    "offset": {"add_offset": np.int16(3)},
    "whole": {"scale_factor": np.int32(60)},
    "unsigned": {"scale_factor": 0.5, "_Unsigned": "true"},
    "fill": {"scale_factor": np.float32(0.1), "add_offset": np.float32(2), "missing_value": np.int16(3)},
}


def write_times(path: Path, number: int, dtype: str, packing: dict[str, Any], *, coordinate: bool) -> Path:
    """Write times in seconds since another minute in each file, and one value for each."""
    name = "obs" if coordinate else "seen"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("obs", 6)
        times = file.createVariable(name, dtype, ("obs",))
        times.set_auto_maskandscale(False)
        packing = {key: np.asarray(one, dtype)[()] if key == "missing_value" else one for key, one in packing.items()}
        times.setncatts({"units": f"seconds since 2018-06-08 14:{10 * number:02}:00.5", **packing})
        times[:] = np.arange(6) - (2 if packing.get("_Unsigned") and not coordinate else 0)
        file.createVariable("v", "f4", ("obs",))[:] = 10 * number + np.arange(6)
    return path


# Only integers are unsigned, and a coordinate has no missing values.
CASES = [
    (packing, dtype, coordinate)
    for packing in PACKINGS
    for dtype in ("i2", "i4", "f4", "f8")
    for coordinate in (False, True)
    if (packing != "unsigned" or dtype[0] == "i") and (packing != "fill" or not coordinate)
]


@pytest.mark.parametrize(("packing", "dtype", "coordinate"), CASES)
def test_packed_times_are_those_that_xarray_decodes(packing: str, dtype: str, coordinate: bool, tmp_path: Path) -> None:
    how = PACKINGS[packing]
    paths = [write_times(tmp_path / f"{n}.nc", n, dtype, how, coordinate=coordinate) for n in range(3)]
    h5zarr.combine(paths, tmp_path / "cube.json", along="obs")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths, "obs"))
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def test_files_that_pack_a_coordinate_differently_are_ordered_by_what_it_means(tmp_path: Path) -> None:
    """The stored numbers are the same in all files."""
    offsets = (20.0, 0.0, 10.0)
    for number, offset in enumerate(offsets):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("depth", 3)
            depth = file.createVariable("depth", "i2", ("depth",))
            depth.setncatts({"scale_factor": 0.5, "add_offset": offset})
            depth[:] = offset + np.arange(3)
            file.createVariable("v", "f4", ("depth",))[:] = offset + np.arange(3)
    paths = [tmp_path / f"{number}.nc" for number in (1, 2, 0)]
    h5zarr.combine(str(tmp_path / "*.nc"), tmp_path / "cube.json", along="depth")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths, "depth"))
