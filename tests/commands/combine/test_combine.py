from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import ArgumentError, MalformedFile, NotJoinable, OutputError
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.joined import is_part
from tests.commands.combine.files import concatenated, open_combined, write_days


def test_files_are_joined_in_the_order_of_their_coordinate(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), chunksizes=(1, 600)) for n in range(4)]
    joined = open_combined([paths[n] for n in (2, 0, 3, 1)], tmp_path / "cube.json")
    xr.testing.assert_identical(joined, concatenated(paths))


def test_equal_chunks_make_a_regular_grid_that_refers_to_every_file(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), chunksizes=(1, 600), zlib=True) for n in range(4)
    ]
    cube = combine(paths)
    node = cube.arrays()["/v"]
    assert node.grid == RegularGrid((12, 600), (1, 600))
    assert node.manifest.count == 12
    assert np.asarray(node.manifest.source).tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert repr(cube) == "<h5zarr.Cube of 4 files: joined along time (12), 3 arrays, 12 chunks, 0 problems>"
    assert "dimension time: 12 in 4 parts" in str(cube)


def test_months_have_chunks_of_different_lengths(tmp_path: Path) -> None:
    starts = [0, 31, 59, 90]
    paths = [
        write_days(tmp_path / f"{n}.nc", range(*starts[n : n + 2]), chunksizes=(10, 600), zlib=True) for n in range(3)
    ]
    cube = combine(paths)
    assert cube.to_json()["uneven"] == ["/v"]
    assert cube.arrays()["/v"].codecs[0]["name"] == "h5zarr.crop"
    assert "array.rectilinear_chunks" in str(cube)
    xr.testing.assert_identical(open_combined(paths, tmp_path / "cube.parquet"), concatenated(paths))


def test_contiguous_data_are_cut_into_equal_chunks(tmp_path: Path) -> None:
    import h5py

    paths = []
    for number, length in enumerate((4, 6, 3)):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            file["v"] = np.arange(length * 1000).reshape(length, 1000) + number
            file["v"].dims[0].label = "t"
            scale = file.create_dataset("t", data=np.arange(length) + 10 * number)
            scale.make_scale("t")
            file["v"].dims[0].attach_scale(scale)
        paths.append(path)
    node = combine(paths, along="t").arrays()["/v"]
    assert node.grid == RegularGrid((13, 1000), (2, 1000)) or node.grid == RegularGrid((13, 1000), (1, 1000))
    joined = open_combined(paths, tmp_path / "cube.json", along="t")
    expected = np.concatenate([np.arange(n * 1000).reshape(n, 1000) + k for k, n in enumerate((4, 6, 3))])
    np.testing.assert_array_equal(joined["v"].values, expected)


@pytest.mark.parametrize(
    "odd", [{"shuffle": False}, {"zlib": False}, {"chunksizes": (1, 300)}, {"endian": "big"}, {"complevel": 9}]
)
def test_a_file_that_is_stored_in_another_way_is_encoded_again(odd: dict[str, Any], tmp_path: Path) -> None:
    usual = {"chunksizes": (1, 600), "zlib": True, "shuffle": True}
    paths = [
        write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), **(usual | (odd if n == 1 else {}))) for n in range(3)
    ]
    xr.testing.assert_equal(open_combined(paths, tmp_path / "cube.json"), concatenated(paths))
    assert cube_parts(paths) == 0
    parts = 0 if odd == {"complevel": 9} else 2
    assert cube_parts(paths, max_inline_bytes=0) == parts
    joined = open_combined(paths, tmp_path / "parts.json", max_inline_bytes=0)
    xr.testing.assert_equal(joined, concatenated(paths))


def cube_parts(paths: list[Path], **options: Any) -> int:
    """Return how many arrays of parts a cube has."""
    return sum(is_part(path) for path in combine(paths, **options).arrays())


def test_times_in_different_units_become_one(tmp_path: Path) -> None:
    units = ("days since 2000-01-01", "hours since 2000-01-04", "days since 1999-12-31 12:00")
    paths = [
        write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), units=units[n], chunksizes=(1, 600)) for n in range(3)
    ]
    joined = open_combined(paths, tmp_path / "cube.json")
    np.testing.assert_array_equal(joined["time"].values, concatenated(paths)["time"].values)


def test_tiles_are_joined_and_a_missing_one_reads_as_missing_data(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{t}{x}.nc", range(3 * t, 3 * t + 3), x0=600 * x, chunksizes=(1, 600))
        for t in range(2)
        for x in range(2)
    ]
    joined = open_combined(paths[:3], tmp_path / "cube.json", along=["time", "x"])
    expected = xr.combine_by_coords(
        [xr.open_dataset(path).load() for path in paths[:3]], combine_attrs="override", join="outer"
    )
    xr.testing.assert_equal(joined, expected)
    assert bool(joined["v"][3:, 600:].isnull().all())


def test_variables_in_files_of_their_own_are_merged(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{name}{n}.nc", range(3 * n, 3 * n + 3), names=(name,), chunksizes=(1, 600))
        for name in ("tas", "pr")
        for n in range(2)
    ]
    joined = open_combined(paths, tmp_path / "cube.json")
    assert joined.sizes["time"] == 6
    assert not joined["tas"].isnull().any()
    xr.testing.assert_equal(joined["pr"], concatenated(paths[2:])["pr"])


def write_labels(path: Path, day: int, name: str, value: float) -> Path:
    """Write a variable of its own, and `run(time)` and `time_bnds`, which files of one day share."""
    with netCDF4.Dataset(write_days(path, [day], names=(name,), chunksizes=(1, 600)), "a") as file:
        file.createDimension("nv", 2)
        file["time"].bounds = "time_bnds"
        file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = [[day, day + value]]
        file.createVariable("run", "f8", ("time",))[:] = value
    return path


def test_what_merged_files_share_must_be_the_same(tmp_path: Path) -> None:
    paths = [write_labels(tmp_path / f"{name}{day}.nc", day, name, 1.0) for day in range(2) for name in ("tas", "pr")]
    joined = open_combined(paths, tmp_path / "cube.json")
    assert joined["run"].values.tolist() == [1, 1]
    assert joined["time_bnds"].shape == (2, 2)
    with netCDF4.Dataset(paths[1], "a") as file:
        file["run"][:] = 2.0
    with pytest.raises(NotJoinable, match=r"tas0\.nc and .*pr0\.nc: /run differs between them"):
        combine(paths)


def test_a_variable_that_some_files_lack_reads_as_missing_data(tmp_path: Path) -> None:
    names = (("v", "w"), ("v",), ("v", "w"))
    paths = [
        write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), names=names[n], chunksizes=(1, 600)) for n in range(3)
    ]
    joined = open_combined(paths, tmp_path / "cube.json")
    assert joined["w"].isnull().any("x").values.tolist() == [False] * 3 + [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"x0": 1}, r"/x: its values in .*1\.nc differ from those in .*0\.nc"),
        ({"attributes": {"units": "m"}}, r'/v: its units are "K" and "m", in .*0\.nc and .*1\.nc'),
    ],
)
def test_what_would_be_wrong_is_refused_by_name(changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    usual = {"attributes": {"units": "K"}, "chunksizes": (1, 600)}
    paths = [
        write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3), **(usual | (changes if n == 1 else {})))
        for n in range(3)
    ]
    with pytest.raises(NotJoinable, match=what):
        combine(paths, tmp_path / "cube.json")
    assert not (tmp_path / "cube.json").exists()


def test_constants_of_the_first_file_are_used_if_the_user_wants_it(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n], x0=n) for n in range(3)]
    joined = open_combined(paths[::-1], tmp_path / "cube.json", constant="first")
    assert joined["x"].values.tolist() == list(range(600))
    assert joined["v"].values[:, 0].tolist() == [0, 11, 22]


@pytest.mark.parametrize("max_inline_bytes", [None, 0])
@pytest.mark.parametrize("dtype", ["i4", "f8", "i1", "u2"])
def test_a_file_of_another_type_is_joined_as_xarray_joins_it(
    dtype: str, max_inline_bytes: int | None, tmp_path: Path
) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", [n], chunksizes=(1, 600), **({"dtype": dtype} if n == 1 else {}))
        for n in range(3)
    ]
    joined = open_combined(paths, tmp_path / "cube.json", max_inline_bytes=max_inline_bytes)
    expected = concatenated(paths)
    xr.testing.assert_equal(joined, expected)
    assert joined["v"].dtype == expected["v"].dtype


def pack(path: Path, day: int, scale: float, offset: float, fill: int | None = -1) -> Path:
    """Write a file of one day whose values are packed, with the first one missing."""
    write_days(path, [day], names=())
    with netCDF4.Dataset(path, "a") as file:
        variable = file.createVariable("v", "i2", ("time", "x"), chunksizes=(1, 600), fill_value=fill)
        variable.scale_factor, variable.add_offset = np.float32(scale), np.float32(offset)
        values = np.ma.masked_array(day + np.arange(600) / 4, mask=np.arange(600) == 0)
        variable[0] = values if fill is not None else values.data
    return path


def test_each_file_is_unpacked_with_its_own_numbers(tmp_path: Path) -> None:
    paths = [pack(tmp_path / f"{n}.nc", n, 0.25 / (n + 1), n, fill=-1 - n) for n in range(4)]
    joined = open_combined(paths, tmp_path / "cube.json")
    xr.testing.assert_identical(joined, concatenated(paths))
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        one = opened["v"][2, 5].values
        np.testing.assert_array_equal(opened["v"].isel(time=[3, 0], x=slice(1, 3)).values, joined["v"][[3, 0], 1:3])
    assert one == joined["v"].values[2, 5]
    # Other readers see stored numbers, without a scale, and the numbers of each file beside them.
    store = xr.open_zarr(h5zarr.open_store(tmp_path / "cube.json"), consolidated=False, decode_times=False)
    assert store["v"].dtype == np.int16
    assert not {"scale_factor", "add_offset", "_FillValue"} & {*store["v"].attrs, *store["v"].encoding}
    unpacked = store["v"] * store["v_scale_factor"] + store["v_add_offset"]
    expected = unpacked.where(store["v"] != store["v_FillValue"]).transpose("time", "x")
    np.testing.assert_array_equal(expected.values, joined["v"].values)


def test_a_packed_file_among_others_is_a_part_of_its_own(tmp_path: Path) -> None:
    plain = [write_days(tmp_path / f"{n}.nc", [n], chunksizes=(1, 600)) for n in (0, 2)]
    paths = [plain[0], pack(tmp_path / "1.nc", 1, 0.25, 1), plain[1]]
    joined = open_combined(paths, tmp_path / "cube.json")
    xr.testing.assert_equal(joined, concatenated(paths))
    raw = xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", mask_and_scale=False)
    assert not {"scale_factor", "_FillValue"} & set(raw["v"].attrs)


def test_the_parts_of_a_variable_are_datasets_that_other_readers_open(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", [n], chunksizes=(1, 600), shuffle=bool(n % 2), zlib=True) for n in range(4)
    ]
    open_combined(paths, tmp_path / "cube.json", max_inline_bytes=0)
    store = h5zarr.open_store(tmp_path / "cube.json")
    for number, days in enumerate(([0, 2], [1, 3])):
        part = xr.open_zarr(store, group=f"_h5zarr_parts/v/{number}", consolidated=False)
        np.testing.assert_array_equal(part["v"].values, concatenated([paths[day] for day in days])["v"].values)
    tree = xr.open_datatree(tmp_path / "cube.json", engine="h5zarr")
    assert list(tree.children) == []
    assert tree["v"].shape == (4, 600)


@pytest.mark.parametrize("meanings", ["land sea", "sea land"])
def test_flags_that_mean_something_else_are_refused_by_name(meanings: str, tmp_path: Path) -> None:
    paths = []
    for number, one in enumerate(("sea land", meanings + " ice")):
        flags = {"flag_values": np.arange(2 + number, dtype="i1"), "flag_meanings": one}
        paths.append(write_days(tmp_path / f"{number}.nc", [number], dtype="i1", attributes=flags))
    if meanings == "sea land":
        assert combine(paths).arrays()["/v"].shape == (2, 600)
        return
    with pytest.raises(NotJoinable, match=r"/v: the flag 0 means sea in .*0\.nc and land in .*1\.nc"):
        combine(paths)


def test_an_enumeration_of_another_meaning_is_refused_by_name(tmp_path: Path) -> None:
    paths = []
    for number, names in enumerate(({"sea": 0, "land": 1}, {"land": 0, "sea": 1})):
        path = write_days(tmp_path / f"{number}.nc", [number])
        with netCDF4.Dataset(path, "a") as file:
            kind = file.createEnumType("i1", "kind", names)
            file.createVariable("surface", kind, ("time", "x"))[:] = 1
        paths.append(path)
    with pytest.raises(NotJoinable, match=r"/surface: its enumeration differs, in .*0\.nc and .*1\.nc"):
        combine(paths)


def test_a_day_in_two_files_is_refused_by_name(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / "a.nc", range(4)), write_days(tmp_path / "b.nc", range(3, 6))]
    with pytest.raises(NotJoinable, match=r"a\.nc and .*b\.nc: both have the same part of /v, at time 2000-01-04"):
        combine(paths)
    same = [paths[0], write_days(tmp_path / "c.nc", range(4))]
    with pytest.raises(
        NotJoinable, match=r"a\.nc and .*c\.nc: both have the same part of /v, at time 2000-01-01 to 2000-01-04"
    ):
        combine(same)


@pytest.mark.parametrize("chunk", [1, 3, 5])
@pytest.mark.parametrize("max_inline_bytes", [None, 2000])
@pytest.mark.parametrize("choice", ["first", "last", "newest"])
def test_the_user_chooses_which_file_has_a_day(
    choice: str, max_inline_bytes: int | None, chunk: int, tmp_path: Path
) -> None:
    days = {"a": range(7), "b": range(4, 12), "c": range(5, 6), "d": range(11, 20)}
    paths = []
    for age, (name, some) in enumerate(days.items()):
        path = write_days(tmp_path / f"{name}.nc", some, chunksizes=(chunk, 600), zlib=True)
        with netCDF4.Dataset(path, "a") as file:
            file["v"][:] = age
        os.utime(path, (1e9 - age * 1000, 1e9 - age * 1000))  # the first is the newest
        paths.append(path)
    joined = open_combined(
        paths, tmp_path / "cube.json", on_duplicate=choice, max_inline_bytes=max_inline_bytes, along="time"
    )
    order = list(enumerate(days.values()))
    expected = {}
    for age, some in order if choice == "last" else order[::-1]:
        expected |= dict.fromkeys(some, age)
    assert joined["v"].values[:, 7].tolist() == [expected[day] for day in range(20)]


def test_a_broken_file_stops_the_job_or_is_named(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", range(3 * n, 3 * n + 3)) for n in range(3)]
    paths[1].write_bytes(paths[1].read_bytes()[:200])
    with pytest.raises(MalformedFile, match=r"1\.nc"):
        combine(paths)
    cube = combine(paths, tmp_path / "cube.json", skip_broken=True)
    assert "1.nc is left out" in cube.problems[0].message
    assert cube.axes[0].length == 6


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = write_days(tmp_path / "a.nc", range(3))
    with pytest.raises(ArgumentError, match="each only once"):
        combine([path], along=["time", "time"])
    with pytest.raises(OutputError):
        combine([path], path)
    with pytest.raises(ArgumentError, match="must name at least one file"):
        combine([])


def test_references_are_joined_like_the_files_they_refer_to(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", range(30 * n, 30 * n + 30), chunksizes=(5, 600), zlib=True) for n in range(3)
    ]
    for path in paths:
        h5zarr.translate(path, path.with_suffix(".json"))
    references = [path.with_suffix(".json") for path in paths]
    xr.testing.assert_identical(open_combined(references, tmp_path / "cube.json"), concatenated(paths))
