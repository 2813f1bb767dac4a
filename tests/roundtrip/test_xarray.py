"""Every group of every file: xarray's zarr engine over the references against its netCDF engine over the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

from h5zarr.errors import H5ZarrError
from h5zarr.translating import translate
from tests.collections_of_files import SAMPLES, SHARED, parameters, sample_files, shared_files
from tests.refs.hierarchies import BIG
from tests.roundtrip.xarray_comparison import Agreement, compare
from tests.roundtrip.xarray_library import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = Engine()
    yield started
    started.close()


def check(path: Path, engine: Engine, record_property: pytest.RecordProperty) -> Agreement:
    try:
        translation = translate(path)
    except H5ZarrError as error:
        pytest.skip(f"h5zarr does not translate it: {error}")
    if any("in which it stands" in one.message for one in (*translation.warnings, *translation.problems)):
        pytest.skip("a group stands in itself, and the netCDF library would not end")
    shown = engine.show(path)
    if isinstance(shown, str):
        pytest.skip(f"the netCDF library does not open it: {shown}")
    found = compare(path, translation, shown)
    record_property("variables", found.variables)
    record_property("identical", found.identical)
    record_property("that differ as they are meant to", found.variables - found.identical - len(found.differences))
    assert not found.differences
    return found


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_open_in_xarray_as_with_its_netcdf_engine(path: Path, engine: Engine, record_property) -> None:
    check(path, engine, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_open_in_xarray_as_with_its_netcdf_engine(path: Path, engine: Engine, record_property) -> None:
    check(path, engine, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
def test_traps_open_in_xarray_as_with_its_netcdf_engine(path: Path, engine: Engine, record_property) -> None:
    check(path, engine, record_property)


# --- what is identical, and what the comparison sees


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    """A netCDF file that has nothing odd: coordinates, times, packed values of doubles, groups, missing data."""
    path = tmp_path / "ocean.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title = "Ocean"
        file.createDimension("time", None)
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2001-01-01"
        time[:] = [0, 1]
        file.createVariable("x", "i4", ("x",))[:] = [10, 20, 30]
        temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-9, zlib=True, shuffle=True)
        temp.scale_factor, temp.units = 0.5, "K"
        temp[:] = np.ma.masked_equal([[1, 2, 3], [4, 5, 6]], 5)
        flags = file.createGroup("quality").createVariable("flag", "i1", ("time", "x"))
        flags.flag_values = np.array([0, 1, 2], "i1")
        flags[:] = 1
    return path


def test_an_ordinary_netcdf_file_is_identical_in_every_way(ocean: Path, engine: Engine, record_property) -> None:
    found = check(ocean, engine, record_property)
    assert found.variables == found.identical == 4
    assert not found.meant


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("/temp", {"attributes": {"units": "C"}}, "/temp: text ['C'] is ['K']"),
        ("/temp", {"attributes": {"units": "K"}}, "/temp@_FillValue: is missing"),
        ("/temp", {"dimension_names": ("time", "y")}, "/temp: dimensions ('time', 'y') (2, 3) are"),
        ("/quality/flag", {"data_type": "uint8", "fill_value": 0}, "/quality/flag: type uint8 is int8"),
        ("/x", {"codecs": (BIG,)}, "/x: values"),
    ],
)
def test_the_comparison_sees_what_differs(
    ocean: Path, engine: Engine, path: str, change: dict[str, Any], message: str
) -> None:
    translation = translate(ocean)
    node = replace(translation.arrays()[path], **change)
    hierarchy = replace(translation.hierarchy, nodes={**translation.hierarchy.nodes, path: node})
    shown = engine.show(ocean)
    assert not isinstance(shown, str)
    found = compare(ocean, replace(translation, hierarchy=hierarchy), shown)
    assert any(one.startswith(message) for one in found.differences), found.differences


def test_the_process_survives_a_file_that_kills_the_library(tmp_path: Path, engine: Engine, ocean: Path) -> None:
    path = tmp_path / "half.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4, dtype="f2"), fillvalue=1)
    engine.show(path)  # some releases of the library end here
    assert isinstance(engine.show(ocean), dict)
