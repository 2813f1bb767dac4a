"""The files that are read in benchmarks, and what is read of them. Made once, seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr


@dataclass(frozen=True, slots=True)
class Case:
    """A file, and what is read of it once it is open."""

    title: str
    file: str
    make: Callable[[h5py.File], None]
    read: Callable[[xr.Dataset], Any]


def make_small(file: h5py.File) -> None:
    _add_variable(file, (2048, 64, 64), (1, 64, 64))


def make_large(file: h5py.File) -> None:
    _add_variable(file, (240, 512, 512), (1, 512, 512))


def make_grid(file: h5py.File) -> None:
    _add_variable(file, (2048, 2048), (64, 64))


def make_coordinates(file: h5py.File) -> None:
    """Fifty dimensions with a coordinate each, and a variable for each pair of neighbours."""
    scales = [_add_scale(file, f"axis{number:02}", np.arange(100 + number) / 4) for number in range(50)]
    for number, (first, second) in enumerate(pairwise(scales)):
        shape = (len(first), len(second))
        variable = file.create_dataset(f"v{number:02}", data=_noise(shape), chunks=shape, compression="gzip")
        variable.dims[0].attach_scale(first)
        variable.dims[1].attach_scale(second)


def make_plain(file: h5py.File) -> None:
    file.create_dataset("contiguous", data=_noise((60, 1024, 1024)))
    file.create_dataset("chunks of 4 MB", data=_noise((60, 1024, 1024)), chunks=(1, 1024, 1024))
    file.create_dataset("chunks of 16 kB", data=_noise((16, 1024, 1024)), chunks=(1, 64, 64))


def make_deflated(file: h5py.File) -> None:
    smooth = np.round(np.cumsum(_noise((40, 1024, 1024)) - 0.5, axis=2), 2).astype("f4")
    packed = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    file.create_dataset("shuffle+deflate, 4 MB", data=smooth, chunks=(1, 1024, 1024), **packed)
    file.create_dataset("shuffle+deflate, 256 kB", data=smooth[:20], chunks=(1, 256, 256), **packed)


REMOTE = (
    Case("2,048 chunks of 16 kB", "small.nc", make_small, lambda ds: ds.v.values),
    Case("240 chunks of 1 MB", "large.nc", make_large, lambda ds: ds.v.values),
    Case("a column through 2,048 chunks of 16 kB", "small.nc", make_small, lambda ds: ds.v[:, 32, 32].values),
    Case("a column of 32 chunks, one in 32", "grid.nc", make_grid, lambda ds: ds.v[:, 100].values),
    Case("opening, with 50 coordinates", "coordinates.nc", make_coordinates, lambda ds: ds.axis49.values),
)


def make_file(path: Path, make: Callable[[h5py.File], None]) -> Path:
    """Return `path`, where the file is now, if it was not there already."""
    if not path.exists():
        unfinished = path.with_suffix(".part")
        with h5py.File(unfinished, "w", libver="v110") as file:
            make(file)
        unfinished.rename(path)
    return path


def _add_variable(file: h5py.File, shape: tuple[int, ...], chunks: tuple[int, ...]) -> None:
    scales = [_add_scale(file, name, np.arange(length)) for name, length in zip("tyx", shape, strict=False)]
    variable = file.create_dataset("v", data=_noise(shape), chunks=chunks)
    for axis, scale in enumerate(scales):
        variable.dims[axis].attach_scale(scale)


def _add_scale(file: h5py.File, name: str, values: Any) -> h5py.Dataset:
    scale = file.create_dataset(name, data=values)
    scale.make_scale(name)
    return scale


def _noise(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(5).random(shape, dtype="f4")
