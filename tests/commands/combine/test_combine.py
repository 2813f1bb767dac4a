from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.commands.combine.axes import NotJoinable
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import ArgumentError, MalformedFile, OutputError
from h5zarr.zarr_model.grid import RegularGrid
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
    if odd != {"complevel": 9}:
        with pytest.raises(NotJoinable, match=r"/v: it is stored differently in .*1\.nc than in most") as caught:
            combine(paths, max_inline_bytes=0)
        assert "max_inline_bytes=" in caught.value.remedy


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
        ({"attributes": {"units": "m"}}, r"/v: different units in .*1\.nc than in .*0\.nc"),
        ({"attributes": {"units": "K", "scale_factor": 2.0}}, r"/v: different scale_factor in .*1\.nc than in .*0\.nc"),
        ({"dtype": "i4"}, r"/v: its type is int32 in .*1\.nc and float32 in most"),
    ],
)
def test_what_would_be_wrong_is_refused_by_name(changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    paths = [
        write_days(
            tmp_path / f"{n}.nc",
            range(3 * n, 3 * n + 3),
            **({"attributes": {"units": "K"}, "chunksizes": (1, 600)} | (changes if n == 1 else {})),
        )
        for n in range(3)
    ]
    with pytest.raises(NotJoinable, match=what):
        combine(paths, tmp_path / "cube.json")
    assert not (tmp_path / "cube.json").exists()


def test_an_enumeration_of_another_meaning_is_refused_by_name(tmp_path: Path) -> None:
    paths = []
    for number, names in enumerate(({"sea": 0, "land": 1}, {"land": 0, "sea": 1})):
        path = write_days(tmp_path / f"{number}.nc", [number])
        with netCDF4.Dataset(path, "a") as file:
            kind = file.createEnumType("i1", "kind", names)
            file.createVariable("surface", kind, ("time", "x"))[:] = 1
        paths.append(path)
    with pytest.raises(NotJoinable, match=r"/surface: different _FillValue or type in .*1\.nc"):
        combine(paths)


def test_a_day_in_two_files_is_refused_by_name(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / "a.nc", range(4)), write_days(tmp_path / "b.nc", range(3, 6))]
    with pytest.raises(NotJoinable, match=r"a\.nc and .*b\.nc: both have values of time around 3"):
        combine(paths)
    same = [paths[0], write_days(tmp_path / "c.nc", range(4))]
    with pytest.raises(NotJoinable, match=r"a\.nc and .*c\.nc: both have the same part of /v"):
        combine(same)


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


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_dataset_that_is_split_into_files_and_joined_is_the_same(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("split")
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    edges = np.cumsum([0, *lengths])
    paths = []
    for number in range(len(lengths)):
        how = data.draw(
            st.fixed_dictionaries(
                {
                    "chunksizes": st.tuples(st.sampled_from([1, 7, 10, 50]), st.sampled_from([600, 400])),
                    "zlib": st.booleans(),
                    "shuffle": st.booleans(),
                    "units": st.sampled_from(["days since 2000-01-01", "hours since 1999-12-31"]),
                }
            )
        )
        paths.append(write_days(folder / f"{number}.nc", range(edges[number], edges[number + 1]), **how))
    shuffled = data.draw(st.permutations(paths))
    name = data.draw(st.sampled_from(["cube.json", "cube.parquet", "cube.json.gz"]))
    try:
        joined = open_combined(shuffled, folder / name)
    except NotJoinable as error:
        assert "stored in different lengths" in str(error)  # noqa: PT017
        return
    expected = concatenated(paths)
    xr.testing.assert_equal(joined["v"].drop_vars("time"), expected["v"].drop_vars("time"))
    np.testing.assert_array_equal(joined["time"].values, expected["time"].values)
