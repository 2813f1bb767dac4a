"""An index that writes no references for each file, but only cubes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row
from h5zarr.commands.index.cubes import CubeOutcome
from h5zarr.commands.update import reading
from h5zarr.errors import ArgumentError
from tests.commands.update.living import LivingArchive, whole, write_granule


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that cubes read one by one, besides the workers."""
    found: list[str] = []
    original = reading.open_piece

    def open_piece(url: Any, *others: Any) -> Any:
        found.append(Path(str(url)).name)
        return original(url, *others)

    monkeypatch.setattr(reading, "open_piece", open_piece)
    return found


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Callable[..., list[CubeOutcome]]]:
    with ThreadPoolExecutor(2) as pool:

        def run(format: str = "none", **how: Any) -> list[CubeOutcome]:
            usual: dict[str, Any] = {"cubes": [f"{tmp_path}/cube.parquet,along=time"], "prune": True}
            how = {**usual, **how, "executor": pool, "format": format}
            return h5zarr.index(str(tmp_path / "data" / "*.nc"), tmp_path / "refs", **how).cubes

        yield run


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for hour in range(5):
        write_granule(tmp_path / "data" / f"h{hour:02}.nc", [hour], hour)
    return tmp_path


def check(folder: Path, name: str = "cube.parquet", pattern: str = "*.nc") -> None:
    with xr.open_dataset(folder / name, engine="h5zarr") as opened:
        xr.testing.assert_identical(opened.load(), whole(sorted((folder / "data").glob(pattern))))
    assert h5zarr.verify(folder / name).is_right


def outputs(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "refs").iterdir())


def rows(folder: Path) -> list[Row]:
    return list(Catalog(Place(folder / "refs")).rows())


def test_files_are_read_once_and_only_the_cube_is_written(archive: Path, index: Any, read: list[str]) -> None:
    (cube,) = index()
    assert cube.done is not None
    assert cube.done.file_count == 5
    assert read == []
    assert outputs(archive) == ["_h5zarr"]
    assert [(row.status, row.output, row.arrays) for row in rows(archive)] == [("indexed", "", 3)] * 5
    check(archive)


def test_what_changes_later_is_read_once_too(archive: Path, index: Any, read: list[str]) -> None:
    index()
    write_granule(archive / "data" / "h05.nc", [5], 5)  # a batch of one
    write_granule(archive / "data" / "h02.nc", [2], 22)
    (archive / "data" / "h01.nc").unlink()
    (cube,) = index()
    assert cube.done is not None
    assert (len(cube.done.added), len(cube.done.replaced), len(cube.done.removed)) == (1, 1, 1)
    assert read == []
    assert sorted(Path(row.source).name for row in rows(archive)) == [f"h{hour:02}.nc" for hour in (0, 2, 3, 4, 5)]
    check(archive)
    (cube,) = index()
    assert cube.done is not None
    assert not cube.done.is_written


def test_a_vanished_file_stays_until_it_is_pruned(archive: Path, index: Any, capsys: Any) -> None:
    index()
    (archive / "data" / "h01.nc").unlink()
    how = [f"{archive}/data/*.nc", f"{archive}/refs", "--format", "none", "--workers", "1"]
    how += ["--cube", f"{archive}/cube.parquet,along=time"]
    assert main(["index", *how]) == 0
    assert "1 source vanished: it is kept; --prune removes it" in capsys.readouterr().err
    (row,) = h5zarr.status(archive / "refs").others
    assert (row.status, row.output) == ("vanished", "")
    assert main(["index", *how, "--prune"]) == 0
    assert "1 source vanished: 1 removed" in capsys.readouterr().err
    check(archive)


def test_references_can_be_given_up_and_written_again(archive: Path, index: Any) -> None:
    index("json")
    assert outputs(archive) == ["_h5zarr", *(f"h{hour:02}.nc.json" for hour in range(5))]
    (archive / "data" / "h03.nc").write_bytes(b"damaged")
    index()
    assert outputs(archive) == ["_h5zarr", "h03.nc.json"]  # of an earlier state
    write_granule(archive / "data" / "h03.nc", [3], 33)
    index()
    assert outputs(archive) == ["_h5zarr"]
    check(archive)
    index("json.gz")
    assert outputs(archive) == ["_h5zarr", *(f"h{hour:02}.nc.json.gz" for hour in range(5))]
    check(archive)


def test_a_file_without_a_shard_is_read_by_the_cube(archive: Path, index: Any, read: list[str]) -> None:
    index()
    later = [f"{archive}/all.json", f"{archive}/few.json,along=time,files=h0[12].nc,include=v"]
    one, few = index(cubes=later)
    assert (one.done.file_count, few.done.file_count) == (5, 2)
    assert sorted(set(read)) == [f"h{hour:02}.nc" for hour in range(5)]
    check(archive, "all.json")
    with xr.open_dataset(archive / "few.json", engine="h5zarr") as opened:
        expected = whole([archive / "data" / "h01.nc", archive / "data" / "h02.nc"])
        xr.testing.assert_equal(opened.v.load().variable, expected.v.variable)


def test_a_file_that_does_not_fit_is_a_misfit(archive: Path, index: Any) -> None:
    write_granule(archive / "data" / "h05.nc", [5], 5, width=700)
    write_granule(archive / "data" / "h06.nc", [4], 6)
    (archive / "data" / "h07.nc").write_bytes(b"damaged")
    (cube,) = index()
    assert cube.done is not None
    assert sorted(Path(one.url).name for one in cube.done.misfits) == ["h05.nc", "h06.nc"]
    check(archive, pattern="h0[0-4].nc")


def test_the_directory_stands_for_the_files(archive: Path, index: Any) -> None:
    index()
    h5zarr.combine(f"{archive}/refs/", archive / "other.json", along="time")
    check(archive, "other.json")
    write_granule(archive / "data" / "h05.nc", [5], 5)
    index(cubes=[f"{archive}/third.json,along=time"])
    assert len(h5zarr.update(archive / "other.json").added) == 1
    check(archive, "other.json")


def test_a_lost_catalog_means_that_all_files_are_read_again(archive: Path, index: Any) -> None:
    index()
    (archive / "refs" / "_h5zarr" / "catalog.parquet").unlink()
    (archive / "data" / "h01.nc").unlink()
    (cube,) = index(rebuild_catalog=True)
    assert cube.done is not None
    assert len(cube.done.removed) == 1
    check(archive)


@pytest.mark.parametrize("seed", range(3))
def test_a_cube_follows_its_archive(seed: int, tmp_path: Path, index: Any) -> None:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    archive.write("h0000.nc", [0, 1])
    for _ in range(6):
        for _ in range(4):
            archive.pass_hour()
        index()
        with xr.open_dataset(tmp_path / "cube.parquet", engine="h5zarr") as opened:
            xr.testing.assert_identical(opened.load(), whole(archive.settle()))
    assert outputs(tmp_path) == ["_h5zarr"]


def test_without_a_cube_there_is_nothing_to_do(archive: Path, index: Any, capsys: Any) -> None:
    with pytest.raises(ArgumentError, match="no references for each file, and there is no cube to make of them"):
        index(cubes=[])
    assert main(["index", f"{archive}/data/*.nc", f"{archive}/refs", "--format", "none"]) == 2
    told = capsys.readouterr().err
    assert "--format none writes no references" in told
    assert "Name a cube, or choose another format." in told
    assert not (archive / "refs").exists()


@pytest.mark.parametrize("how", [{"include": ["v"]}, {"name": "{stem}"}, {"inline_bytes": 0}, {"zarr_format": 2}])
def test_options_for_references_are_refused(how: dict[str, Any], index: Any, archive: Path) -> None:
    with pytest.raises(ArgumentError, match="so they need no names and no options") as caught:
        index(**how)
    assert "give them to the cubes" in caught.value.remedy
    assert not (archive / "refs").exists()


def test_a_report_names_no_outputs(archive: Path, capsys: Any) -> None:
    how = ["--format", "none", "--workers", "1", "--cube", f"{archive}/cube.json,along=time", "--log-format", "json"]
    assert main(["index", f"{archive}/data/*.nc", f"{archive}/refs", *how]) == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [one["output"] for one in events if one["event"] == "indexed"] == [""] * 5
    check(archive, "cube.json")
