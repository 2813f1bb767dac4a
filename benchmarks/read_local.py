"""Reading local files: engine="h5zarr" on the file itself next to h5netcdf, h5py and netCDF4, page cache warm.

    python benchmarks/read_local.py [--repeat N]

Each tool opens the file and reads one variable whole, in turns, in one process; values are compared before anything is
timed. h5zarr decodes in as many threads as there are cores; the others have one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from read_files import make_deflated, make_file, make_plain
from tables import print_machine, print_table

from h5zarr.filters.deflate import inflater

COLUMNS = ("variable", "MB", "tool", "seconds", "h5zarr is faster by")


def with_engine(engine: str, **options: Any) -> Callable[[Path, str], Any]:
    def read(path: Path, name: str) -> Any:
        with xr.open_dataset(path, engine=engine, **options) as dataset:
            return dataset[name].values

    return read


def with_h5py(path: Path, name: str) -> Any:
    with h5py.File(path) as file:
        return file[name][...]


TOOLS = {
    "h5zarr": with_engine("h5zarr"),
    "h5netcdf": with_engine("h5netcdf", phony_dims="sort"),
    "netcdf4": with_engine("netcdf4"),
    "h5py": with_h5py,
}


def compare(path: Path, repeat: int) -> Iterator[tuple[str, ...]]:
    with h5py.File(path) as file:
        names = list(file)
    for name in names:
        expected = with_h5py(path, name)
        best = dict.fromkeys(TOOLS, float("inf"))
        for turn in range(repeat + 1):
            for tool, read in TOOLS.items():
                start = time.perf_counter()
                found = read(path, name)
                seconds = time.perf_counter() - start
                if turn == 0:
                    assert np.array_equal(found, expected)
                else:
                    best[tool] = min(best[tool], seconds)
                del found
        for tool, seconds in best.items():
            size = f"{expected.nbytes / 1e6:.0f}"
            yield name, size, tool, f"{seconds:.3f}", f"{seconds / best['h5zarr']:.2f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description="Read local files with every engine.")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    directory = arguments.directory or Path(
        os.environ.get("H5ZARR_BENCHMARK_DIR", Path(tempfile.gettempdir()) / "h5zarr-benchmarks")
    )
    directory.mkdir(parents=True, exist_ok=True)
    print_machine()
    print(f"inflated by {inflater().__name__}, in {len(os.sched_getaffinity(0))} threads")
    files = {"plain.h5": make_plain, "deflated.h5": make_deflated}
    rows = [row for name, make in files.items() for row in compare(make_file(directory / name, make), arguments.repeat)]
    print_table("Opening and reading local files", COLUMNS, rows)


if __name__ == "__main__":
    main()
