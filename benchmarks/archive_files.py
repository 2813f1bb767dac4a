"""Archives of netCDF-4 files that continue each other along time. Seeded and made once, as those of `files.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import netCDF4
import numpy as np
from files import EDITION, SEED, made

STEPS = 4  # of time, in each file
FIELDS = ("tas", "pr", "ps", "huss")


@dataclass(frozen=True)
class Archive:
    """An archive: how many files, the shape of a field at one time, and of its chunks."""

    name: str
    count: int
    shape: tuple[int, int]
    chunk_shape: tuple[int, int]

    @property
    def chunk_count(self) -> int:
        """The number of chunks of all fields in all files."""
        rows, columns = (-(-n // c) for n, c in zip(self.shape, self.chunk_shape, strict=True))
        return self.count * STEPS * len(FIELDS) * rows * columns

    def directory(self, below: Path) -> Path:
        return below / f"archive_{self.name}_{self.count}.{EDITION}"

    def files(self, below: Path) -> list[Path]:
        """Return the paths of the files, having made those that are not there."""
        directory = self.directory(below)
        return [
            made(directory / f"day_{number:06d}.nc", lambda path, n=number: self._make(path, n))
            for number in range(self.count)
        ]

    def _make(self, path: Path, number: int) -> None:
        random = np.random.default_rng([SEED, number])
        with netCDF4.Dataset(path, "w") as file:
            file.setncatts({"Conventions": "CF-1.11", "history": f"made by the benchmarks: {number}"})
            file.createDimension("time", None)
            time = file.createVariable("time", "f8", ("time",), chunksizes=(STEPS,))
            time.setncatts({"units": "days since 2000-01-01", "calendar": "standard"})
            time[:] = number + np.arange(STEPS) / STEPS
            for name, extent in zip(("lat", "lon"), self.shape, strict=True):
                file.createDimension(name, extent)
                file.createVariable(name, "f8", (name,))[:] = np.linspace(0, 90, extent)
            for field in FIELDS:
                variable = file.createVariable(
                    field,
                    "f4",
                    ("time", "lat", "lon"),
                    chunksizes=(1, *self.chunk_shape),
                    zlib=True,
                    complevel=1,
                    shuffle=True,
                    fill_value=1e20,
                )
                variable.setncatts({"units": "1", "long_name": field})
                variable[:] = random.integers(0, 1000, (STEPS, *self.shape)) / 8 + number


DAILY = Archive("daily", 1_000, (40, 80), (20, 40))
FINE = Archive("fine", 2_500, (50, 50), (10, 10))
