"""Every group of every file, through h5zarr's engine and through xarray's zarr engine, against its netCDF engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import netCDF4
import pytest

from h5zarr.commands.translate.translate import translate
from tests.collections_of_files import any_samples, name_of, translatable_shared
from tests.truth.agreement import Agreement
from tests.truth.datasets_against_netcdf import compare, compare_through_zarr, compare_with_h5netcdf
from tests.truth.netcdf_library import CRASHED, NetcdfLibrary
from tests.truth.unreadable import BY_CHANCE, CYCLIC, NETCDF_RELEASE, NOT_OPENED_BY_NETCDF


@pytest.fixture(scope="module")
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


def check(path: Path, library: NetcdfLibrary, record_property: pytest.RecordProperty) -> None:
    """Compare one file. What the netCDF library does not open is compared with h5netcdf."""
    translation = translate(path)
    shown = library.datasets(path) if name_of(path) not in CYCLIC else "a group contains itself"
    if isinstance(shown, str):
        # A crash says nothing about h5zarr. It depends on what is in memory, so no list of such files is complete.
        is_crash = shown.startswith(CRASHED)
        assert is_crash or name_of(path) in NOT_OPENED_BY_NETCDF or name_of(path) in CYCLIC, shown
        record_property("files that crash the netCDF library", int(is_crash))
        found, through_zarr = Agreement(), Agreement()
        others = compare_with_h5netcdf(path, translation)
    else:
        is_listed = NOT_OPENED_BY_NETCDF.get(name_of(path), BY_CHANCE[0]) not in BY_CHANCE
        assert not (is_listed and netCDF4.__netcdf4libversion__ == NETCDF_RELEASE), "the list is out of date"
        found, through_zarr = compare(path, translation, shown), compare_through_zarr(path, translation, shown)
        others = compare_with_h5netcdf(path, translation, sorted(found.unopened))
    record_property("variables", len(found.compared))
    record_property("identical", found.identical)
    record_property("identical through zarr", through_zarr.identical)
    record_property("that netCDF4 does not open, compared with h5netcdf", len(others.compared))
    for _, reason in sorted(found.allowed, key=str):
        record_property(reason.value, 1)
    for kind, agreement in {"engine": found, "zarr": through_zarr, "h5netcdf": others}.items():
        for place, reason in sorted(agreement.allowed, key=str):
            print(f"{path.name}: {place}: {kind}: {reason.value}")  # `pytest -rP` shows each
    assert not found.differences
    assert not through_zarr.differences
    assert not others.differences


@pytest.mark.parametrize("path", any_samples())
def test_sample_files_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_real_files_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)


@pytest.mark.parametrize("path", translatable_shared("traps"))
def test_traps_are_identical(path: Path, library: NetcdfLibrary, record_property) -> None:
    check(path, library, record_property)
