"""Every group of every file, through h5zarr's engine and through xarray's zarr engine, against its netCDF engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from h5zarr.commands.translate.translate import translate
from tests.collections_of_files import any_samples, name_of, translatable_shared
from tests.truth.datasets_against_h5netcdf import compare_loosely
from tests.truth.datasets_against_netcdf import Agreement, compare, compare_through_zarr
from tests.truth.netcdf_library import NetcdfLibrary
from tests.truth.unreadable import CYCLIC, NOT_OPENED_BY_NETCDF


@pytest.fixture(scope="module")
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


def check(path: Path, library: NetcdfLibrary, record_property: pytest.RecordProperty) -> None:
    """Compare one file; with h5netcdf what the netCDF library does not open."""
    translation = translate(path)
    shown = library.datasets(path) if name_of(path) not in CYCLIC else "a group contains itself"
    if isinstance(shown, str):
        assert name_of(path) in NOT_OPENED_BY_NETCDF or name_of(path) in CYCLIC, shown
        found, through_zarr = Agreement(), Agreement()
        loosely = compare_loosely(path, translation)
    else:
        found, through_zarr = compare(path, translation, shown), compare_through_zarr(path, translation, shown)
        loosely = compare_loosely(path, translation, sorted(found.unopened))
    record_property("variables", found.variables)
    record_property("identical", found.identical)
    record_property("identical through zarr", through_zarr.identical)
    record_property("that netCDF4 does not open, compared with h5netcdf", loosely.variables)
    for place, reason in sorted(found.allowed, key=str):
        record_property(reason.value, 1)
        print(f"{path.name}: {place}: {reason.value}")  # one by one, to be seen with `pytest -rP`
    assert not found.differences
    assert not through_zarr.differences
    assert not loosely.differences


@pytest.mark.parametrize("path", any_samples())
def test_sample_files_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_real_files_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", translatable_shared("traps"))
def test_traps_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)
