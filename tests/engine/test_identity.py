"""Every group of every file: the engine's dataset is identical to that of xarray's netCDF engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

from h5zarr.errors import H5ZarrError
from h5zarr.translating import Translation, translate
from tests.collections_of_files import any_samples, any_shared
from tests.engine.comparison import Agreement, compare
from tests.engine.h5netcdf_view import compare_loosely
from tests.roundtrip.xarray_library import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = Engine("tests.engine.netcdf_worker")
    yield started
    started.close()


def translated(path: Path) -> Translation:
    try:
        translation = translate(path)
    except H5ZarrError as error:
        pytest.skip(f"h5zarr does not translate it: {error}")
    if any("in which it stands" in one.message for one in (*translation.warnings, *translation.problems)):
        pytest.skip("a group stands in itself, and the netCDF library would not end")
    return translation


def check(path: Path, engine: Engine, record_property: pytest.RecordProperty) -> None:
    translation = translated(path)
    shown = engine.show(path)
    if isinstance(shown, str):
        loosely = compare_loosely(path, translation)
        found = Agreement()
    else:
        found = compare(path, translation, shown)
        loosely = compare_loosely(path, translation, sorted(found.unopened))
    record_property("variables", found.variables)
    record_property("identical", found.identical)
    record_property("that netCDF4 does not open, compared with h5netcdf", loosely.variables)
    for place, reason in sorted(found.excused, key=str):
        record_property(reason.value, 1)
        print(f"{path.name}: {place}: {reason.value}")  # one by one, to be seen with `pytest -rP`
    assert not found.differences
    assert not loosely.differences


@pytest.mark.parametrize("path", any_samples())
def test_sample_files_are_identical(path: Path, engine: Engine, record_property: pytest.RecordProperty) -> None:
    check(path, engine, record_property)


@pytest.mark.parametrize("path", any_shared("corpus"))
def test_real_files_are_identical(path: Path, engine: Engine, record_property: pytest.RecordProperty) -> None:
    check(path, engine, record_property)


@pytest.mark.parametrize("path", any_shared("traps"))
def test_traps_are_identical(path: Path, engine: Engine, record_property: pytest.RecordProperty) -> None:
    check(path, engine, record_property)


# --- what the comparison sees


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    """A netCDF file with coordinates, times, packed values, a group, missing data, and types of all sorts."""
    path = tmp_path / "ocean.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title, file.version = "Ocean", np.int16(3)
        file.createDimension("time", None)
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2001-01-01"
        time[:] = [0, 1]
        file.createVariable("x", ">i4", ("x",), endian="big")[:] = [10, 20, 30]
        temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-9, zlib=True, complevel=2)
        temp.scale_factor, temp.units, temp.coordinates = np.float32(0.1), "K", "land"
        file.createVariable("land", "S1", ("x",))[:] = [b"y", b"n", b"y"]
        temp[:] = np.ma.masked_equal([[1, 2, 3], [4, 5, 6]], 5)
        flags = file.createGroup("quality").createVariable("flag", "i1", ("time", "x"))
        flags.flag_values = np.array([0, 1, 2], "i1")
        flags[:] = 1
    return path


def agreement(ocean: Path, engine: Engine, **changed: Any) -> Agreement:
    """Return how the references agree, after some nodes of them were changed."""
    translation = translate(ocean)
    nodes = {path: replace(translation.hierarchy.nodes[path], **change) for path, change in changed.items()}
    hierarchy = replace(translation.hierarchy, nodes={**translation.hierarchy.nodes, **nodes})
    shown = engine.show(ocean)
    assert not isinstance(shown, str)
    return compare(ocean, replace(translation, hierarchy=hierarchy), shown)


def test_an_ordinary_file_is_identical_without_an_excuse(ocean: Path, engine: Engine) -> None:
    found = agreement(ocean, engine)
    assert (found.variables, found.identical, found.groups) == (5, 5, 4)
    assert not found.excused
    assert not found.differences


@pytest.mark.parametrize(
    ("path", "key", "change", "message"),
    [
        ("/", "version", 4, "/@version"),
        ("/", "_nc_attribute_types", {}, "/@version"),
        ("/", "_nc_attribute_types", {"": {"version": "int16"}}, "/temp@scale_factor"),
        ("/temp", "_FillValue", -8, "/temp@_FillValue"),
        ("/temp", "units", "C", "/temp@units"),
        ("/temp", "coordinates", "", "/: coordinates"),
        ("/", "_nc_encoding", {"variables": {}}, "/: unlimited"),
        ("/", "_nc_encoding", {"unlimited": ["time"]}, "/temp@@chunksizes"),
        ("/", "_nc_encoding", {"unlimited": ["time"]}, "/temp@@zlib"),
        ("/", "_nc_encoding", {"variables": {"temp": {"filters": [[1, [3]]]}}}, "/temp@@complevel"),
        ("/", "_nc_encoding", {"variables": {"x": {"number": "<i4"}}}, "/x@@dtype"),
        ("/", "_nc_encoding", {"variables": {"temp": {"foreign": ["units"]}}}, "/temp@units: is missing"),
    ],
)
def test_the_comparison_sees_what_differs(
    ocean: Path, engine: Engine, path: str, key: str, change: Any, message: str
) -> None:
    attributes = {**translate(ocean).hierarchy.nodes[path].attributes, key: change}
    found = agreement(ocean, engine, **{path: {"attributes": attributes}})
    assert any(one.startswith(message) for one in found.differences), found.differences


def test_the_comparison_sees_other_dimensions(ocean: Path, engine: Engine) -> None:
    found = agreement(ocean, engine, **{"/x": {"dimension_names": ("y",)}})
    assert any(one.startswith("/x: dimensions ('y',)") for one in found.differences), found.differences
