"""The process in which the netCDF library runs."""

from __future__ import annotations

from tests.collections_of_files import SAMPLES
from tests.truth.netcdf_library import NetcdfLibrary


def test_a_worker_that_has_died_is_started_again() -> None:
    library = NetcdfLibrary()
    try:
        first = library.names(SAMPLES / "ocean.nc")
        assert isinstance(first, dict)
        assert "/" in first
        process = library._worker._process
        assert process is not None
        process.kill()
        process.wait()
        assert library.names(SAMPLES / "ocean.nc") == first
    finally:
        library.close()
