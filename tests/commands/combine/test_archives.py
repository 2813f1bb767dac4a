"""Archives with the quirks of real ones, in thousands of files: one dataset, every value exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr

PACKED = ("sst", "bias", "quality", "wind", "ice", "depth", "sst_count", "dt_analysis", "aod", "l2p", "mean")
PLAIN = ("sum", "angle", "count")


def write_like_goes(path: Path, number: int, count: int) -> None:
    """One image, with its time as a scalar. In the second half of the archive, chunks are shuffled."""
    random = np.random.default_rng(number)
    is_shuffled = number >= count // 2
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 24)
        file.createDimension("x", 40)
        for name, length in (("y", 24), ("x", 40)):
            axis = file.createVariable(name, "i2", (name,))
            axis.scale_factor, axis.add_offset, axis.units = np.float32(-5.6e-5), np.float32(0.126), "rad"
            axis.set_auto_scale(False)
            axis[:] = np.arange(length)
        time = file.createVariable("t", "f8", ())
        time.units = "seconds since 2000-01-01 12:00:00"
        time[...] = 6e8 + 300.5 * number
        image = file.createVariable(
            "CMI", "i2", ("y", "x"), chunksizes=(12, 20), zlib=True, complevel=1, shuffle=is_shuffled, fill_value=-1
        )
        image.scale_factor, image.add_offset, image.coordinates = np.float32(0.0002), np.float32(-0.02), "t y x"
        image.setncattr("_Unsigned", "true")
        image.set_auto_scale(False)
        image[:] = random.integers(-1, 4095, (24, 40))
        flags = file.createVariable("DQF", "i1", ("y", "x"), chunksizes=(24, 40), zlib=True, shuffle=is_shuffled)
        flags.setncattr("_Unsigned", "true")
        flags[:] = random.integers(0, 4, (24, 40))


def write_like_imos(path: Path, number: int, count: int) -> None:
    """One day, with eleven variables that are packed by numbers of this file, and three that are not."""
    random = np.random.default_rng(number)
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        time = file.createVariable("time", "i4", ("time",))
        time.units = "seconds since 1981-01-01 00:00:00"
        time[:] = [86_400 * (9_000 + number) + 40_000]
        for name, length in (("lat", 10), ("lon", 30)):
            file.createDimension(name, length)
            file.createVariable(name, "f4", (name,))[:] = np.arange(length) / 4
        for at, name in enumerate((*PACKED, *PLAIN)):
            kind = "i2" if name in PACKED else "f4"
            fill: Any = -32768 if name in PACKED else np.float32(1e20)
            variable = file.createVariable(
                name, kind, ("time", "lat", "lon"), chunksizes=(1, 10, 30), zlib=True, complevel=1, fill_value=fill
            )
            if name in PACKED:
                variable.scale_factor, variable.add_offset = 0.001 * (1 + random.random()), 270 + random.random() + at
            variable.set_auto_maskandscale(False)
            values = random.integers(-32768, 32767, (1, 10, 30)).astype(kind)
            values[0, 0, 0] = fill
            variable[:] = values


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize(
    ("write", "along"), [(write_like_goes, "t"), (write_like_imos, "time")], ids=["like GOES-16", "like IMOS"]
)
def test_thousands_of_files_are_one_dataset(
    write: Callable[[Path, int, int], None], along: str, form: str, tmp_path: Path
) -> None:
    check_archive(write, along, tmp_path, form, count=2_000)


@pytest.mark.parametrize(
    ("write", "along"), [(write_like_goes, "t"), (write_like_imos, "time")], ids=["like GOES-16", "like IMOS"]
)
def test_some_files_are_one_dataset(write: Callable[[Path, int, int], None], along: str, tmp_path: Path) -> None:
    check_archive(write, along, tmp_path, "json", count=24, max_inline_bytes=20_000)


def check_archive(
    write: Callable[[Path, int, int], None], along: str, folder: Path, form: str, count: int, **options: Any
) -> None:
    """Write an archive, join it, and compare all values of all files, as xarray decodes each."""
    paths = [folder / f"{number:05}.nc" for number in range(count)]
    for number, path in enumerate(paths):
        write(path, number, count)
    cube = h5zarr.combine(str(folder / "*.nc"), folder / f"cube.{form}", along=along, **options)
    assert not cube.problems
    assert len(cube.sources) == cube.axes[0].length == count
    with xr.open_dataset(folder / f"cube.{form}", engine="h5zarr") as opened:
        whole = opened.load()
    for number, path in enumerate(paths):
        with xr.open_dataset(path, engine="netcdf4") as one:
            there = whole.isel({along: number}).squeeze()
            for name, variable in one.squeeze().variables.items():
                found = there[name].variable
                assert found.dtype == variable.dtype, name
                np.testing.assert_array_equal(found.values, variable.values, f"{name} in {path.name}")
