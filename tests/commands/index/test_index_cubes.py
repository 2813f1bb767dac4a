"""An index that keeps cubes up to date."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.index.cubes import CubeSpec
from h5zarr.errors import ArgumentError, OutputError
from tests.commands.index.jobs import PROJECT, environment
from tests.commands.update.living import LivingArchive, whole, write_granule


def open_cube(out: Any) -> xr.Dataset:
    with xr.open_dataset(out, engine="h5zarr") as opened:
        return opened.load()


def index(folder: Path, **how: Any) -> h5zarr.IndexReport:
    return h5zarr.index(str(folder / "data" / "*.nc"), folder / "refs", workers=1, **how)


@pytest.mark.parametrize("name", ["cube.json", "cube.parquet", "icechunk"])
def test_every_run_brings_the_cube_up_to_date(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    out = f"icechunk+file://{tmp_path}/repository" if name == "icechunk" else str(tmp_path / name)
    archive = LivingArchive(tmp_path / "data", random.Random(2))
    archive.write("h0000.nc", [0, 1])
    for _ in range(4):
        report = index(tmp_path, cubes=[f"{out},along=time"], prune=True)
        expected = archive.settle()
        (cube,) = report.cubes
        assert cube.done is not None
        assert cube.done.file_count == len(expected)
        xr.testing.assert_identical(open_cube(out), whole(expected))
        archive.pass_hour()


def test_cubes_have_their_own_files_and_options(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for hour in range(4):
        write_granule(tmp_path / "data" / f"{'east' if hour % 2 else 'west'}-{hour}.nc", [hour], hour)
    cubes = [
        {"out": str(tmp_path / "east.json"), "files": "east-*.nc", "along": "time"},
        f"{tmp_path}/west.parquet,files=*west*,along=time=2024-01-01/2024-01-02/PT1H",
        {"out": str(tmp_path / "all.json")},
    ]
    report = index(tmp_path, cubes=cubes)
    assert [one.done.file_count for one in report.cubes if one.done is not None] == [2, 2, 4]
    assert open_cube(tmp_path / "east.json").sizes["time"] == 2
    assert open_cube(tmp_path / "west.parquet").sizes["time"] == 24
    paths = sorted((tmp_path / "data").glob("*.nc"))
    xr.testing.assert_identical(open_cube(tmp_path / "all.json"), whole(paths))
    write_granule(tmp_path / "data" / "east-9.nc", [9], 9)
    report = index(tmp_path, cubes=cubes)
    assert [len(one.done.added) for one in report.cubes if one.done is not None] == [1, 0, 1]


def test_misfits_are_in_the_report_the_metrics_and_the_status(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    out = str(tmp_path / "cube.json")
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    write_granule(tmp_path / "data" / "b.nc", [0], 1)
    report = index(tmp_path, cubes=[out], fail_on="new")
    assert report.is_failure
    (found,) = report.to_json()["cubes"]
    assert found["misfits"][0]["url"].endswith("b.nc")
    assert "both have the same part of /v" in str(report)
    metrics = report.to_metrics()
    assert f'h5zarr_cube_files{{cube="{out}"}} 1' in metrics
    assert f'h5zarr_cube_misfits{{cube="{out}"}} 1' in metrics
    assert f'h5zarr_cube_up_to_date{{cube="{out}"}} 1' in metrics
    summary = str(h5zarr.status(tmp_path / "refs"))
    assert f"cube {out}: 1 file, updated at" in summary
    assert "b.nc is left out" in summary
    again = index(tmp_path, cubes=[out])
    assert not again.is_failure  # it is known by now
    assert index(tmp_path, cubes=[out], fail_on="any").is_failure


def test_a_cube_that_cannot_be_updated_does_not_keep_others_from_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    h5zarr.translate(tmp_path / "data" / "a.nc", tmp_path / "other.json")
    report = index(tmp_path, cubes=[str(tmp_path / "other.json"), str(tmp_path / "cube.json")])
    first, second = report.cubes
    assert "this is not a cube that can be updated" in first.error
    assert second.done is not None
    assert report.is_failure
    assert "h5zarr_cube_up_to_date" in report.to_metrics()
    assert "could not be updated at" in str(h5zarr.status(tmp_path / "refs"))


def test_an_archive_without_readable_files_has_no_cube_yet(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.nc").write_bytes(b"not yet")
    report = index(tmp_path, cubes=[str(tmp_path / "cube.json")])
    assert report.failed_count == 1
    assert not (tmp_path / "cube.json").exists()
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    index(tmp_path, cubes=[str(tmp_path / "cube.json")])
    assert open_cube(tmp_path / "cube.json").sizes["time"] == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("cube.json,time", "expected NAME=VALUE instead of 'time'"),
        ({"along": "time"}, "a cube needs `out`, such as cube.parquet"),
        ({"out": "a.json", "allong": "time"}, "there is no option 'allong' for a cube"),
        ({"out": "a.json", "on_misfit": "ignore"}, "on_misfit is 'ignore', but must be one of skip, new-regime, fail"),
        ({"out": "a.json", "constant": "no"}, "constant is 'no'"),
    ],
)
def test_a_cube_that_makes_no_sense_is_refused(given: Any, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=expected):
        CubeSpec.of(given)
    with pytest.raises(ArgumentError, match=expected):
        h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", cubes=[given])


def test_cubes_are_checked_before_files_are_read(tmp_path: Path) -> None:
    write_granule(tmp_path / "a.nc", [0], 0)
    with pytest.raises(ArgumentError, match="two cubes have the same place"):
        h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", cubes=["c.json", "c.json"])
    with pytest.raises(OutputError):
        h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", cubes=[str(tmp_path / "cube.zarr")])
    assert not list((tmp_path / "refs").glob("*.json"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "h5zarr", "index", *map(str, arguments)]
    return subprocess.run(command, env=environment(), cwd=PROJECT, capture_output=True, text=True, check=False)


def test_the_command_keeps_cubes_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    done = run(
        tmp_path / "data", tmp_path / "refs", "--cube", tmp_path / "c.parquet", "--along", "time", "--report", "-"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["cubes"][0]["files"] == 1
    wrong = run(tmp_path / "data", tmp_path / "refs", "--cube", "c.json,x")
    assert wrong.returncode == 2
    assert "expected NAME=VALUE instead of 'x'" in wrong.stderr


def test_a_configuration_file_describes_cubes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    config = tmp_path / "archive.toml"
    config.write_text(
        """
[collection.ocean]
sources = "data/*.nc"
out = "refs"

[[collection.ocean.cube]]
out = "{collection}.parquet"
along = "time"
on_misfit = "skip"
"""
    )
    done = run("--config", config)
    assert done.returncode == 0, done.stderr
    assert open_cube(tmp_path / "ocean.parquet").sizes["time"] == 1
    config.write_text(config.read_text().replace("along =", "allong ="))
    wrong = run("--config", config)
    assert wrong.returncode == 2
    assert "there is no option 'allong' for a cube" in wrong.stderr
    assert "archive.toml:" in wrong.stderr


def test_pruned_files_leave_the_cube(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for hour in range(3):
        write_granule(tmp_path / "data" / f"{hour}.nc", [hour], hour)
    out = tmp_path / "cube.json"
    index(tmp_path, cubes=[str(out)])
    (tmp_path / "data" / "1.nc").unlink()
    (kept,) = index(tmp_path, cubes=[str(out)]).cubes
    assert "1 vanished file" in "\n".join(kept.lines())
    (pruned,) = index(tmp_path, cubes=[str(out)], prune=True).cubes
    assert pruned.done is not None
    assert [Path(name).name for name in pruned.done.removed] == ["1.nc"]
    xr.testing.assert_identical(open_cube(out), whole(sorted((tmp_path / "data").glob("*.nc"))))


def test_a_cube_without_files_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_granule(tmp_path / "data" / "a.nc", [0], 0)
    report = index(tmp_path, cubes=[f"{tmp_path}/cube.json,files=zzz*", f"{tmp_path}/other.json,along=tiem"])
    assert report.is_failure
    assert "there is no file for it, so it does not exist yet" in str(report)
    assert "no file has the dimension tiem" in report.cubes[1].error
    assert "did you mean along=['time']" in report.cubes[1].remedy.lower() or "time" in report.cubes[1].remedy


def test_a_quiet_run_names_new_misfits(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in "ab":
        write_granule(tmp_path / "data" / f"{name}.nc", [0], 0)
    done = run(tmp_path / "data", tmp_path / "refs", "--cube", tmp_path / "c.json", "--quiet")
    assert done.returncode == 1
    assert "b.nc is left out" in done.stderr
    wrong = run(tmp_path / "data", tmp_path / "refs", "--along", "time")
    assert wrong.returncode == 2
    assert "along is for cubes" in wrong.stderr
