"""Many small netCDF-4 files, as instruments and models leave them every hour: ten variables, about 50 kB.

Seeded and made once, as those of `files.py`.
"""

from __future__ import annotations

from pathlib import Path

import netCDF4
import numpy as np
from files import EDITION, SEED, made

VARIABLE_COUNT = 7
EXTENTS = {"time": 4, "latitude": 16, "longitude": 32}


def small_files(directory: Path, count: int) -> list[Path]:
    """The paths of the first `count` files, which have a directory of their own."""
    below = directory / f"small_netcdf4.{EDITION}"
    return [made(below / f"hourly_{number:06d}.nc", lambda path, n=number: _make(path, n)) for number in range(count)]


def _make(path: Path, number: int) -> None:
    random = np.random.default_rng([SEED, number])
    with netCDF4.Dataset(path, "w") as file:
        file.setncatts(
            {"Conventions": "CF-1.11", "title": "small files", "history": f"made by the benchmarks: {number}"}
        )
        for name, extent in EXTENTS.items():
            file.createDimension(name, None if name == "time" else extent)
            # The unlimited one is chunked, and in no case compressed: what is inlined is then what is in the file.
            coordinate = file.createVariable(name, "f8", (name,), chunksizes=(extent,) if name == "time" else None)
            coordinate.setncatts(
                {"units": "hours since 2000-01-01" if name == "time" else "degrees", "long_name": name}
            )
            coordinate[:] = np.arange(extent) + (number if name == "time" else 0)
        for index in range(VARIABLE_COUNT):
            _make_variable(file, f"variable_{index}", random)


def _make_variable(file: netCDF4.Dataset, name: str, random: np.random.Generator) -> None:
    shape = tuple(EXTENTS.values())
    variable = file.createVariable(
        name, "i2", tuple(EXTENTS), zlib=True, shuffle=True, chunksizes=(1, *shape[1:]), fill_value=-32768
    )
    texts = ("long_name", "standard_name", "units", "cell_methods")
    variable.setncatts({text: f"{text} of {name}" for text in texts} | {"scale_factor": 0.01, "add_offset": 273.15})
    variable.set_auto_maskandscale(False)
    variable[:] = random.integers(-2000, 2000, shape, np.int16)
