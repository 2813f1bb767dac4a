"""Variables whose dimensions differ between files become what `xarray.concat` makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from tests.commands.combine.files import concatenated
from tests.commands.combine.splitting import check_same

SIZES = {"time": 6, "lat": 20, "lon": 30}
ORDERS = [("time", "lat", "lon"), ("time", "lon", "lat"), ("lon", "time", "lat"), ("lat", "lon", "time")]
NO_INLINING = [None, 0]


def write_grid(path: Path, first: int, order: Sequence[str], *, time: int | None = 6, **how: Any) -> Path:
    """Write v with its dimensions in this order, and time, lat and lon. `how` is for the variable."""
    sizes = {**SIZES, "time": 6}
    days = first + np.arange(sizes["time"])
    values = days[:, None, None] * 1000.0 + np.arange(20)[:, None] * 30 + np.arange(30)
    with netCDF4.Dataset(path, "w") as file:
        for name, length in sizes.items():
            file.createDimension(name, time if name == "time" else length)
            file.createVariable(name, "f8", (name,))[:] = days if name == "time" else np.arange(length)
        axes = [("time", "lat", "lon").index(name) for name in order]
        missing = tuple(0 for name in ("time", "lat", "lon") if name not in order)
        kept = values[missing] if missing else values.transpose(axes)
        file.createVariable("v", "f4", order, **how)[:] = kept
    return path


def check_joined(paths: Sequence[Path], out: Path, most: int | None, **options: Any) -> h5zarr.Cube:
    """Compare the cube with xarray's, and with the files."""
    cube = h5zarr.combine(paths, out, max_inline_bytes=most, overwrite=True, **options)
    assert not cube.problems
    with xr.open_dataset(out, engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths))
    assert h5zarr.verify(out).is_right
    assert h5zarr.validate(out).is_valid
    return cube


@pytest.mark.parametrize("most", NO_INLINING)
@pytest.mark.parametrize("how", [{}, {"zlib": True}, {"chunksizes": (4, 4, 4), "zlib": True}], ids=str)
@pytest.mark.parametrize("first", ORDERS)
@pytest.mark.parametrize("other", ORDERS)
def test_dimensions_are_in_the_order_of_the_first_file(
    tmp_path: Path, first: Sequence[str], other: Sequence[str], how: dict[str, Any], most: int | None
) -> None:
    orders = [first, other, first, other]
    paths = [write_grid(tmp_path / f"{number}.nc", 6 * number, one, **how) for number, one in enumerate(orders)]
    check_joined(paths, tmp_path / "cube.json", most)


@pytest.mark.parametrize("container", ["cube.json", "cube.parquet"])
def test_a_few_turned_files_are_encoded_again_and_many_become_parts(tmp_path: Path, container: str) -> None:
    usual, turned = ORDERS[0], ORDERS[1]
    orders = [usual, usual, turned, usual]
    paths = [write_grid(tmp_path / f"{n}.nc", 6 * n, one, zlib=True, time=None) for n, one in enumerate(orders)]
    (v,) = [one for one in check_joined(paths, tmp_path / container, None).outcomes if one.path == "/v"]
    assert v.how == "joined"
    assert v.notes == (
        f"{paths[2]}: transposed, because its dimensions are in another order there",
        f"{paths[2]}: stored differently from most, so encoded again and inlined",
    )
    (v,) = [one for one in check_joined(paths, tmp_path / container, 0).outcomes if one.path == "/v"]
    assert v.how == "parts"
    assert "part 1: float32, transpose+bytes+shuffle+zlib" in v.notes[2]


@pytest.mark.parametrize("most", NO_INLINING)
@pytest.mark.parametrize("lacking", [0, 1, 2])
@pytest.mark.parametrize("how", [{}, {"zlib": True}], ids=str)
def test_a_variable_without_the_joined_dimension_is_repeated(
    tmp_path: Path, lacking: int, how: dict[str, Any], most: int | None
) -> None:
    orders = [ORDERS[0]] * 3
    orders[lacking] = ("lat", "lon")
    paths = [write_grid(tmp_path / f"{number}.nc", 6 * number, one, **how) for number, one in enumerate(orders)]
    cube = check_joined(paths, tmp_path / "cube.json", most)
    (v,) = [one for one in cube.outcomes if one.path == "/v"]
    assert f"{paths[lacking]}: repeated along a dimension that it lacks there" in v.notes


def test_members_of_an_ensemble_may_be_turned(tmp_path: Path) -> None:
    paths = [write_grid(tmp_path / f"{number}.nc", 0, one, zlib=True) for number, one in enumerate(ORDERS)]
    h5zarr.combine(paths, tmp_path / "cube.json", along="member", max_inline_bytes=0)
    members = [xr.open_dataset(path).load() for path in paths]
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), xr.concat(members, "member", data_vars="all", coords="minimal", compat="override"))
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def test_a_cube_with_turned_chunks_is_a_source(tmp_path: Path) -> None:
    paths = [write_grid(tmp_path / f"{n}.nc", 6 * n, ORDERS[n > 0], zlib=True) for n in range(4)]
    h5zarr.combine(paths[1:3], tmp_path / "part.json", max_inline_bytes=0)
    h5zarr.combine([paths[0], tmp_path / "part.json", paths[3]], tmp_path / "cube.json", max_inline_bytes=0)
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), concatenated(paths))


# --- text


def write_text(path: Path, first: int, letters: int, *, dimension: str = "letter", count: int = 5, **more: Any) -> Path:
    """Write text along time in an array of characters, and the name of a station."""
    days = range(first, first + count)
    with netCDF4.Dataset(path, "w", format=more.get("format", "NETCDF4")) as root:
        file = root.createGroup(more["group"]) if "group" in more else root
        file.createDimension("time", None)
        file.createDimension(dimension, letters)
        file.createVariable("time", "f8", ("time",))[:] = list(days)
        code = file.createVariable("code", "S1", ("time", dimension))
        code[:] = netCDF4.stringtochar(np.array([f"{day:0{letters - 1}}" for day in days], f"S{letters}"))
        if "encoding" in more:
            code.setncattr("_Encoding", more["encoding"])
        name = file.createVariable("station", "S1", (dimension,))
        name[:] = netCDF4.stringtochar(np.array("buoy"[: letters - 1], f"S{letters}"))
        if more.get("has_numbers"):
            file.createVariable("weights", "f4", (dimension,))[:] = 1
    return path


@pytest.mark.parametrize("most", NO_INLINING)
@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_CLASSIC"])
@pytest.mark.parametrize("names", ["same", "by length"])
@pytest.mark.parametrize("letters", [(6, 9, 7), (9, 6, 6), (6, 6, 9), (64, 16, 16)], ids=str)
def test_text_may_have_another_length_in_each_file(
    tmp_path: Path, letters: Sequence[int], names: str, format: str, most: int | None
) -> None:
    paths = [
        write_text(
            tmp_path / f"{n}.nc", 5 * n, one, format=format, dimension="letter" if names == "same" else f"s{one}"
        )
        for n, one in enumerate(letters)
    ]
    cube = check_joined(paths, tmp_path / "cube.json", most)
    (code,) = [one for one in cube.outcomes if one.path == "/code"]
    assert f"text of different lengths is padded to {max(letters)} characters" in code.notes
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", decode_cf=False) as opened:
        assert opened["code"].shape == (15, max(letters))
        found = [b"".join(row).decode() for row in opened["code"].values]
    assert found == xr.open_dataset(tmp_path / "cube.json", engine="h5zarr")["code"].values.astype(str).tolist()


@pytest.mark.parametrize("most", NO_INLINING)
def test_text_with_an_encoding_becomes_unicode(tmp_path: Path, most: int | None) -> None:
    lengths = (5, 8)
    paths = [write_text(tmp_path / f"{n}.nc", 5 * n, one, encoding="utf-8") for n, one in enumerate(lengths)]
    check_joined(paths, tmp_path / "cube.json", most)


def test_long_text_in_many_files_becomes_parts(tmp_path: Path) -> None:
    paths = [write_text(tmp_path / f"{n}.nc", 5000 * n, 500 + 100 * (n % 2), count=5000) for n in range(4)]
    cube = check_joined(paths, tmp_path / "cube.json", 10_000_000)
    assert [one.how for one in cube.outcomes if one.path == "/code"] == ["parts"]


def test_text_in_a_group(tmp_path: Path) -> None:
    paths = [write_text(tmp_path / f"{n}.nc", 5 * n, one, group="sites") for n, one in enumerate((6, 9))]
    h5zarr.combine(paths, tmp_path / "cube.json")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", group="sites") as opened:
        assert opened["code"].values.tolist() == [b"%05d" % day for day in range(5)] + [
            b"%08d" % d for d in range(5, 10)
        ]
        assert opened["station"].values.tolist() == b"buoy"
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def test_characters_whose_dimension_has_numbers_are_not_text(tmp_path: Path) -> None:
    """xarray does not join them, either."""
    paths = [write_text(tmp_path / f"{n}.nc", 5 * n, one, has_numbers=True) for n, one in enumerate((6, 9))]
    with pytest.raises(h5zarr.NotJoinable, match=r"/code: letter has 6 elements in .*0.nc and 9 in .*1.nc"):
        h5zarr.combine(paths, along="time")
    with pytest.raises(ValueError, match="conflicting dimension sizes"):
        concatenated(paths)


def test_constant_text_that_differs_is_padded_if_the_first_is_taken(tmp_path: Path) -> None:
    paths = [write_text(tmp_path / f"{n}.nc", 5 * n, one) for n, one in enumerate((4, 9))]
    with pytest.raises(h5zarr.NotJoinable, match=r"/station: its values in .*1.nc differ from those in .*0.nc"):
        h5zarr.combine(paths)
    check_joined(paths, tmp_path / "cube.json", None, constant="first")
    with pytest.raises(h5zarr.NotJoinable, match=r"/station: its text is padded to the length of other files, which"):
        h5zarr.combine(paths, constant="first", max_inline_bytes=0)


@pytest.mark.parametrize("most", NO_INLINING)
def test_fixed_text_of_different_lengths(tmp_path: Path, most: int | None) -> None:
    """HDF5 text of fixed length, which netCDF4 shows as str."""
    paths = []
    for number, length in enumerate((3, 7, 5)):
        paths.append(tmp_path / f"{number}.nc")
        with h5py.File(paths[-1], "w") as file:
            for name, values in (
                ("time", number * 2.0 + np.arange(2)),
                ("code", np.array([b"ab", b"c"], f"S{length}")),
            ):
                file[name] = values
                file[name].dims[0].attach_scale(file["time"]) if name == "code" else file["time"].make_scale("time")
    check_joined(paths, tmp_path / "cube.json", most)
