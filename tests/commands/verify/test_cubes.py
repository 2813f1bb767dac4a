from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import netCDF4
import pytest

import h5zarr
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import ArgumentError, MalformedFile
from tests.commands.combine.files import write_days
from tests.commands.combine.test_combine import pack, write_labels

Make = Callable[[Path], tuple[Sequence[Path], dict[str, Any]]]


def plain(directory: Path, **how: Any) -> list[Path]:
    """Write three files of three days each."""
    usual = {"chunksizes": (1, 600), "zlib": True}
    return [write_days(directory / f"{n}.nc", range(3 * n, 3 * n + 3), **(usual | how)) for n in range(3)]


def ragged(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    starts = [0, 31, 59, 90]
    how: dict[str, Any] = {"chunksizes": (10, 600), "zlib": True}
    return [write_days(directory / f"{n}.nc", range(*starts[n : n + 2]), **how) for n in range(3)], {}


def packed(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return [pack(directory / f"{n}.nc", n, 0.25 / (n + 1), n, fill=-1 - n) for n in range(4)], {}


def parts(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    paths = [
        write_days(directory / f"{n}.nc", [2 * n, 2 * n + 1], chunksizes=(1, 600), shuffle=bool(n % 2), zlib=True)
        for n in range(4)
    ]
    return paths, {"max_inline_bytes": 0}


def times(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    units = ("days since 2000-01-01", "hours since 2000-01-04", "days since 1999-12-31 12:00")
    return [write_days(directory / f"{n}.nc", range(3 * n, 3 * n + 3), units=units[n]) for n in range(3)], {}


def lacking(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    names = (("v", "w"), ("v",), ("v", "w"))
    return [
        write_days(directory / f"{n}.nc", range(3 * n, 3 * n + 3), names=names[n], chunksizes=(1, 600))
        for n in range(3)
    ], {}


def tiles(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    paths = [
        write_days(directory / f"{t}{x}.nc", range(3 * t, 3 * t + 3), x0=600 * x, chunksizes=(1, 600))
        for t in range(2)
        for x in range(2)
    ]
    return paths[:3], {"along": ["time", "x"]}


def new_dimension(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    paths = [write_days(directory / f"run_{n}.nc", range(3), chunksizes=(1, 600)) for n in range(3)]
    for number, path in enumerate(paths):
        with netCDF4.Dataset(path, "a") as file:
            file["v"][:] = number
    return paths, {"along": r"run=name:run_(\d+)"}


def duplicates(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    days = {"a": range(7), "b": range(4, 12), "c": range(5, 6), "d": range(11, 20)}
    paths = []
    for age, (name, some) in enumerate(days.items()):
        paths.append(write_days(directory / f"{name}.nc", some, chunksizes=(3, 600), zlib=True))
        with netCDF4.Dataset(paths[-1], "a") as file:
            file["v"][:] = age
    return paths, {"on_duplicate": "last", "along": "time"}


def constants(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return [write_days(directory / f"{n}.nc", [n], x0=n) for n in range(3)], {"constant": "first"}


def other_type(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return [
        write_days(directory / f"{n}.nc", [n], chunksizes=(1, 600), **({"dtype": "i4"} if n == 1 else {}))
        for n in range(3)
    ], {}


def bounds(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return [
        write_labels(directory / f"{name}{day}.nc", day, name, 1.0) for day in range(2) for name in ("tas", "pr")
    ], {}


def missing_times(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    """The times of a variable that one file lacks, in the units of one of the others."""
    units = ("days since 2000-01-01", "hours since 2000-01-01", "days since 2000-01-01")
    paths = [write_days(directory / f"{n}.nc", [n], units=units[n]) for n in range(3)]
    for number, path in enumerate(paths[1:], 1):
        with netCDF4.Dataset(path, "a") as file:
            seen = file.createVariable("seen", "f8", ("time",))
            seen.units = units[number]
            seen[:] = number
    return paths, {}


def unwritten_text(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    """A character without a value, as climate models write for the grid mapping."""
    paths = plain(directory)
    for path in paths:
        with netCDF4.Dataset(path, "a") as file:
            file.createVariable("rotated_pole", "S1", ()).grid_mapping_name = "rotated_latitude_longitude"
    return paths, {}


MADE: list[Make] = [
    *(lambda directory: (plain(directory), {}), ragged, packed, parts, times, lacking, tiles, new_dimension),
    *(duplicates, constants, other_type, bounds, missing_times, unwritten_text),
]
NAMES = [getattr(make, "__name__", "").replace("<lambda>", "plain") for make in MADE]


@pytest.mark.parametrize("container", ["cube.json", "cube.parquet"])
@pytest.mark.parametrize("make", MADE, ids=NAMES)
def test_a_cube_equals_its_files(make: Make, container: str, tmp_path: Path) -> None:
    paths, options = make(tmp_path)
    combine(paths, tmp_path / container, **options)
    found = h5zarr.verify(tmp_path / container)
    assert found.is_right, str(found)
    assert found.source == f"{len(paths)} files"
    assert all(one.compared == one.total for one in found.arrays if not one.skipped)
    assert h5zarr.verify(tmp_path / container, sample=0.2).is_right


def test_a_coordinate_that_no_file_has_is_not_compared(tmp_path: Path) -> None:
    paths, options = new_dimension(tmp_path)
    combine(paths, tmp_path / "cube.json", **options)
    skipped = {one.path: one.skipped for one in h5zarr.verify(tmp_path / "cube.json").arrays if one.skipped}
    assert skipped == {"/run": "it was made when the files were joined, and is in none of them"}


def test_a_cube_is_not_compared_with_one_file(tmp_path: Path) -> None:
    paths = plain(tmp_path)
    combine(paths, tmp_path / "cube.json")
    with pytest.raises(ArgumentError, match=r"cube\.json: it is joined from 3 files, not one"):
        h5zarr.verify(tmp_path / "cube.json", paths[0])


def test_a_cube_without_files_cannot_be_verified(tmp_path: Path) -> None:
    combine(plain(tmp_path), tmp_path / "cube.json")
    document = json.loads((tmp_path / "cube.json").read_text())
    layout = document["h5zarr"]["cube"]
    layout["pieces"] = []
    (tmp_path / "cube.json").write_text(json.dumps(document))
    with pytest.raises(MalformedFile, match="the layout of the cube names no files"):
        h5zarr.verify(tmp_path / "cube.json")
