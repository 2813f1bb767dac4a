"""Booleans and complex numbers, which HDF5 has and netCDF lacks, from files and references, as h5netcdf shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.engine.netcdf_attributes import restore_attributes
from h5zarr.errors import MalformedFile
from tests.truth.same import native, same_numbers

COUNT = 4
WIDE_BOOLEAN = h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, basetype="<i4")
BYTE_BOOLEAN = h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, basetype="u1")
ATTRIBUTES: dict[str, Any] = {
    "flag": np.True_,
    "flags": np.array([True, False]),
    "table": np.array([[True, False], [False, False]]),
    "number": np.complex64(1 - 2j),
    "double": np.complex128(1e300 + 1j),
    "numbers": np.array([1, 2j, -3], "c8"),
    "big": np.array([[1, 2j], [3j, 4]], ">c16"),
    "nans": np.array([complex(np.nan, 1), complex(-np.inf, 0)]),
    "none": np.zeros(0, "c8"),
}
BOOLEANS = np.array([True, False, True, True])
NUMBERS = np.array([1 + 2j, 3, 4j, -1])
VARIABLES: dict[str, tuple[Any, dict[str, Any]]] = {
    "b": (BOOLEANS, {}),
    "b_bytes": (BOOLEANS.astype(BYTE_BOOLEAN), {}),
    "b_wide": (BOOLEANS.astype(WIDE_BOOLEAN), {}),
    "b_false": (BOOLEANS, {"_FillValue": np.False_}),
    "b_true": (BOOLEANS, {"_FillValue": np.True_}),
    "b_int": (BOOLEANS, {"_FillValue": np.int8(0)}),
    "b_missing": (BOOLEANS, {"missing_value": np.False_}),
    "c8": (NUMBERS.astype("c8"), {}),
    "c16": (NUMBERS, {"_FillValue": np.complex128(4j)}),
    "c8_fill": (NUMBERS.astype("c8"), {"_FillValue": np.complex64(4j)}),
    "c8_big": (NUMBERS.astype(">c8"), {"_FillValue": np.array(4j, ">c8")}),
    "c8_double": (NUMBERS.astype("c8"), {"_FillValue": np.complex128(4j)}),
    "c8_real": (NUMBERS.astype("c8"), {"_FillValue": np.float32(3)}),
    "c8_missing": (NUMBERS.astype("c8"), {"missing_value": np.complex64(4j)}),
    "i_complex": (np.arange(COUNT), {"scale": np.complex64(1j)}),
}
OPENED = {
    "the file": None,
    "JSON, version 3": ("refs.json", {"zarr_format": 3}),
    "JSON, version 2": ("refs.json", {"zarr_format": 2}),
    "JSON, nothing inlined": ("refs.json", {"inline_bytes": 0}),
    "Parquet, version 2": ("refs.parquet", {"zarr_format": 2}),
    "Parquet, version 3": ("refs.parquet", {"zarr_format": 3}),
    "Icechunk": ("icechunk+file://{}/repository", {}),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with variables of these types, each with attributes of these types, along one dimension."""
    path = tmp_path_factory.mktemp("types") / "types.h5"
    with h5py.File(path, "w") as file:
        scale = file.create_dataset("x", data=np.arange(COUNT, dtype="f8"))
        scale.make_scale("x")
        for place in (file, file.create_group("group")):
            for name, (values, own) in VARIABLES.items():
                variable = place.create_dataset(name, data=values, chunks=(2,) if name == "c8" else None)
                variable.dims[0].attach_scale(scale)
                for key, value in own.items():
                    variable.attrs[key] = value
            place.create_dataset("scalar", data=np.complex64(1 + 1j))
            place.create_dataset("scalar_flag", data=np.True_)
            for key, value in ATTRIBUTES.items():
                place.attrs[key] = place["b"].attrs[key] = place["c8"].attrs[key] = value
    return path


@pytest.mark.parametrize("decoded", [True, False], ids=["decoded", "raw"])
@pytest.mark.parametrize("group", ["/", "/group"])
@pytest.mark.parametrize("form", OPENED)
def test_they_are_as_h5netcdf_shows_them(form: str, group: str, decoded: bool, path: Path, tmp_path: Path) -> None:
    source = str(path)
    if (references := OPENED[form]) is not None:
        name, options = references
        source = name.format(tmp_path) if "{}" in name else str(tmp_path / name)
        h5zarr.translate(path, source, **options)
    with (
        xr.open_dataset(source, engine="h5zarr", group=group, decode_cf=decoded) as ours,
        xr.open_dataset(path, engine="h5netcdf", group=group, decode_cf=decoded) as theirs,
    ):
        assert ours.variables.keys() == theirs.variables.keys()
        check_same(ours.attrs, theirs.attrs)
        for name, their in theirs.variables.items():
            mine = ours.variables[name]
            assert mine.dims == their.dims
            assert mine.dtype == their.dtype, name
            check_same({"values": mine.values}, {"values": their.values})
            check_same(mine.attrs, their.attrs)
            assert mine.encoding["dtype"] == their.encoding["dtype"]
            fills = [
                {key: one.encoding[key] for key in ("_FillValue",) if key in one.encoding} for one in (mine, their)
            ]
            check_same(*fills)


def check_same(mine: dict[str, Any], their: dict[str, Any]) -> None:
    """Fail unless these are the same names, with values of the same types, in whatever byte order."""
    assert mine.keys() == their.keys()
    for name, value in their.items():
        assert native(np.asarray(mine[name]).dtype) == native(np.asarray(value).dtype), name
        assert same_numbers(np.asarray(mine[name]), np.asarray(value)), name


def test_records_of_a_real_and_an_imaginary_part_are_complex_too(tmp_path: Path) -> None:
    path = tmp_path / "parts.h5"
    kind = np.dtype([("real", "<f4"), ("imag", "<f4")])
    with h5py.File(path, "w") as file:
        file["v"] = np.array([(1, 2), (3, 4)], kind)
        file["v"].attrs["_FillValue"] = np.array((3, 4), kind)
    with xr.open_dataset(path, engine="h5zarr") as opened:
        assert opened.v.dtype == np.complex64
        np.testing.assert_array_equal(opened.v.values, [1 + 2j, complex(np.nan, np.nan)])


@pytest.mark.parametrize("value", [1.0, [1.0, 2.0, 3.0]])
def test_a_record_that_calls_other_numbers_complex_is_an_error(value: Any) -> None:
    with pytest.raises(MalformedFile, match="does not have two parts"):
        restore_attributes({"z": value}, {"z": "complex64"})
