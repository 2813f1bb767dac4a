"""The comparison of datasets sees what is wrong: a fault planted in the references is a difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.tree import AttributeNotes, StoredForm
from h5zarr.zarr_model.hierarchy import GroupRecord, VariableRecord
from h5zarr.zarr_model.record import RecordedFilter
from tests.containers.hierarchies import BIG, with_hierarchy
from tests.truth.datasets_against_netcdf import Agreement, compare, compare_through_zarr
from tests.truth.netcdf_library import NetcdfLibrary


@pytest.fixture(scope="module")
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


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


def agreement(ocean: Path, library: NetcdfLibrary, **changed: Any) -> Agreement:
    """Return how the references agree, after some nodes of them were changed."""
    translation = translate(ocean)
    nodes = {path: replace(translation.hierarchy.nodes[path], **change) for path, change in changed.items()}
    hierarchy = replace(translation.hierarchy, nodes={**translation.hierarchy.nodes, **nodes})
    shown = library.datasets(ocean)
    assert not isinstance(shown, str)
    return compare(ocean, with_hierarchy(translation, hierarchy), shown)


def test_an_ordinary_file_is_identical_without_an_allowed_difference(ocean: Path, library: NetcdfLibrary) -> None:
    found = agreement(ocean, library)
    assert (found.variables, found.identical, found.groups) == (5, 5, 4)
    assert not found.allowed
    assert not found.differences


@pytest.mark.parametrize(
    ("path", "key", "change", "message"),
    [
        ("/", "version", 4, "/@version"),
        ("/temp", "_FillValue", -8, "/temp@_FillValue"),
        ("/temp", "units", "C", "/temp@units"),
        ("/temp", "coordinates", "", "/: coordinates"),
    ],
)
def test_the_comparison_sees_what_differs(
    ocean: Path, library: NetcdfLibrary, path: str, key: str, change: Any, message: str
) -> None:
    attributes = {**translate(ocean).hierarchy.nodes[path].attributes, key: change}
    found = agreement(ocean, library, **{path: {"attributes": attributes}})
    assert any(one.startswith(message) for one in found.differences), found.differences


DEFLATED = StoredForm(filters=(RecordedFilter(number=1, values=(3,)),))
FOREIGN = StoredForm(notes=AttributeNotes(foreign=("units",)))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (GroupRecord(), "/@version"),
        (GroupRecord(types={"version": "int16"}), "/temp@scale_factor"),
        (GroupRecord(), "/: unlimited"),
        (GroupRecord(unlimited=("time",)), "/temp@@chunksizes"),
        (GroupRecord(unlimited=("time",)), "/temp@@zlib"),
        (GroupRecord(variables={"temp": VariableRecord(form=DEFLATED)}), "/temp@@complevel"),
        (GroupRecord(variables={"x": VariableRecord(form=StoredForm(number="<i4"))}), "/x@@dtype"),
        (GroupRecord(variables={"temp": VariableRecord(form=FOREIGN)}), "/temp@units: is missing"),
    ],
)
def test_the_comparison_sees_another_record(
    ocean: Path, library: NetcdfLibrary, record: GroupRecord, message: str
) -> None:
    found = agreement(ocean, library, **{"/": {"record": record}})
    assert any(one.startswith(message) for one in found.differences), found.differences


def test_the_comparison_sees_other_dimensions(ocean: Path, library: NetcdfLibrary) -> None:
    found = agreement(ocean, library, **{"/x": {"dimension_names": ("y",)}})
    assert any(one.startswith("/x: dimensions ('y',)") for one in found.differences), found.differences


# --- through xarray's zarr engine


@pytest.fixture
def plain_ocean(tmp_path: Path) -> Path:
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


def test_an_ordinary_netcdf_file_is_identical_through_zarr(plain_ocean: Path, library: NetcdfLibrary) -> None:
    shown = library.datasets(plain_ocean)
    assert not isinstance(shown, str)
    found = compare_through_zarr(plain_ocean, translate(plain_ocean), shown)
    assert found.variables == found.identical == 4
    assert not found.allowed
    assert not found.differences


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("/temp", {"attributes": {"units": "C"}}, "/temp@units: ('str', 'C') is ('str', 'K')"),
        ("/temp", {"attributes": {"units": "K"}}, "/temp@_FillValue: is missing"),
        ("/temp", {"dimension_names": ("time", "y")}, "/temp: dimensions ('time', 'y') (2, 3) are"),
        ("/quality/flag", {"data_type": "uint8", "fill_value": 0}, "/quality/flag: ('dtype', 'uint8'"),
        ("/x", {"codecs": (BIG,)}, "/x: ('dtype', 'int32'"),
    ],
)
def test_the_comparison_through_zarr_sees_what_differs(
    plain_ocean: Path, library: NetcdfLibrary, path: str, change: dict[str, Any], message: str
) -> None:
    translation = translate(plain_ocean)
    node = replace(translation.arrays()[path], **change)
    hierarchy = replace(translation.hierarchy, nodes={**translation.hierarchy.nodes, path: node})
    shown = library.datasets(plain_ocean)
    assert not isinstance(shown, str)
    found = compare_through_zarr(plain_ocean, with_hierarchy(translation, hierarchy), shown)
    assert any(one.startswith(message) for one in found.differences), found.differences


def test_the_process_survives_a_file_that_kills_the_library(
    tmp_path: Path, library: NetcdfLibrary, plain_ocean: Path
) -> None:
    path = tmp_path / "half.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(4, dtype="f2"), fillvalue=1)
    library.datasets(path)  # some releases of the library end here
    assert isinstance(library.datasets(plain_ocean), dict)
