"""An axis that is laid out ahead: files find their slot, and the other slots read as missing data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.errors import ArgumentError, NotJoinable
from tests.commands.combine.files import concatenated, open_combined, write_days

LAYOUT = "time=2000-01-01/2000-01-11/P1D"
HOW = {"chunksizes": (1, 600), "zlib": True}


def test_slots_without_a_file_are_missing(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{day}.nc", [day], **HOW) for day in (7, 1, 2)]
    found = open_combined(paths, tmp_path / "cube.json", along=LAYOUT)
    days = np.arange("2000-01-01", "2000-01-11", dtype="M8[D]").astype("M8[ns]")
    whole = concatenated(paths).reindex(time=days)
    np.testing.assert_array_equal(found.time.values.astype("M8[ns]"), days)
    np.testing.assert_array_equal(found.v.values, whole.v.values)
    assert h5zarr.verify(tmp_path / "cube.json").is_right
    cube = h5zarr.combine(paths, along=LAYOUT)
    assert not cube.uneven


def test_files_with_several_steps_and_other_units_find_their_slots(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / "a.nc", [2, 3, 4], chunksizes=(3, 600), zlib=True),
        write_days(tmp_path / "b.nc", [8, 9], units="hours since 1999-12-31", chunksizes=(3, 600), zlib=True),
    ]
    found = open_combined(paths, tmp_path / "cube.json", along=LAYOUT)
    whole = concatenated(paths)
    np.testing.assert_array_equal(found.v.sel(time=whole.time).values, whole.v.values)
    assert int(found.v.isnull().all("x").sum()) == 5


def test_a_scalar_time_becomes_a_slot(tmp_path: Path) -> None:
    for day in (3, 5):
        made = xr.Dataset(
            {"v": ("x", np.arange(600.0) + day)}, {"time": np.datetime64(f"2000-01-0{day}", "ns"), "x": np.arange(600)}
        )
        made.to_netcdf(tmp_path / f"{day}.nc")
    found = open_combined(sorted(tmp_path.glob("*.nc")), tmp_path / "cube.json", along=LAYOUT)
    assert found.sizes["time"] == 10
    assert found.v.isel(x=0).dropna("time").values.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("text", "count", "last"),
    [
        ("2000-01-01/2001-01-01/P1M", 12, "2000-12-01"),
        ("2000-01-01/2002-01-01/P1Y", 2, "2001-01-01"),
        ("2000-01-01T06:00/2000-01-02T06:00/PT30M", 48, "2000-01-02T05:30"),
        ("2000-01-01/2000-01-15/P1W", 2, "2000-01-08"),
    ],
)
def test_steps_are_durations(text: str, count: int, last: str, tmp_path: Path) -> None:
    path = write_days(tmp_path / "a.nc", [0.25] if "T06" in text else [0], **HOW)
    found = open_combined([path], tmp_path / "cube.json", along=f"time={text}")
    assert found.sizes["time"] == count
    assert found.time.values[-1] == np.datetime64(last)


def test_a_time_between_the_slots_is_refused_by_name(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / "a.nc", [1], **HOW), write_days(tmp_path / "b.nc", [2.5], **HOW)]
    expected = r"b.nc: /time has 2000-01-03T12:00:00, which is not on the axis that was laid out"
    with pytest.raises(NotJoinable, match=expected):
        h5zarr.combine(paths, along=LAYOUT)
    late = write_days(tmp_path / "c.nc", [11], **HOW)
    with pytest.raises(NotJoinable, match=r"c.nc: /time has 2000-01-12, which is not on the axis"):
        h5zarr.combine([late], along=LAYOUT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2000-01-01/soon/P1D", "the stop 'soon' is not a date"),
        ("2000/2001-01-01/P1D", "the start '2000' is not a date"),
        ("2000-01-01/2001-01-01/daily", "'daily' is not a step"),
        ("2000-01-01/2001-01-01/P1MT1H", "'P1MT1H' is not a step"),
        ("2000-01-30/2001-01-01/P1M", "steps of months must start on one of the first 28 days"),
        ("2001-01-01/2000-01-01/P1D", "the stop is not after the start"),
        ("2000-01-01/2030-01-01/PT1S", "the axis has more than 20,000,000 steps"),
        ("2000-13-01/2030-01-01/PT1S", "the start '2000-13-01' is not a date"),
    ],
)
def test_a_wrong_layout_is_named(text: str, expected: str) -> None:
    with pytest.raises(ArgumentError, match=expected):
        h5zarr.combine(["a.nc"], along=f"time={text}")


def test_an_axis_without_times_is_not_laid_out(tmp_path: Path) -> None:
    path = write_days(tmp_path / "a.nc", [0], **HOW)
    with pytest.raises(NotJoinable, match="/x: its units are not units of time"):
        h5zarr.combine([path], along="x=2000-01-01/2001-01-01/P1D")
    with pytest.raises(NotJoinable, match="the files have no times called run, by which they could find their place"):
        h5zarr.combine([path], along="run=2000-01-01/2001-01-01/P1D")
    with pytest.raises(NotJoinable, match="the calendar standard does not have the date 2000-02-30"):
        h5zarr.combine([path], along="time=2000-02-30/2001-01-01/P1D")


def test_files_of_other_calendars_are_refused(tmp_path: Path) -> None:
    for name in ("standard", "noleap"):
        made = xr.Dataset({"v": ("time", [1.0])}, {"time": ("time", [1.0])})
        made.time.attrs = {"units": "days since 2000-01-01", "calendar": name}
        made.to_netcdf(tmp_path / f"{name}.nc")
    with pytest.raises(NotJoinable, match="/time: the calendars differ: noleap, standard"):
        h5zarr.combine(sorted(tmp_path.glob("*.nc")), along=LAYOUT)
