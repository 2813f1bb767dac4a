"""Shards and batches save reads and memory, and change nothing else."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.index.cubes import CubeOutcome
from h5zarr.commands.update import reading, shards
from h5zarr.containers.file_table import FileTable
from h5zarr.errors import H5ZarrError
from tests.commands.update.living import LivingArchive, whole, write_granule
from tests.s3 import s3_server

FOLDER = "refs/_h5zarr/shards"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that cubes read one by one."""
    found: list[str] = []
    original = reading.open_piece

    def open_piece(url: Any, *others: Any) -> Any:
        found.append(str(url).rpartition("/")[2].partition(".")[0])
        return original(url, *others)

    monkeypatch.setattr(reading, "open_piece", open_piece)
    return found


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve files, of which each is enough for a shard."""
    monkeypatch.setattr(shards, "_FEWEST", 1)
    (tmp_path / "data").mkdir()
    for hour in range(12):
        write_granule(tmp_path / "data" / f"h{hour:02}.nc", [hour], hour)
    return tmp_path


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def index(folder: Path, executor: ThreadPoolExecutor, *cubes: str, **how: Any) -> list[CubeOutcome]:
    cubes = cubes or (f"{folder}/cube.parquet,along=time",)
    return h5zarr.index(str(folder / "data" / "*.nc"), folder / "refs", executor=executor, cubes=cubes, **how).cubes


def check(folder: Path, paths: list[Path] | None = None, name: str = "cube.parquet") -> None:
    with xr.open_dataset(folder / name, engine="h5zarr") as opened:
        xr.testing.assert_identical(opened.load(), whole(paths or sorted((folder / "data").glob("*.nc"))))
    assert h5zarr.verify(folder / name).is_right


def test_a_cube_is_made_of_what_the_workers_leave(archive: Path, executor: Any, read: list[str]) -> None:
    (cube,) = index(archive, executor)
    assert cube.done is not None
    assert len(cube.done.added) == cube.done.file_count == 12
    assert read == []
    assert not (archive / FOLDER).exists()
    check(archive)


def test_files_that_come_later_are_left_in_shards_too(archive: Path, executor: Any, read: list[str]) -> None:
    index(archive, executor)
    for hour in (12, 13, 14):
        write_granule(archive / "data" / f"h{hour:02}.nc", [hour], hour)
    (archive / "data" / "h03.nc").unlink()
    write_granule(archive / "data" / "h05.nc", [5], 55)
    (cube,) = index(archive, executor, prune=True)
    assert cube.done is not None
    assert (len(cube.done.added), len(cube.done.replaced), len(cube.done.removed)) == (3, 1, 1)
    assert read == []
    check(archive)


def test_shards_outlive_a_run_that_is_stopped(
    archive: Path, executor: Any, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("h5zarr.commands.index.running.IndexRun._follow_cubes", lambda self: None)
        index(archive, executor)
    assert list((archive / FOLDER).rglob("*.json"))
    (archive / FOLDER / "0").mkdir()  # of options that are no longer used
    write_granule(archive / "data" / "h07.nc", [7], 77)
    index(archive, executor)
    assert read == []  # of h07.nc, there is a new shard
    assert not (archive / FOLDER).exists()
    check(archive)


def test_a_shard_that_was_not_finished_is_ignored(
    archive: Path, executor: Any, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("h5zarr.commands.index.running.IndexRun._follow_cubes", lambda self: None)
        index(archive, executor)
    one, *_ = sorted((archive / FOLDER).rglob("*.json"))
    one.write_bytes(one.read_bytes()[:100])
    index(archive, executor)
    assert read
    check(archive)


def test_a_file_that_does_not_fit_is_found_in_its_shard(archive: Path, executor: Any) -> None:
    write_granule(archive / "data" / "wide.nc", [30], 1, width=700)
    write_granule(archive / "data" / "twice.nc", [4], 1)
    (cube,) = index(archive, executor)
    assert cube.done is not None
    assert sorted(Path(one.url).name for one in cube.done.misfits) == ["twice.nc", "wide.nc"]
    assert cube.done.file_count == 12
    check(archive, sorted((archive / "data").glob("h*.nc")))


def test_small_shards_become_large_ones(
    archive: Path, executor: Any, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_TOGETHER", 2)
    monkeypatch.setattr("h5zarr.commands.index.running._FLUSH_ROWS", 1)
    monkeypatch.setattr("h5zarr.commands.index.dispatch._MOST_AT_ONCE", 2)
    merged: list[str] = []
    original = shards.ShardStore._write

    def write(self: shards.ShardStore, cube: Any, suffix: str) -> None:
        merged.append(suffix)
        original(self, cube, suffix)

    monkeypatch.setattr(shards.ShardStore, "_write", write)
    index(archive, executor)
    assert ".parquet" in merged
    assert read == []
    check(archive)


def test_an_index_whose_files_all_fail_has_no_cube_yet(archive: Path, executor: Any) -> None:
    for path in (archive / "data").glob("*.nc"):
        path.write_bytes(b"damaged")
    (cube,) = index(archive, executor)
    assert list(cube.lines()) == [f"{archive}/cube.parquet: there is no file for it, so it does not exist yet"]


def test_cubes_that_are_made_in_the_same_way_share_shards(archive: Path, executor: Any, read: list[str]) -> None:
    names = ("a.parquet,along=time", "b.json,along=time", "c.json,along=time,files=h0*", "d.json")
    outcomes = index(archive, executor, *[f"{archive}/{name}" for name in names])
    assert [one.done.file_count for one in outcomes if one.done is not None] == [12, 12, 10, 12]
    assert sorted(read) == [f"h{hour:02}" for hour in range(12)]  # of d.json, whose axis is not known before
    for name in ("a.parquet", "b.json", "d.json"):
        check(archive, name=name)
    check(archive, sorted((archive / "data").glob("h0*.nc")), "c.json")


def test_a_cube_that_fails_keeps_its_shards(archive: Path, executor: Any, read: list[str]) -> None:
    write_granule(archive / "data" / "wide.nc", [30], 1, width=700)
    (cube,) = index(archive, executor, f"{archive}/cube.parquet,along=time,on_misfit=fail")
    assert cube.error
    assert (archive / FOLDER).exists()
    (archive / "data" / "wide.nc").unlink()
    read.clear()
    (cube,) = index(archive, executor, prune=True)
    assert cube.done is not None
    assert read == []
    check(archive)


@pytest.mark.parametrize(
    ("name", "seed"),
    [("cube.json", 0), ("cube.parquet", 1)]
    + [
        pytest.param(name, seed, marks=pytest.mark.slow)
        for name in ("cube.parquet", "icechunk")
        for seed in range(2, 8)
    ],
)
def test_a_cube_of_shards_follows_its_archive(
    name: str, seed: int, tmp_path: Path, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_FEWEST", 1)
    monkeypatch.setattr(shards, "_TOGETHER", 2)
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    out = f"icechunk+file://{tmp_path}/repository" if name == "icechunk" else str(tmp_path / name)
    archive.write("h0000.nc", [0, 1])
    for _ in range(6):
        for _ in range(5):
            archive.pass_hour()
        index(tmp_path, executor, f"{out},along=time", prune=True)
        with xr.open_dataset(out, engine="h5zarr") as opened:
            xr.testing.assert_identical(opened.load(), whole(archive.settle()))


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8)]])
def test_an_update_in_batches_follows_its_archive(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    archive.write("h0000.nc", [0, 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), tmp_path / "cube.parquet", along="time")
    archive.settle()
    for _ in range(5):
        for _ in range(8):
            archive.pass_hour()
        h5zarr.update(tmp_path / "cube.parquet", prune=True)
        with xr.open_dataset(tmp_path / "cube.parquet", engine="h5zarr") as opened:
            xr.testing.assert_identical(opened.load(), whole(archive.settle()))


def test_a_new_axis_comes_from_the_names_of_files_in_shards(
    archive: Path, executor: Any, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    for run in range(12):
        write_granule(archive / "data" / f"h{run:02}.nc", [0, 1], run)
    index(archive, executor, f"{archive}/cube.json,along=run=name:h(\\d+)")
    assert read == []
    for run in range(12, 18):
        write_granule(archive / "data" / f"h{run:02}.nc", [0, 1], run)
    h5zarr.update(archive / "cube.json", str(archive / "data" / "*.nc"))
    h5zarr.combine(str(archive / "data" / "*.nc"), archive / "fresh.json", along="run=name:h(\\d+)")
    with (
        xr.open_dataset(archive / "cube.json", engine="h5zarr") as found,
        xr.open_dataset(archive / "fresh.json", engine="h5zarr") as fresh,
    ):
        xr.testing.assert_identical(found.load(), fresh.load())


def test_a_damaged_file_beside_many_good_ones_is_named(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 2)
    h5zarr.combine(archive / "data" / "h00.nc", archive / "cube.json", along="time")
    (archive / "data" / "h05.nc").write_bytes(b"damaged")
    done = h5zarr.update(archive / "cube.json", str(archive / "data" / "*.nc"))
    assert [Path(one.url).name for one in done.misfits] == ["h05.nc"]
    assert done.file_count == 11
    (archive / "data" / "h05.nc").unlink()
    check(archive, name="cube.json")
    for path in (archive / "data").glob("*.nc"):
        path.unlink()
    with pytest.raises(H5ZarrError, match="no file would be left"):
        h5zarr.update(archive / "cube.json", str(archive / "data" / "*.nc"), prune=True)


def test_if_nothing_has_changed_the_files_of_the_cube_are_not_even_listed(
    archive: Path, executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(archive, executor)
    tables: list[str] = []
    monkeypatch.setattr(FileTable, "_table", lambda self: tables.append("read"))
    for _ in range(2):
        (cube,) = index(archive, executor)
        assert cube.done is not None
        assert (cube.done.cube, cube.done.file_count) == (None, 12)
    assert tables == []
    monkeypatch.undo()
    monkeypatch.setattr(shards, "_FEWEST", 1)
    write_granule(archive / "data" / "h03.nc", [3], 33)
    (cube,) = index(archive, executor)
    assert cube.done is not None
    assert len(cube.done.replaced) == 1
    check(archive)


def test_a_file_that_has_vanished_is_reported_every_time(archive: Path, executor: Any) -> None:
    index(archive, executor)
    (archive / "data" / "h03.nc").unlink()
    write_granule(archive / "data" / "h12.nc", [12], 12)
    for _ in range(3):
        (cube,) = index(archive, executor)
        assert cube.done is not None
        assert [Path(url).name for url in cube.done.vanished] == ["h03.nc"]
    (cube,) = index(archive, executor, prune=True)
    assert cube.done is not None
    assert [Path(url).name for url in cube.done.removed] == ["h03.nc"]
    check(archive)


def test_shards_of_an_axis_that_is_laid_out_are_those_of_any_other(
    archive: Path, executor: Any, read: list[str]
) -> None:
    write_granule(archive / "data" / "off.nc", [40], 40)
    laid = "time=2024-01-01/2024-01-02/PT1H"
    plain, other = index(archive, executor, f"{archive}/a.json,along=time", f"{archive}/b.parquet,along={laid}")
    assert plain.done is not None
    assert other.done is not None
    assert (plain.done.file_count, other.done.file_count) == (13, 12)
    assert [Path(one.url).name for one in other.done.misfits] == ["off.nc"]
    with xr.open_dataset(archive / "b.parquet", engine="h5zarr") as opened:
        assert opened.sizes["time"] == 24
        found = opened.load().dropna("time", how="all")
    xr.testing.assert_equal(found, whole(sorted((archive / "data").glob("h*.nc"))))
    assert set(read) <= {"off", *(f"h{hour:02}" for hour in range(12))}


@pytest.mark.filterwarnings("ignore:The .fastparquet. engine is deprecated")
def test_shards_in_a_bucket(archive: Path, executor: Any, read: list[str]) -> None:
    s3fs = pytest.importorskip("s3fs")
    with s3_server() as options:
        filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        bucket = f"bucket-{secrets.token_hex(6)}"
        filesystem.mkdir(bucket)
        cube = f"s3://{bucket}/cube.parquet"
        h5zarr.index(
            str(archive / "data" / "*.nc"),
            f"s3://{bucket}/refs",
            executor=executor,
            cubes=[f"{cube},along=time"],
            output_options=options,
        )
        assert read == []
        filesystem.invalidate_cache()
        assert not filesystem.find(f"{bucket}/refs/_h5zarr/shards")
        with xr.open_dataset(cube, engine="h5zarr", storage_options=options, allow=[str(archive)]) as opened:
            xr.testing.assert_identical(opened.load(), whole(sorted((archive / "data").glob("*.nc"))))
