"""A cube follows an archive that grows, changes and shrinks: after every update it equals xarray over its files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from tests.commands.update.living import LivingArchive, whole

CONTAINERS = ("cube.json", "cube.json.gz", "cube.parquet", "icechunk")


def place_of(container: str, folder: Path) -> str:
    return f"icechunk+file://{folder}/repository" if container == "icechunk" else str(folder / container)


def check_cube(out: str, paths: list[Path], **options: Any) -> None:
    """Compare a cube with xarray over these files, and the files that it names."""
    with xr.open_dataset(out, engine="h5zarr", **options) as opened:
        xr.testing.assert_identical(opened.load(), whole(paths))


def follow(archive: LivingArchive, out: str, hours: int, **options: Any) -> list[h5zarr.CubeUpdate]:
    """Let hours pass, and update the cube after each of them."""
    done = []
    for _ in range(hours):
        archive.pass_hour()
        done.append(h5zarr.update(out, prune=True, **options))
        paths = archive.settle()
        check_cube(out, paths)
        assert done[-1].file_count == len(paths), archive.events
    return done


@pytest.mark.parametrize(("container", "seed"), [("cube.json", 0), ("cube.parquet", 1), ("icechunk", 1)])
def test_a_cube_follows_its_archive(container: str, seed: int, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    out = place_of(container, tmp_path)
    archive.write("h0000.nc", [0, 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time")
    archive.settle()
    done = follow(archive, out, 16)
    assert h5zarr.verify(out).is_right
    assert sum(len(one.added) for one in done) > 8
    assert h5zarr.update(out, prune=True).cube is None


@pytest.mark.slow
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("seed", range(10, 15))
def test_a_cube_follows_its_archive_for_a_month(container: str, seed: int, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    out = place_of(container, tmp_path)
    archive.write("h0000.nc", [0, 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time")
    archive.settle()
    follow(archive, out, 30 * 24 // 5)


@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_a_cube_with_an_axis_laid_out_ahead_follows_its_archive(container: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(7))
    out = place_of(container, tmp_path)
    archive.write("h0000.nc", [0, 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time=2024-01-01/2024-01-04/PT1H")
    archive.settle()
    for _ in range(8):
        archive.pass_hour()
        h5zarr.update(out, prune=True)
        expected = whole(archive.settle())
        with xr.open_dataset(out, engine="h5zarr") as opened:
            assert opened.sizes["time"] == 72
            there = opened.load().dropna("time", how="all")
        xr.testing.assert_equal(there, expected)
        assert h5zarr.verify(out).is_right
