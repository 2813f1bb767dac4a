"""What files lack, and what should be the same in all of them, compared by meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import NotJoinable
from tests.commands.combine.files import DAYS, concatenated, open_combined
from tests.commands.combine.splitting import check_same


def write_flags(path: Path, day: int, *, has_flag: bool, calendar: str = "standard") -> Path:
    """Write a day with v(time), and perhaps a flag of one letter and a time that is not a coordinate."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        time = file.createVariable("time", "f8", ("time",))
        time.units, time.calendar = DAYS, calendar
        time[:] = [day]
        file.createVariable("v", "f4", ("time",))[:] = [day]
        if has_flag:
            file.createVariable("flag", "S1", ("time",))[:] = np.array([b"q"])
            seen = file.createVariable("seen", "f8", ("time",))
            seen.units, seen.calendar = DAYS, calendar
            seen[:] = [day + 0.5]
            file.createVariable("name", str, ())[...] = "buoy"
    return path


@pytest.mark.parametrize("calendar", ["standard", "noleap", "360_day"])
def test_letters_and_times_that_some_files_lack_are_missing_there(calendar: str, tmp_path: Path) -> None:
    """xarray shows a missing time of noleap as the epoch, and takes the only dimension of a letter for its length."""
    paths = [write_flags(tmp_path / f"{n}.nc", n, has_flag=n != 1, calendar=calendar) for n in range(3)]
    found, whole = open_combined(paths, tmp_path / "cube.json"), concatenated(paths)
    assert found["flag"].values.tolist()[::2] == [b"q", b"q"]
    assert found["flag"].isnull().values.tolist() == [False, True, False]
    assert found["seen"].isnull().values.tolist() == [False, True, False]
    assert found["seen"].dropna("time").values.tolist() == whole["seen"].dropna("time").values.tolist()
    assert found["seen"].dtype.kind == whole["seen"].dtype.kind
    (notes,) = [one.notes for one in combine(paths).outcomes if one.path == "/seen"]
    assert ("readers show missing times of this calendar as dates" in notes) == (calendar != "standard")


def test_bounds_that_some_files_lack_are_missing_there(tmp_path: Path) -> None:
    paths = []
    for day in range(3):
        paths.append(write_flags(tmp_path / f"{day}.nc", day, has_flag=False, calendar="noleap"))
        with netCDF4.Dataset(paths[-1], "a") as file:
            file["time"].bounds = "time_bnds"
            if day != 1:
                file.createDimension("bnds", 2)
                file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = [[day, day + 1]]
    found, whole = open_combined(paths, tmp_path / "cube.json"), concatenated(paths)
    assert found["time_bnds"].isnull().values.tolist() == [[False] * 2, [True] * 2, [False] * 2]
    assert found["time_bnds"].values[::2].tolist() == whole["time_bnds"].values[::2].tolist()
    assert found["time"].attrs == whole["time"].attrs


def test_times_that_some_files_lack_may_also_have_other_units(tmp_path: Path) -> None:
    paths = [write_flags(tmp_path / f"{n}.nc", n, has_flag=n != 1, calendar="noleap") for n in range(3)]
    with netCDF4.Dataset(paths[2], "a") as file:
        file["seen"].units = "hours since 2000-01-01"
        file["seen"][:] = [60]
    found, whole = open_combined(paths, tmp_path / "cube.json"), concatenated(paths)
    assert found["seen"].values[::2].tolist() == whole["seen"].values[::2].tolist()
    assert found["seen"].isnull().values.tolist() == [False, True, False]


def test_text_that_differs_is_refused_like_other_constants(tmp_path: Path) -> None:
    paths = [write_flags(tmp_path / f"{n}.nc", n, has_flag=True) for n in range(2)]
    assert open_combined(paths, tmp_path / "cube.json")["name"].item() == "buoy"
    with netCDF4.Dataset(paths[1], "a") as file:
        file["name"][...] = "ship"
    with pytest.raises(NotJoinable, match=r"/name: its values in .*1.nc differ from those in .*0.nc"):
        combine(paths)
    assert open_combined(paths, tmp_path / "first.json", constant="first")["name"].item() == "buoy"


def write_constant(
    path: Path, day: int, dtype: str, fill: float | None, values: list[float], **attributes: Any
) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("time", "f8", ("time",))[:] = [day]
        constant = file.createVariable("depth", dtype, ("x",), fill_value=fill)
        constant.setncatts(attributes)
        constant[:] = np.ma.masked_invalid(values)
    return path


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "f4", "fill": np.nan},
        {"dtype": "f4", "fill": -7},
        {"dtype": "f8", "fill": None},
        {"dtype": "i2", "fill": -1},
        {"dtype": "f4", "fill": None, "units": "m "},
    ],
    ids=["NaN for missing", "another number for missing", "another type", "integers", "a blank after the units"],
)
def test_constants_are_compared_by_what_they_mean(other: dict[str, Any], tmp_path: Path) -> None:
    usual: dict[str, Any] = {"dtype": "f4", "fill": None, "units": "m"}
    paths = [
        write_constant(tmp_path / f"{n}.nc", n, values=[1, 2, 3], **(usual | (other if n else {}))) for n in range(2)
    ]
    assert open_combined(paths, tmp_path / "cube.json")["depth"].values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"values": [1, 2, 4]}, "its values in"),
        ({"values": [1, np.nan, 3], "fill": -7}, "its values in"),
        ({"scale_factor": 2.0, "values": [1, 2, 3]}, "its packing in"),
        ({"units": "km"}, "its units in"),
    ],
    ids=["a value", "a missing value", "packing", "units"],
)
def test_constants_that_mean_something_else_are_refused(other: dict[str, Any], what: str, tmp_path: Path) -> None:
    usual: dict[str, Any] = {"dtype": "f4", "fill": None, "units": "m", "values": [1, 2, 3]}
    paths = [write_constant(tmp_path / f"{n}.nc", n, **(usual | (other if n else {}))) for n in range(2)]
    with pytest.raises(NotJoinable, match=f"/depth: {what}"):
        combine(paths)


def write_run(path: Path, days: list[int], reference: float, units: str = DAYS, height: float = 2) -> Path:
    """Write v(time), the scalar times of a run, a name, and a field without time."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 600)
        time = file.createVariable("time", "f8", ("time",))
        time.units = DAYS
        time[:] = days
        file.createVariable("v", "f4", ("time",))[:] = days
        run = file.createVariable("run", "f8", ())
        run.units = units
        run[...] = reference
        file.createVariable("name", str, ())[...] = f"run {reference}"
        file.createVariable("height", "f8", ("x",), chunksizes=(600,), zlib=True)[:] = height * np.arange(600)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(600)
    return path


def different(paths: list[Path]) -> xr.Dataset:
    """Return what xarray makes of files if variables that differ get the dimension."""
    opened = [xr.open_dataset(path).load() for path in paths]
    for one in opened:
        one.close()
    return xr.concat(opened, "time", data_vars="different", coords="different", compat="equals", join="exact")


@pytest.mark.parametrize("most", [None, 20_000], ids=["inlined", "referenced"])
def test_constants_that_differ_get_the_axis_if_the_user_wants_it(most: int | None, tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / "a.nc", [0, 1, 2], 0),
        write_run(tmp_path / "b.nc", [3, 4], 36, "hours since 2000-01-01", height=3),
        write_run(tmp_path / "c.nc", [5], 5),
    ]
    found = open_combined(paths[::-1], tmp_path / "cube.json", constant="along", max_inline_bytes=most)
    whole = different(paths)
    assert found.run.dims == found.name.dims == ("time",)
    assert found.height.dims == ("time", "x")
    for name in ("v", "run", "name", "height", "x"):
        np.testing.assert_array_equal(found[name].values, whole[name].values, name)
    done = h5zarr.verify(tmp_path / "cube.json")
    assert done.is_right, str(done)


def test_constants_that_are_the_same_do_not_get_the_axis(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"{n}.nc", [n], 7) for n in range(2)]
    assert open_combined(paths, tmp_path / "cube.json", constant="along").run.dims == ()


def test_constants_get_an_axis_only_if_there_is_one(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / f"{n}.nc", [n], n) for n in range(2)]
    with pytest.raises(NotJoinable, match="/run: it differs between files, but gets an axis only if files are joined"):
        combine(paths, along=["time", "x"], constant="along")


@pytest.mark.parametrize("with_bounds", [(0, 1), (1, 2)], ids=str)
def test_bounds_that_only_some_files_name_are_refused(with_bounds: tuple[int, ...], tmp_path: Path) -> None:
    """They are numbers in the other files, and xarray does not join them with times."""
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("bnds", 2)
            time = file.createVariable("time", "f8", ("time",))
            time.units = f"days since 2000-01-0{number + 1}"
            time[:] = [0]
            file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = [[0, 1]]
            if number in with_bounds:
                time.bounds = "time_bnds"
    with pytest.raises(
        h5zarr.NotJoinable, match=r"/time_bnds: its values are times in .*[01].nc, but not in .*[02].nc"
    ):
        h5zarr.combine(paths)
    with pytest.raises(TypeError, match="could not be promoted"):
        concatenated(paths)


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize("lengths", [(3, 0, 2), (0, 3, 2), (3, 2, 0), (0, 0, 1)], ids=str)
def test_files_without_elements_contribute_none(lengths: tuple[int, ...], most: int | None, tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate(lengths):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("letter", 4)
            file.createVariable("time", "f8", ("time",))[:] = 5 * number + np.arange(length)
            file.createVariable("v", "i2", ("time",))[:] = np.arange(length)
            texts = np.array([f"a{n}" for n in range(length)], "S4").reshape(-1)
            file.createVariable("code", "S1", ("time", "letter"))[:] = netCDF4.stringtochar(texts)
    h5zarr.combine(paths, tmp_path / "cube.json", along="time", max_inline_bytes=most)
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths))


def test_units_may_be_spelled_differently(tmp_path: Path) -> None:
    paths = []
    for number, units in enumerate(("m s-1", "m/s", "m s**-1")):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createVariable("time", "f8", ("time",))[:] = [number]
            for name, dimensions in (("wind", ("time",)), ("speed", ())):
                variable = file.createVariable(name, "f4", dimensions)
                variable.units = units
                variable[...] = 3
    found = open_combined(paths, tmp_path / "cube.json")
    xr.testing.assert_identical(found, concatenated(paths))
    assert h5zarr.verify(tmp_path / "cube.json").is_right


@pytest.mark.parametrize("most", [None, 0])
def test_letters_along_a_coordinate_of_several_parts_are_not_one_text(tmp_path: Path, most: int | None) -> None:
    """xarray makes text of a dimension that only letters have. Here, the coordinate has it, too, but in parts."""
    paths = []
    for number, form in enumerate(("NETCDF4", "NETCDF4", "NETCDF3_CLASSIC")):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w", format=form) as file:
            file.createDimension("time", None)
            file.createVariable("time", "f8", ("time",))[:] = [2 * number, 2 * number + 1]
            if number != 1:
                file.createVariable("flag", "S1", ("time",))[:] = np.array([b"a", b"b"])
    combine(paths, tmp_path / "cube.json", max_inline_bytes=most)
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths))
