"""A few files to index, and workers that cost nothing to start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from h5zarr.commands.index.workers import ExecutorWorkers

SAMPLES = Path(__file__).resolve().parents[3] / "sample_data"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with three files that can be translated, one of them further below."""
    directory = tmp_path / "data"
    (directory / "later").mkdir(parents=True)
    shutil.copy(SAMPLES / "ocean.nc", directory / "ocean.nc")
    shutil.copy(SAMPLES / "links_compact.h5", directory / "links.h5")
    shutil.copy(SAMPLES / "netcdf4_coordinates.nc", directory / "later" / "ocean.nc")
    return directory


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture
def threads_for_command(threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command in this process, with threads as its workers."""
    monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", lambda count: ExecutorWorkers(threads, count))
