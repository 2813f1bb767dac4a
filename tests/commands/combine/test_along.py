"""Axes: existing and new ones, and coordinates from names, attributes and functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import ArgumentError, NotJoinable
from tests.commands.combine.files import concatenated, open_combined, write_days


def write_field(path: Path, value: float, **attributes: Any) -> Path:
    """Write v(x) = value + x, without a time."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 4)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(4)
        file.createVariable("v", "f4", ("x",))[:] = value + np.arange(4)
        file.setncatts(attributes)
    return path


def fields(folder: Path, *names: str) -> list[Path]:
    return [write_field(folder / f"{name}.nc", 10 * number) for number, name in enumerate(names)]


def joined(paths: list[Path], along: Any, **options: Any) -> xr.Dataset:
    return open_combined(paths, paths[0].parent / "cube.json", along=along, **options)


def test_a_new_dimension_has_the_order_of_the_files(tmp_path: Path) -> None:
    found = joined(fields(tmp_path, "b", "a", "c"), "member")
    assert found["v"].dims == ("member", "x")
    assert found["v"].values[:, 0].tolist() == [0, 10, 20]
    assert "member" not in found.coords


def test_numbers_in_names_are_coordinates(tmp_path: Path) -> None:
    found = joined(fields(tmp_path, "run_12", "run_7", "run_100"), r"run=name:run_(\d+)")
    assert found["run"].values.tolist() == [7, 12, 100]
    assert found["v"].values[:, 0].tolist() == [10, 0, 20]


def test_texts_in_names_are_coordinates(tmp_path: Path) -> None:
    found = joined(fields(tmp_path, "ocean_b", "ocean_a"), r"model=name:ocean_(\w+)\.nc")
    assert found["model"].values.tolist() == ["a", "b"]
    assert found["v"].values[:, 0].tolist() == [10, 0]


def test_dates_in_names_are_times(tmp_path: Path) -> None:
    found = joined(fields(tmp_path, "ocean_20240301", "ocean_20231231"), "run=name:ocean_%Y%m%d")
    assert found["run"].values.astype("M8[D]").tolist() == list(
        np.array(["2023-12-31", "2024-03-01"], "M8[D]").tolist()
    )
    assert found["v"].values[:, 0].tolist() == [10, 0]


def test_attributes_are_coordinates(tmp_path: Path) -> None:
    paths = [
        write_field(tmp_path / f"{n}.nc", n, forecast_time=f"2024-01-0{3 - n}T06:00:00Z", level=1.5 * n)
        for n in range(2)
    ]
    assert joined(paths, "run=attr:forecast_time")["v"].values[:, 0].tolist() == [1, 0]
    assert joined(paths, "level=attr:level")["level"].values.tolist() == [0, 1.5]


def test_a_function_returns_coordinates(tmp_path: Path) -> None:
    paths = fields(tmp_path, "a", "b", "c")
    found = joined(paths, {"run": lambda name: -ord(Path(name).stem)})
    assert found["run"].values.tolist() == [-99, -98, -97]
    assert found["v"].values[:, 0].tolist() == [20, 10, 0]


def test_names_give_the_coordinate_of_a_dimension_of_length_one(tmp_path: Path) -> None:
    paths = []
    for number, day in enumerate(("20240102", "20240101")):
        path = tmp_path / f"{day}.nc"
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", 1)
            file.createDimension("x", 2)
            file.createVariable("v", "f4", ("time", "x"))[:] = number
        paths.append(path)
    found = joined(paths, "time=name:%Y%m%d")
    assert found["v"].values[:, 0].tolist() == [1, 0]
    assert found["time"].values.astype("M8[D]").astype(str).tolist() == ["2024-01-01", "2024-01-02"]


def test_a_file_without_the_axis_has_constants(tmp_path: Path) -> None:
    days = [write_days(tmp_path / f"{n}.nc", [n]) for n in range(2)]
    with netCDF4.Dataset(tmp_path / "area.nc", "w") as file:
        file.createDimension("x", 600)
        file.createVariable("area", "f8", ("x",))[:] = 5
    found = joined([*days, tmp_path / "area.nc"], "time")
    assert found["area"].dims == ("x",)
    xr.testing.assert_equal(found.drop_vars("area"), concatenated(days))


def test_variables_of_different_periods_are_merged(tmp_path: Path) -> None:
    """As in CMIP, where the files of one variable cover years and those of another decades."""
    how: dict[str, Any] = {"chunksizes": (5, 600), "zlib": True}
    tas = [write_days(tmp_path / f"tas{n}.nc", range(10 * n, 10 * n + 10), names=("tas",), **how) for n in range(2)]
    pr = [write_days(tmp_path / f"pr{n}.nc", range(5 * n, 5 * n + 5), names=("pr",), **how) for n in range(4)]
    found = joined([*pr, *tas], "time")
    xr.testing.assert_equal(found[["tas"]], concatenated(tas))
    xr.testing.assert_equal(found[["pr"]], concatenated(pr))


def test_groups_with_coordinates_of_their_own_have_axes_of_their_own(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.nc"
        with netCDF4.Dataset(path, "w") as file:
            for name, length in (("fast", 4), ("slow", 1 + number)):
                group = file.createGroup(name)
                group.createDimension("time", None)
                group.createVariable("time", "f8", ("time",))[:] = 10 * number + np.arange(length)
                group.createVariable("v", "f4", ("time",))[:] = 100 * number + np.arange(length)
        paths.append(path)
    h5zarr.combine(paths[::-1], tmp_path / "cube.json", along="time")
    for name in ("fast", "slow"):
        expected = xr.concat([xr.open_dataset(path, group=name) for path in paths], "time")
        found = xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", group=name)
        xr.testing.assert_equal(found, expected)


def test_interleaved_files_are_sorted(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", range(n, 9, 3), chunksizes=(1, 600)) for n in range(3)]
    found = joined(paths, "time")
    xr.testing.assert_equal(found, concatenated(paths).sortby("time"))


def test_descending_coordinates_stay_descending(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [3 * n + 2, 3 * n + 1, 3 * n], chunksizes=(1, 600)) for n in range(3)]
    found = joined(paths, "time")
    xr.testing.assert_equal(found, concatenated(paths[::-1]))


def test_coordinates_that_repeat_follow_each_other(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n, n, n + 1], chunksizes=(1, 600)) for n in range(2)]
    xr.testing.assert_equal(joined(paths[::-1], "time"), concatenated(paths))


@pytest.mark.parametrize(
    ("along", "error", "what"),
    [
        ("run=ocean", ArgumentError, "expected NAME, NAME=name:PATTERN, NAME=attr:ATTRIBUTE or NAME=START/STOP/STEP"),
        ("run=name:(", ArgumentError, "the pattern is not a regular expression"),
        (r"run=name:(\d)(\d)", ArgumentError, "the pattern has 2 groups, but must have one"),
        (r"run=name:z(\d)", NotJoinable, r"a\.nc: its name does not match"),
        ("run=name:z_%Y", NotJoinable, r"a\.nc: its name has no date of the form 'z_%Y'"),
        ("run=attr:none", NotJoinable, r"a\.nc: its attribute none is missing"),
        ("x=name:(.)", NotJoinable, r"x has several elements in the group /, not one"),
        ([], ArgumentError, "along must name at least one dimension, and each only once"),
        ([1], TypeError, "along must be a string, a list of strings or a mapping, not int"),
        ({"run": 1}, TypeError, "along has int for run, but must have a function or a string"),
        (None, NotJoinable, "it is not clear along which dimension to join"),
    ],
)
def test_an_axis_that_makes_no_sense_is_refused(along: Any, error: type[Exception], what: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=what):
        h5zarr.combine(fields(tmp_path, "a", "b"), along=along)


def test_a_coordinate_that_one_file_lacks_is_named(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n]) for n in range(2)]
    with netCDF4.Dataset(tmp_path / "2.nc", "w") as file:
        file.createDimension("time", 3)
        file.createVariable("v", "f4", ("time",))[:] = 1
    with pytest.raises(NotJoinable, match=r"2\.nc: the coordinate /time is missing, which other files have"):
        h5zarr.combine([*paths, tmp_path / "2.nc"], along="time")


def test_a_time_without_units_is_named(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n]) for n in range(2)]
    with netCDF4.Dataset(paths[1], "a") as file:
        del file["time"].units
    with pytest.raises(NotJoinable, match=r"/time: its units are not units of time in .*1\.nc, unlike in other files"):
        h5zarr.combine(paths, along="time")


def test_choices_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="on_duplicate is 'oldest', but must be one of refuse, first, last, newest"):
        h5zarr.combine(fields(tmp_path, "a"), on_duplicate="oldest")


def write_dimensions(path: Path, day: int, unlimited: tuple[str, ...]) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name in ("time", "obs", "x"):
            file.createDimension(name, None if name in unlimited else 2)
            variable = file.createVariable(name, "f8", (name,))
            variable[:] = [2 * day, 2 * day + 1] if name in unlimited else [0, 1]
        if "time" in unlimited:
            file["time"].units = "days since 2000-01-01"
    return path


def test_the_time_is_chosen_among_unlimited_dimensions(tmp_path: Path) -> None:
    paths = [write_dimensions(tmp_path / f"{n}.nc", n, ("obs", "time")) for n in range(2)]
    assert [axis.name for axis in combine(paths, constant="first").axes] == ["time"]


def test_several_unlimited_dimensions_are_named(tmp_path: Path) -> None:
    paths = [write_dimensions(tmp_path / f"{n}.nc", n, ("obs", "x")) for n in range(2)]
    with pytest.raises(NotJoinable, match="obs, x could be meant, because each is unlimited"):
        combine(paths)


def test_a_scalar_that_differs_is_proposed_as_a_new_dimension(tmp_path: Path) -> None:
    paths = [write_field(tmp_path / f"{n}.nc", n) for n in range(2)]
    for number, path in enumerate(paths):
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("level", "f8", ())[...] = number
    with pytest.raises(NotJoinable, match="it is not clear along which dimension to join") as caught:
        combine(paths)
    assert caught.value.remedy == (
        "Give along=[NAME], for example along='level': it differs between the files. The files have the dimensions x."
    )


def test_files_of_which_nothing_can_be_joined_are_not_a_cube(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
    with pytest.raises(NotJoinable, match="there is no variable to join in 2 files, for example because of /ragged"):
        combine(list(tmp_path.glob("*.h5")), along="file")


def test_files_without_variables_are_an_empty_dataset(tmp_path: Path) -> None:
    for number in range(2):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.title = "nothing"
    found = open_combined(list(tmp_path.glob("*.nc")), tmp_path / "cube.json", along="file")
    assert not found.variables
    assert found.attrs == {"title": "nothing"}
