"""Encoding: chunks and filters as netCDF4 tells them, with a record of them and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from h5zarr.commands.translate.translate import translate
from h5zarr.zarr_model.hierarchy import GroupNode
from tests.containers.hierarchies import with_hierarchy
from tests.engine.made import check_identical
from tests.engine.opening import Opened

COMPRESSED: dict[str, dict[str, Any]] = {
    "zlib": {"compression": "zlib", "complevel": 5},
    "zlib_alone": {"compression": "zlib", "shuffle": False},
    "szip": {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 8},
    "szip_nearest": {"compression": "szip", "szip_coding": "nn", "szip_pixels_per_block": 16},
    "zstd": {"compression": "zstd", "complevel": 3},
    "zstd_negative": {"compression": "zstd", "complevel": -5},
    "bzip2": {"compression": "bzip2", "complevel": 7},
    "blosc_lz": {"compression": "blosc_lz"},
    "blosc_lz4": {"compression": "blosc_lz4", "complevel": 6, "blosc_shuffle": 2},
    "blosc_lz4hc": {"compression": "blosc_lz4hc", "blosc_shuffle": 0},
    "blosc_zlib": {"compression": "blosc_zlib", "blosc_shuffle": 1},
    "blosc_zstd": {"compression": "blosc_zstd", "complevel": 9},
    "checked": {"compression": "zlib", "fletcher32": True},
    "only_checked": {"fletcher32": True},
    "quantized": {"compression": "zlib", "significant_digits": 3},
    "bitrounded": {"compression": "zlib", "significant_digits": 3, "quantize_mode": "BitRound"},
    "rounded": {"compression": "zlib", "least_significant_digit": 2},
    "chunked": {"chunksizes": (7, 9)},
    "contiguous": {"contiguous": True},
}


@pytest.fixture
def compressed(tmp_path: Path) -> Path:
    path = tmp_path / "compressed.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 64)
        file.createDimension("x", 64)
        for name, settings in COMPRESSED.items():
            file.createVariable(name, "f4", ("y", "x"), **settings)[:] = 1
    return path


@pytest.mark.parametrize("options", [{}, {"inline_bytes": 1 << 20}], ids=["referred to", "inlined"])
def test_filters_are_identical(compressed: Path, options: dict[str, Any]) -> None:
    check_identical(compressed, len(COMPRESSED), options)


def test_without_a_record_chunks_and_codecs_tell_the_same(compressed: Path) -> None:
    translation = translate(compressed)
    root = translation.hierarchy.nodes["/"]
    nodes = {**translation.hierarchy.nodes, "/": GroupNode(attributes=root.attributes)}
    translation = with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes))
    ours = Opened(translation, str(compressed)).open("/")
    with xr.open_dataset(compressed, engine="netcdf4") as theirs:
        for name in COMPRESSED:
            assert ours[name].encoding == theirs[name].encoding


def test_dimensions_that_may_grow_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "unlimited.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("bare", None)
        file.createDimension("x", 3)
        file.createVariable("time", "f8", ("time",))[:] = range(5)
        file.createVariable("v", "i2", ("time", "x"), zlib=True)[:] = np.ones((5, 3))
        group = file.createGroup("g")
        group.createDimension("z", None)
        group.createVariable("w", "i2", ("time", "z"))
    check_identical(path, 3)


def test_layouts_of_hdf5_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "layouts.h5"
    (tmp_path / "raw.bin").write_bytes(np.arange(4, dtype="<i4").tobytes())
    with h5py.File(path, "w") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((4,)), settings)
        file.create_dataset("external", (4,), "<i4", external=[("raw.bin", 0, 16)])
        file.create_dataset("source", data=np.arange(4, dtype="<i4"), chunks=(2,))
        layout = h5py.VirtualLayout((4,), "<i4")
        layout[:] = h5py.VirtualSource(".", "source", (4,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("scalar", data=np.int16(1))
        file.create_dataset("empty", (0,), "<i4")
        file.create_dataset("packed", data=np.arange(64, dtype="<i4"), chunks=(16,), scaleoffset=4)
    check_identical(path, 7)
