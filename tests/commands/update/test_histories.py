"""However a cube came about, it equals the cube that is made of its files at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.errors import SourceGone


def write(
    path: Path,
    times: list[int],
    value: float = 0.0,
    *,
    width: int = 600,
    constants: Mapping[str, tuple[tuple[str, ...], Any]] | None = None,
    timed: bool = True,
    names: tuple[str, ...] = ("v",),
    attributes: Mapping[str, str] | None = None,
    **how: Any,
) -> Path:
    """Write v(time, x) and other variables. `constants` have dimensions and values."""
    path.unlink(missing_ok=True)
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", width)
        if timed:
            time = file.createVariable("time", "i4", ("time",))
            time.units = "hours since 2024-01-01"
            time[:] = times
        file.createVariable("x", "f8", ("x",))[:] = np.arange(width)
        for name in names:
            storage = {"chunksizes": (1, width), "zlib": True, **how}
            variable = file.createVariable(name, "f4", ("time", "x"), fill_value=-999.0, **storage)
            variable[:] = np.full((len(times), width), value) + np.arange(width) / 1000
        for name, (dimensions, values) in (constants or {}).items():
            file.createVariable(name, "f8", dimensions)[...] = values
        file.setncatts(attributes or {})
    return path


def scalar(value: float) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"m": ((), value)}


def open_cube(out: Path) -> xr.Dataset:
    with xr.open_dataset(out, engine="h5zarr") as opened:
        return opened.load()


def check_fresh(folder: Path, **how: Any) -> xr.Dataset:
    """Compare the cube with one that is made at once."""
    found = open_cube(folder / "cube.json")
    h5zarr.combine(str(folder / "*.nc"), folder / "fresh.json", **{"along": "time", **how})
    xr.testing.assert_identical(found, open_cube(folder / "fresh.json"))
    return found


def combine(folder: Path, **how: Any) -> Path:
    h5zarr.combine(str(folder / "*.nc"), folder / "cube.json", **{"along": "time", **how})
    return folder / "cube.json"


def test_a_constant_that_gets_the_axis(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / f"{name}.nc", [number], number, constants=scalar(1.0))
    out = combine(tmp_path, constant="along")
    write(tmp_path / "b.nc", [1], 1, constants=scalar(5.0))
    h5zarr.update(out)
    assert check_fresh(tmp_path, constant="along").m.values.tolist() == [1, 5, 1]


def test_a_constant_that_has_the_axis_in_a_new_file(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", [0])
    write(tmp_path / "b.nc", [1], constants=scalar(1.0))
    out = combine(tmp_path)
    write(tmp_path / "c.nc", [2], constants={"m": (("time",), [2.0])})
    h5zarr.update(out)
    np.testing.assert_array_equal(check_fresh(tmp_path).m.values, [np.nan, 1, 2])


def test_a_constant_that_only_some_files_have(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", [0], constants=scalar(1.0))
    write(tmp_path / "b.nc", [1])
    write(tmp_path / "c.nc", [2], constants=scalar(3.0))
    out = combine(tmp_path, constant="first")
    (tmp_path / "a.nc").unlink()
    h5zarr.update(out, prune=True)
    assert check_fresh(tmp_path, constant="first").m.item() == 3
    (tmp_path / "c.nc").unlink()
    h5zarr.update(out, prune=True)
    assert "m" not in check_fresh(tmp_path, constant="first")


def test_a_constant_that_changes_with_its_only_file(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", [0])
    write(tmp_path / "b.nc", [1], constants=scalar(3.0))
    out = combine(tmp_path)
    write(tmp_path / "b.nc", [1], constants=scalar(4.0))
    assert not h5zarr.update(out).misfits
    assert check_fresh(tmp_path).m.item() == 4


@pytest.mark.parametrize("choice", ["first", "last"])
def test_the_order_of_files_decides_about_duplicates(choice: str, tmp_path: Path) -> None:
    write(tmp_path / "f9.nc", [0, 1], 1)
    write(tmp_path / "f10.nc", [1, 2], 2)
    out = combine(tmp_path, on_duplicate=choice)
    write(tmp_path / "f9.nc", [0, 1], 10)
    h5zarr.update(out)
    check_fresh(tmp_path, on_duplicate=choice)
    write(tmp_path / "f11.nc", [2, 3], 3)
    write(tmp_path / "f1.nc", [0], 7)
    h5zarr.update(out)
    check_fresh(tmp_path, on_duplicate=choice)


def test_an_axis_without_coordinates_keeps_its_order(tmp_path: Path) -> None:
    def write_member(name: str, value: float) -> None:
        xr.Dataset({"v": ("x", np.full(600, value))}).to_netcdf(tmp_path / name)

    for name, value in (("a.nc", 1.0), ("b.nc", 2.0), ("d.nc", 4.0)):
        write_member(name, value)
    out = combine(tmp_path, along="run")
    write_member("a.nc", 10.0)
    write_member("c.nc", 3.0)
    h5zarr.update(out)
    assert check_fresh(tmp_path, along="run").v.isel(x=0).values.tolist() == [10, 2, 3, 4]


def test_a_variable_that_cannot_be_read_in_a_new_file_stays_in_the_cube(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", [0], 1)
    write(tmp_path / "b.nc", [1], 2)
    out = combine(tmp_path)
    odd = write(tmp_path / "c.nc", [2], 2, names=("u",))
    with h5py.File(odd, "a") as file:
        made = file.create_dataset("v", (1, 600), dtype="f4", external=[("nope.bin", 0, 2400)])
        made.dims[0].attach_scale(file["time"])
        made.dims[1].attach_scale(file["x"])
    done = h5zarr.update(out)
    assert [Path(one.url).name for one in done.misfits] == ["c.nc"]
    assert "v" in open_cube(out)


def test_files_of_the_cube_come_before_new_ones(tmp_path: Path) -> None:
    """The mask is taken from a file that leaves, so that all files are read again, with one on another grid."""
    mask = {"mask": (("x",), np.random.default_rng(0).normal(size=60_000))}
    for name, hour, constants in (("b", 0, None), ("c", 1, mask), ("d", 2, mask)):
        write(tmp_path / f"{name}.nc", [hour], width=60_000, constants=constants)
    out = combine(tmp_path)
    (tmp_path / "c.nc").unlink()
    odd = write(tmp_path / "a.nc", [9], width=50)
    done = h5zarr.update(out, prune=True)
    assert [Path(one.url).name for one in done.misfits] == ["a.nc"]
    odd.unlink()
    check_fresh(tmp_path)


@pytest.mark.parametrize("case", ["neighbour", "all"])
def test_a_vanished_file_that_must_be_read_again_stops_the_update(case: str, tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / f"{name}.nc", [number], number)
    out = combine(tmp_path, attributes="drop-conflicts" if case == "all" else "first")
    (tmp_path / "b.nc").unlink()
    write(tmp_path / "a.nc", [0], 10)
    before = out.read_bytes()
    with pytest.raises(SourceGone, match="it has vanished, but would have to be read again") as caught:
        h5zarr.update(out)
    assert "prune=True" in caught.value.remedy
    assert out.read_bytes() == before
    assert len(h5zarr.update(out, prune=True).removed) == 1


def test_a_vanished_file_whose_coordinate_is_not_inlined_stops_the_update(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        write(tmp_path / f"{name}.nc", [number], number)
    out = combine(tmp_path, max_inline_bytes=0)
    (tmp_path / "b.nc").unlink()
    write(tmp_path / "d.nc", [3], 3)
    with pytest.raises(SourceGone, match=r"b\.nc") as caught:
        h5zarr.update(out)
    assert caught.value.remedy == "Remove vanished files from the cube with prune=True."
    h5zarr.update(out, prune=True)
    check_fresh(tmp_path)


def test_a_few_files_that_are_stored_differently_are_encoded_again(tmp_path: Path) -> None:
    """As many as if the cube were made of its files: they are few among those, though there is only one cube."""
    for number in range(10):
        write(tmp_path / f"{number}.nc", [number], number)
    out = combine(tmp_path)
    for number in (10, 11, 12):
        write(tmp_path / f"{number}.nc", [number], number, zlib=False)
    assert not h5zarr.update(out).misfits
    check_fresh(tmp_path)


def test_a_directory_covers_only_files_that_it_lists(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    paths = [write(tmp_path / "d" / "a.nc", [0]), write(tmp_path / "d" / "b.dat", [1])]
    h5zarr.combine(paths, tmp_path / "cube.json", along="time")
    done = h5zarr.update(tmp_path / "cube.json", tmp_path / "d", prune=True)
    assert (done.removed, done.vanished) == ((), ())


def test_names_that_look_like_patterns(tmp_path: Path) -> None:
    (tmp_path / "d[1]").mkdir()
    for number, name in enumerate("ab"):
        write(tmp_path / "d[1]" / f"{name}.nc", [number])
    out = tmp_path / "cube.json"
    h5zarr.combine(tmp_path / "d[1]", out, along="time")
    (tmp_path / "d[1]" / "b.nc").unlink()
    assert len(h5zarr.update(out, prune=True).removed) == 1
    both = [write(tmp_path / f"e[{number}].nc", [number]) for number in (1, 2)]
    h5zarr.combine(both, out, along="time")
    both[1].unlink()
    assert [Path(name).name for name in h5zarr.update(out, prune=True).removed] == ["e[2].nc"]


@pytest.mark.parametrize(
    ("along", "odd", "expected"),
    [
        (r"run=name:o_(\d+)\.nc", "o_x.nc", "its name does not match"),
        ("run=attr:number", "o_x.nc", "its attribute number is missing"),
        (r"run=name:o_(\w+)\.nc", "o_x.nc", "its coordinate run is string, and that of the cube int64"),
    ],
)
def test_a_file_without_the_coordinate_is_a_misfit(along: str, odd: str, expected: str, tmp_path: Path) -> None:
    for number in (1, 2):
        made = xr.Dataset({"v": ("x", np.arange(600.0))}, attrs={"number": number})
        made.to_netcdf(tmp_path / f"o_{number}.nc")
    out = combine(tmp_path, along=along)
    xr.Dataset({"v": ("x", np.arange(600.0))}).to_netcdf(tmp_path / odd)
    xr.Dataset({"v": ("x", np.arange(600.0))}, attrs={"number": 3}).to_netcdf(tmp_path / "o_3.nc")
    done = h5zarr.update(out)
    assert [Path(name).name for name in done.added] == ["o_3.nc"]
    assert expected in done.misfits[0].reason


def test_attributes_that_differ_stay_left_out(tmp_path: Path) -> None:
    for number, name in enumerate("ab"):
        write(tmp_path / f"{name}.nc", [number], attributes={"history": name})
    out = combine(tmp_path, attributes="drop-conflicts")
    write(tmp_path / "c.nc", [2], attributes={"history": "c"})
    h5zarr.update(out)
    assert "history" not in check_fresh(tmp_path, attributes="drop-conflicts").attrs
    for name in "ab":
        (tmp_path / f"{name}.nc").unlink()
    h5zarr.update(out, prune=True)
    assert check_fresh(tmp_path, attributes="drop-conflicts").attrs == {"history": "c"}


def test_a_source_without_files_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.nc", [0])
    out = combine(tmp_path)
    for source in ("nope*.nc", "nope.nc"):
        with pytest.raises(SourceGone, match=r"nope.*: no file was found"):
            h5zarr.update(out, tmp_path / source, prune=True)
