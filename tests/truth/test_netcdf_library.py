"""The process in which the netCDF library runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.collections_of_files import SAMPLES
from tests.truth.netcdf_library import NetcdfLibrary


@pytest.fixture
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


def test_a_process_that_died_is_started_again(library: NetcdfLibrary) -> None:
    first = library.names(SAMPLES / "ocean.nc")
    assert isinstance(first, dict)
    assert "/" in first
    process = library._process
    assert process is not None
    process.kill()
    process.wait()
    assert library.names(SAMPLES / "ocean.nc") == first


def test_the_process_survives_a_file_that_kills_the_library(library: NetcdfLibrary, tmp_path: Path) -> None:
    path = tmp_path / "half.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4, dtype="f2"), fillvalue=1)
    library.datasets(path)  # some releases of the library crash
    assert isinstance(library.datasets(SAMPLES / "ocean.nc"), dict)
