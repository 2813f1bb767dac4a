"""An update that is killed at any moment, or meets another one, leaves the cube in one state or the next."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr

import h5zarr
from tests.commands.index.jobs import PROJECT, environment
from tests.commands.update.living import LivingArchive, whole
from tests.commands.update.test_living import check_cube, place_of


def start_update(out: str, *sources: str) -> subprocess.Popen[bytes]:
    """Start an update in its own process."""
    command = [sys.executable, "-m", "h5zarr", "combine", "--update", out, *sources, "--prune"]
    return subprocess.Popen(command, env=environment(), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def make_cube(container: str, tmp_path: Path, seed: int) -> tuple[LivingArchive, str]:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(seed))
    out = place_of(container, tmp_path)
    archive.write("h0000.nc", [0, 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time")
    archive.settle()
    return archive, out


def kill_again_and_again(container: str, tmp_path: Path, seed: int, hours: int) -> None:
    """Kill the update of each hour at a random moment; the cube is then in its old or its new state."""
    archive, out = make_cube(container, tmp_path, seed)
    chance, before = random.Random(seed), archive.settle()
    for _ in range(hours):
        expected = [whole(before)]
        archive.pass_hour()
        after = archive.settle()
        expected.append(whole(after))
        process = start_update(out)
        moment = time.monotonic() + chance.uniform(0.2, 1.5)
        while process.poll() is None and time.monotonic() < moment:
            time.sleep(0.002)
        process.kill()
        process.communicate()
        with xr.open_dataset(out, engine="h5zarr") as opened:
            # Files that have changed since cannot be read, so only what is certain is compared: which hours there are.
            found = opened.time.values.tolist()
            assert found in [one.time.values.tolist() for one in expected]
        process = start_update(out)
        process.communicate(timeout=120)
        assert process.returncode in (0, 1)
        check_cube(out, after)
        before = after


def test_an_update_that_is_killed_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    kill_again_and_again("cube.parquet", tmp_path, seed=3, hours=2)


@pytest.mark.slow
@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_updates_that_are_killed_for_days_leave_the_old_or_the_new_state(container: str, tmp_path: Path) -> None:
    kill_again_and_again(container, tmp_path, seed=4, hours=72)


@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_updates_at_the_same_time_lose_nothing(container: str, tmp_path: Path) -> None:
    """Each of them is told about other files. All of these must be in the cube in the end."""
    archive, out = make_cube(container, tmp_path, 5)
    names = [f"h{hour:04}.nc" for hour in range(1, 5)]
    for hour, name in enumerate(names, 1):
        archive.write(name, [2 * hour, 2 * hour + 1])
    running = []
    for some in (names[0::4], names[1::4], names[2::4], names[3::4]):
        running.append(start_update(out, *[str(tmp_path / "data" / name) for name in some]))
    said = [process.communicate(timeout=180)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0, 0], said
    check_cube(out, archive.settle())


@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_a_reader_keeps_the_state_that_it_opened(container: str, tmp_path: Path) -> None:
    archive, out = make_cube(container, tmp_path, 6)
    for hour in range(1, 4):
        archive.write(f"h{hour:04}.nc", [2 * hour, 2 * hour + 1])
    h5zarr.update(out)
    before = whole(archive.settle())
    with xr.open_dataset(out, engine="h5zarr") as opened:
        archive.write("h0000-late.nc", [-2, -1])  # comes first, so that everything moves
        h5zarr.update(out)
        xr.testing.assert_identical(opened.load(), before)
    check_cube(out, archive.settle())


@pytest.mark.slow
@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_a_reader_that_reads_all_the_time_sees_only_whole_states(container: str, tmp_path: Path) -> None:
    """Files are only added, some of them in front, so that a mixture of two states would have wrong values."""
    archive, out = make_cube(container, tmp_path, 8)
    for hour in (40, *range(1, 11)):
        archive.write(f"h{hour:04}.nc", [2 * hour, 2 * hour + 1])
    everything = whole([*(tmp_path / "data").glob("*.nc")])
    process = start_updates(out, [str(tmp_path / "data" / f"h{hour:04}.nc") for hour in (40, *range(10, 0, -1))])
    count = 0
    while process.poll() is None or not count:
        try:
            with xr.open_dataset(out, engine="h5zarr") as opened:
                found = opened.load()
        except (h5zarr.SourceChanged, h5zarr.ProblemWarning):
            continue  # two updates have passed since it was opened
        xr.testing.assert_equal(found, everything.sel(time=found.time))
        count += 1
    said = process.communicate()[1].decode()
    assert process.returncode == 0, said
    with xr.open_dataset(out, engine="h5zarr") as opened:
        xr.testing.assert_equal(opened.load(), everything)


def start_updates(out: str, files: list[str]) -> subprocess.Popen[bytes]:
    """Start a process that adds one file after the other."""
    program = f"import h5zarr\nfor file in {files!r}:\n    assert h5zarr.update({out!r}, file).added == (file,)"
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment(), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
