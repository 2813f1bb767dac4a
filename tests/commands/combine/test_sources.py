"""Sources other than files: references, results of a translation, indexes and cubes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import netCDF4
import pytest
import xarray as xr

import h5zarr
from h5zarr.errors import NotJoinable, SourceError
from tests.commands.combine.files import concatenated, open_combined, write_days
from tests.commands.combine.test_combine import pack


def write_three(folder: Path, **how: Any) -> list[Path]:
    how = {"chunksizes": (5, 600), "zlib": True, "names": ("v", "w"), **how}
    return [write_days(folder / f"{n}.nc", range(30 * n, 30 * n + 30), **how) for n in range(3)]


def test_results_of_a_translation_are_joined_without_reading_files_again(tmp_path: Path) -> None:
    paths = write_three(tmp_path)
    made = [h5zarr.translate(path) for path in paths]
    xr.testing.assert_identical(open_combined([paths[0], *made[1:]], tmp_path / "cube.json"), concatenated(paths))
    hidden = [path.rename(path.with_suffix(".hidden")) for path in paths]
    cube = h5zarr.combine(made, tmp_path / "again.json")
    assert len(cube.sources) == len(hidden)


def test_one_result_is_a_source(tmp_path: Path) -> None:
    (path,) = write_three(tmp_path)[:1]
    xr.testing.assert_identical(
        open_combined(h5zarr.translate(path), tmp_path / "cube.json", along="time"), concatenated([path])
    )


@pytest.mark.parametrize("kind", ["references", "results", "files", "index"])
@pytest.mark.parametrize("selection", [{"exclude": ["w"]}, {"include": ["v"]}], ids=["exclude", "include"])
def test_a_selection_applies_to_every_kind_of_source(kind: str, selection: dict[str, Any], tmp_path: Path) -> None:
    paths = write_three(tmp_path)
    sources: Any = paths
    if kind == "references":
        sources = [path.with_suffix(".json") for path in paths]
        for path, out in zip(paths, sources, strict=True):
            h5zarr.translate(path, out)
    elif kind == "results":
        sources = [h5zarr.translate(path) for path in paths]
    elif kind == "index":
        sources = tmp_path / "refs"
        h5zarr.index([str(path) for path in paths], sources)
    found = open_combined(sources, tmp_path / "cube.json", **selection)
    xr.testing.assert_identical(found, concatenated(paths).drop_vars("w"))


def test_a_group_of_references_is_joined(tmp_path: Path) -> None:
    for day in range(2):
        with netCDF4.Dataset(tmp_path / f"{day}.nc", "w") as file:
            group = file.createGroup("science")
            group.createDimension("time", None)
            group.createVariable("time", "f8", ("time",))[:] = [day]
            group.createVariable("v", "f4", ("time",))[:] = [10 * day]
        h5zarr.translate(tmp_path / f"{day}.nc", tmp_path / f"{day}.json")
    h5zarr.combine(tmp_path.glob("*.json"), tmp_path / "cube.json", group="science")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as found:
        assert found.v.values.tolist() == [0, 10]


def test_a_cube_is_a_source_if_one_array_holds_each_variable(tmp_path: Path) -> None:
    paths = write_three(tmp_path)
    h5zarr.combine(paths[:2], tmp_path / "two.json")
    found = open_combined([paths[2], tmp_path / "two.json"], tmp_path / "cube.json")
    xr.testing.assert_identical(found, concatenated(paths))


@pytest.mark.parametrize("kind", ["parts", "parameters"])
def test_a_cube_of_files_that_are_stored_differently_is_a_source(kind: str, tmp_path: Path) -> None:
    if kind == "parts":
        paths = write_three(tmp_path / ".")
        paths[1] = write_days(paths[1], range(30, 60), chunksizes=(5, 600), dtype="f8")
    else:
        paths = [pack(tmp_path / f"{n}.nc", n, 0.25 / (n + 1), n) for n in range(3)]
    h5zarr.combine(paths[:2], tmp_path / "two.json")
    found = open_combined([tmp_path / "two.json", paths[2]], tmp_path / "cube.json")
    xr.testing.assert_identical(found, concatenated(paths))
    assert h5zarr.verify(tmp_path / "cube.json").is_right
    h5zarr.combine(paths, tmp_path / "at-once.json")
    both = [json.loads((tmp_path / name).read_text()) for name in ("cube.json", "at-once.json")]
    for one in both:
        del one["h5zarr"]["cube"]["recipe"]  # the sources differ
    assert both[0] == both[1]


def test_a_file_may_fill_what_another_variable_of_a_cube_lacks(tmp_path: Path) -> None:
    """As in CMIP: one variable in each file, and some files come later."""
    how: dict[str, Any] = {"chunksizes": (5, 600), "zlib": True}
    paths = [write_days(tmp_path / f"{n}.nc", range(30 * n, 30 * n + 30), names=("v",), **how) for n in range(2)]
    others = [write_days(tmp_path / f"w{n}.nc", range(30 * n, 30 * n + 30), names=("w",), **how) for n in range(2)]
    h5zarr.combine([*paths, others[1]], tmp_path / "three.json")
    found = open_combined([tmp_path / "three.json", others[0]], tmp_path / "cube.json")
    xr.testing.assert_identical(found[["v"]], concatenated(paths))
    xr.testing.assert_identical(found[["w"]], concatenated(others))


def test_an_index_whose_files_have_vanished_cannot_be_joined(tmp_path: Path) -> None:
    paths = write_three(tmp_path)
    h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs")
    paths[1].unlink()
    h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs")
    with pytest.raises(SourceError, match=r"1.nc: it is vanished in the index"):
        h5zarr.combine(tmp_path / "refs")
    cube = h5zarr.combine(tmp_path / "refs", skip_broken=True)
    assert len(cube.sources) == 2
    h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", prune=True)
    assert not h5zarr.combine(tmp_path / "refs").problems


def test_an_index_without_files_cannot_be_joined(tmp_path: Path) -> None:
    (path, *others) = write_three(tmp_path)
    for one in others:
        one.unlink()
    h5zarr.index(str(tmp_path / "*"), tmp_path / "refs", include=["*.nc"])
    path.unlink()
    (tmp_path / "other.nc").write_text("nothing")
    h5zarr.index(str(tmp_path / "*"), tmp_path / "refs", include=["*.nc"], prune=True)
    with pytest.raises(SourceError, match=r"other.nc: it is failed in the index"):
        h5zarr.combine(tmp_path / "refs")


@pytest.mark.parametrize("how", [{"zlib": True}, {}], ids=["compressed", "plain"])
@pytest.mark.parametrize("form", ["two.json", "two.parquet"])
def test_a_cube_with_chunks_of_different_lengths_is_a_source(form: str, how: dict[str, Any], tmp_path: Path) -> None:
    starts = [0, 31, 59, 90, 120]
    paths = [write_days(tmp_path / f"{n}.nc", range(*starts[n : n + 2]), chunksizes=(10, 600), **how) for n in range(4)]
    h5zarr.combine(paths[1:3], tmp_path / form)
    found = open_combined([paths[3], tmp_path / form, paths[0]], tmp_path / "cube.json")
    xr.testing.assert_identical(found, concatenated(paths))
    assert h5zarr.verify(tmp_path / "cube.json").is_right
    cube = h5zarr.combine([paths[3], tmp_path / form, paths[0]])
    assert cube.provenance.cube is not None
    at = [(Path(piece.url).name, piece.at["/time"]) for piece in cube.provenance.cube.pieces]
    assert at == [
        ("0.nc", ((0, 0, 31),)),
        ("1.nc", ((31, 0, 28),)),
        ("2.nc", ((59, 0, 31),)),
        ("3.nc", ((90, 0, 30),)),
    ]


def test_a_cube_of_tiles_is_a_source(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{t}{x}.nc", range(3 * t, 3 * t + 3), x0=600 * x, chunksizes=(2, 600), zlib=True)
        for t in range(3)
        for x in range(2)
    ]
    axes = ["time", "x"]
    h5zarr.combine(paths[:4], tmp_path / "four.json", along=axes)
    h5zarr.combine(paths, tmp_path / "six.json", along=axes)
    found = open_combined([tmp_path / "four.json", *paths[4:]], tmp_path / "cube.json", along=axes)
    with xr.open_dataset(tmp_path / "six.json", engine="h5zarr") as whole:
        xr.testing.assert_identical(found, whole.load())
    assert h5zarr.verify(tmp_path / "cube.json").is_right


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize(
    "months",
    [
        ([(0, 31), (31, 59), (59, 90)],) * 3,
        ([(0, 31), (31, 59), (59, 90)], [(0, 28), (28, 59), (59, 90)], [(0, 90)]),
        ([(0, 90)], [(0, 31), (31, 90)]),
    ],
    ids=["same", "other", "first whole"],
)
@pytest.mark.parametrize("how", [{"zlib": True}, {}], ids=["compressed", "plain"])
def test_members_of_an_ensemble_may_be_cubes(
    months: Any, how: dict[str, Any], most: int | None, tmp_path: Path
) -> None:
    """Their chunks along time have different lengths, perhaps other ones in each member."""
    whole = []
    for member, some in enumerate(months):
        (tmp_path / f"{member}").mkdir()
        paths = []
        for n, days in enumerate(some):
            path = tmp_path / f"{member}" / f"{n}.nc"
            paths.append(write_days(path, range(*days), chunksizes=(10, 600), **how))
            with netCDF4.Dataset(path, "a") as file:
                file["v"][:] += 1000 * member
        h5zarr.combine(paths, tmp_path / f"{member}.json", max_inline_bytes=0)
        whole.append(concatenated(paths))
    cube = h5zarr.combine(str(tmp_path / "?.json"), tmp_path / "cube.json", along="member", max_inline_bytes=most)
    expected = xr.concat(
        whole, "member", data_vars="all", coords="minimal", compat="override", combine_attrs="override"
    )
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        xr.testing.assert_identical(opened.load(), expected)
    (v,) = [one for one in cube.outcomes if one.path == "/v"]
    if how and months[0] == months[-1]:
        assert v.how == "joined"
        assert v.notes == ("chunks of different lengths",)
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def test_cubes_of_different_lengths_are_not_members_of_an_ensemble(tmp_path: Path) -> None:
    for member, last in enumerate((59, 60)):
        (tmp_path / f"{member}").mkdir()
        paths = [
            write_days(tmp_path / f"{member}" / f"{n}.nc", range(*days), chunksizes=(10, 600), zlib=True)
            for n, days in enumerate(((0, 31), (31, last)))
        ]
        h5zarr.combine(paths, tmp_path / f"{member}.json")
    with pytest.raises(NotJoinable, match=r"/v: time has 59 elements in .*0.json and 60 in .*1.json"):
        h5zarr.combine([tmp_path / "0.json", tmp_path / "1.json"], along="member", exclude=["time"])


@pytest.mark.parametrize("kind", ["pattern", "directory", "index", "list"])
def test_members_from_a_pattern_are_in_the_order_of_their_numbers(kind: str, tmp_path: Path) -> None:
    """By position, because nothing else orders them. A list keeps its order."""
    (tmp_path / "runs").mkdir()
    paths = [write_days(tmp_path / "runs" / f"r{n}i1p1.nc", [n]) for n in (1, 2, 10, 11, 9)]
    for path in paths:
        with netCDF4.Dataset(path, "a") as file:
            number = file["time"][0]
            file["time"][:] = 0
            file["v"][:] = number
    sources: dict[str, Any] = {
        "pattern": str(tmp_path / "runs" / "r*.nc"),
        "directory": tmp_path / "runs",
        "index": tmp_path / "refs",
        "list": paths,
    }
    h5zarr.index(str(tmp_path / "runs" / "*.nc"), tmp_path / "refs")
    found = open_combined(sources[kind], tmp_path / "cube.json", along="member")
    assert found["v"][:, 0, 0].values.tolist() == ([1, 2, 10, 11, 9] if kind == "list" else [1, 2, 9, 10, 11])
