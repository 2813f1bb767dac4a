"""The data store: lazy, indexed as xarray wants, group by group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from xarray.backends.store import StoreBackendEntrypoint

from h5zarr.commands.translate.translate import translate
from h5zarr.engine.datastore import HierarchyDataStore
from tests.engine.opening import Opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "data.nc"
    with netCDF4.Dataset(made, "w") as file:
        file.createDimension("y", 4)
        file.createDimension("x", 6)
        file.createVariable("v", ">i4", ("y", "x"), endian="big", chunksizes=(2, 3))[:] = np.arange(24).reshape(4, 6)
        file.createVariable("names", str, ("x",))[:] = np.array(list("abcdef"), object)
        file.createGroup("g").createVariable("w", "f4", ("x",))[:] = 1
    return made


@pytest.mark.parametrize(
    "key",
    [
        {"y": 1},
        {"y": 1, "x": -1},
        {"x": slice(1, 5, 2)},
        {"x": slice(None, None, -1)},
        {"y": [3, 0], "x": [2, 2, 1]},
        {"y": xr.DataArray([0, 1], dims="p"), "x": xr.DataArray([5, 4], dims="p")},
        {"x": slice(0, 0)},
    ],
    ids=str,
)
def test_parts_are_those_of_the_netcdf_engine(path: Path, key: dict[str, Any]) -> None:
    ours = Opened(translate(path), str(path)).open("/")
    with xr.open_dataset(path, engine="netcdf4") as theirs:
        for name in ("v", "names"):
            wanted = {axis: part for axis, part in key.items() if axis in theirs[name].dims}
            mine, their = ours[name].isel(wanted), theirs[name].isel(wanted)
            assert mine.values.dtype == their.values.dtype
            xr.testing.assert_identical(mine, their)


def test_nothing_is_read_before_it_is_asked_for(path: Path) -> None:
    class Unread:
        def __getitem__(self, key: Any) -> Any:
            raise AssertionError("read too early")

    def read(_: str) -> Any:
        return Unread()

    store = HierarchyDataStore(translate(path).hierarchy, "/", read, "source")
    dataset = StoreBackendEntrypoint().open_dataset(store, drop_variables="names")  # xarray looks at objects at once
    assert dict(dataset.sizes) == {"y": 4, "x": 6}
    assert (store.get_dimensions(), store.get_parent_dimensions()) == ({"y": 4, "x": 6}, {})
    assert dataset.v.encoding["source"] == "source"
    with pytest.raises(AssertionError, match="read too early"):
        dataset.v.load()


def test_a_group_is_its_own_dataset(path: Path) -> None:
    opened = Opened(translate(path), str(path))
    assert set(opened.open("g").variables) == set(opened.open("/g/").variables) == {"w"}
    assert set(opened.open("/").variables) == {"v", "names"}
    with pytest.raises(OSError, match="group not found: /h"):
        opened.open("h")


def test_names_that_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "groups.h5", "w") as file:
        file["a/x"], file["ab/y"], file["a/b/z"] = [1], [2], [3]
    opened = Opened(translate(tmp_path / "groups.h5"), "")
    assert [set(opened.open(group).variables) for group in ("/", "a", "ab", "a/b")] == [set(), {"x"}, {"y"}, {"z"}]
