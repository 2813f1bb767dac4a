"""A month of an archive: an hourly job indexes it and keeps a cube, and is killed and doubled all the time.

After every run that ends by itself, the cube equals what xarray makes of exactly the files that should be in it. Set
`H5ZARR_HOURS` to the number of hours that pass.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from tests.commands.index.jobs import PROJECT, environment
from tests.commands.update.living import LivingArchive, whole
from tests.s3 import s3_server

HOURS = int(os.environ.get("H5ZARR_HOURS", 30 * 24))
KILLED, DOUBLED = 0.3, 0.1  # shares of all runs
_PATIENCE = 300


class Job:
    """The hourly job: `h5zarr index` with a cube."""

    def __init__(self, sources: str, refs: str, cube: str, options: dict[str, Any] | None = None, **how: str) -> None:
        more = [text for name, value in how.items() for text in (f"--{name}", value)]
        for key, value in (options or {}).items():
            more += ["--storage-options", f"{key}={value}", "--output-options", f"{key}={value}"]
        self.command = [sys.executable, "-m", "h5zarr", "index", sources, refs, "--cube", f"{cube},along=time"]
        self.command += ["--prune", "--workers", "1", "--wait", "60", "--quiet", *more]

    def start(self) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.command, env=environment(), cwd=PROJECT, **pipes)

    def run(self) -> None:
        """Run it to its end. Exit code 1 says that a file failed or does not fit."""
        process = self.start()
        said = process.communicate(timeout=_PATIENCE)
        assert process.returncode in (0, 1), said


class Reader(threading.Thread):
    """Opens and reads the cube all the time. Every read must be one of the states that there were."""

    def __init__(self, read: Callable[[], xr.Dataset]) -> None:
        super().__init__(daemon=True)
        self._read, self.is_done = read, threading.Event()
        self.states: list[xr.Dataset] = []
        self.seen: list[xr.Dataset] = []
        self.missed = 0

    def run(self) -> None:
        while not self.is_done.is_set():
            try:
                self.seen.append(self._read())
            except (h5zarr.H5ZarrError, h5zarr.ProblemWarning, OSError):
                self.missed += 1  # a file has changed since, or two updates have passed

    def check(self) -> int:
        """Stop, and compare all that was seen with the states that there were. Return how often it was read."""
        self.is_done.set()
        self.join()
        for found in self.seen:
            assert any(found.identical(state) for state in self.states), found
        return len(self.seen)


def live(archive: LivingArchive, job: Job, read: Callable[[], xr.Dataset], send: Callable[[], None], seed: int) -> None:
    """Let the hours pass."""
    chance, done = random.Random(seed), Counter[str]()
    archive.write("h0000.nc", [0, 1])
    send()
    job.run()
    before = whole(archive.settle())
    for hour in range(HOURS):
        archive.pass_hour()
        send()
        expected = whole(archive.settle())
        reader = Reader(read) if hour % 10 == 0 else None
        if reader is not None:
            reader.states = [before, expected]
            reader.start()
        what = chance.random()
        if what < KILLED:
            process = job.start()
            time.sleep(chance.uniform(0.1, 2.5))
            process.kill()
            process.communicate()
            done["killed"] += 1
        elif what < KILLED + DOUBLED:
            for process in [job.start(), job.start()]:
                assert process.communicate(timeout=_PATIENCE) is not None
                assert process.returncode in (0, 1)
            done["doubled"] += 1
        job.run()
        done["runs"] += 1
        if reader is not None:
            done["reads"] += reader.check()
        xr.testing.assert_identical(read(), expected)
        before = expected
    print(f"\n{dict(done)}, {dict(Counter(archive.events))}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("container", "format"),
    [("cube.json", "json"), ("cube.parquet", "json"), ("cube.parquet", "none"), ("icechunk", "parquet")],
)
def test_a_month_on_disk(container: str, format: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(f"{container} {format}"))
    cube = f"icechunk+file://{tmp_path}/repository" if container == "icechunk" else str(tmp_path / container)

    def read() -> xr.Dataset:
        with xr.open_dataset(cube, engine="h5zarr") as opened:
            return opened.load()

    job = Job(str(tmp_path / "data" / "*.nc"), str(tmp_path / "refs"), cube, format=format)
    live(archive, job, read, lambda: None, seed=1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .fastparquet. engine is deprecated")
@pytest.mark.parametrize("container", ["cube.json", "cube.parquet", "icechunk"])
def test_a_month_in_a_bucket(container: str, tmp_path: Path) -> None:
    s3fs = pytest.importorskip("s3fs")
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(container))
    with s3_server() as options:
        filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        bucket = f"bucket-{secrets.token_hex(6)}"
        filesystem.mkdir(bucket)
        cube = f"icechunk+s3://{bucket}/repository" if container == "icechunk" else f"s3://{bucket}/{container}"

        def send() -> None:
            filesystem.invalidate_cache()
            for name in filesystem.find(f"{bucket}/data"):
                if not (archive.folder / name.rpartition("/")[2]).exists():
                    filesystem.rm_file(name)
            for path in archive.folder.glob("*.nc"):
                if path.name in archive.changed:
                    filesystem.put_file(str(path), f"{bucket}/data/{path.name}")

        def read() -> xr.Dataset:
            with xr.open_dataset(cube, engine="h5zarr", storage_options=options) as opened:
                return opened.load()

        job = Job(f"s3://{bucket}/data/*.nc", f"s3://{bucket}/refs", cube, options)
        live(archive, job, read, send, seed=2)
