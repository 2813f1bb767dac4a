"""Attributes of every type, on variables and groups, as netCDF4 gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5t

from h5zarr.engine.netcdf_attributes import restore_attributes, restore_fill
from h5zarr.netcdf_names import HIDDEN
from tests.engine.made import check_identical

RECORD = [("a", "<i2"), ("b", "<f8")]
ENUM = h5py.enum_dtype({"A": 1, "B": 2}, basetype="<i2")


# On what netCDF did not write these make the library fail, sometimes for good.
KILLING = {"_Netcdf4Coordinates", "_Netcdf4Dimid", "_nc3_strict", "DIMENSION_LIST"}


class Raw:
    """Text with its exact bytes in the file."""

    def __init__(self, nbytes: int, padding: int, stored: bytes, shape: tuple[int, ...] = ()) -> None:
        self.kind = h5t.C_S1.copy()
        self.kind.set_size(nbytes)
        self.kind.set_strpad(padding)
        self.stored, self.shape = stored, shape

    def write(self, place: Any, name: str) -> None:
        space = h5py.h5s.create_simple(self.shape) if self.shape else h5py.h5s.create(h5py.h5s.SCALAR)
        made = h5py.h5a.create(place.id, name.encode(), self.kind, space)
        made.write(np.frombuffer(self.stored, f"V{self.kind.get_size()}").reshape(self.shape), mtype=self.kind)


VALUES: dict[str, Any] = {
    "int64": np.int64(1),
    "int16": np.int16(1),
    "uint64": np.uint64(1 << 63),
    "float32": np.float32(0.1),
    "float64": 0.1,
    "nan": np.float32(np.nan),
    "infinite": np.array([np.inf, -np.inf]),
    "one_in_an_array": np.array([1], "i2"),
    "several": np.array([1, 2], "i1"),
    "several_int64": np.array([1, 2]),
    "several_float64": np.array([1.0, 2.0]),
    "big": np.array([1, 2], ">i2"),
    "big_float": np.array(3, ">f4"),
    "text": "abc",
    "letters": "é",
    "empty_text": "",
    "texts": ["a", "bc"],
    "one_text": ["a"],
    "fixed": np.bytes_(b"abc"),
    "fixed_texts": np.array([b"a", b"bcd"], "S3"),
    "nul_inside": Raw(5, h5t.STR_NULLPAD, b"a\0bc\0"),
    "blanks": Raw(5, h5t.STR_NULLPAD, b"ab   "),
    "padded": Raw(5, h5t.STR_SPACEPAD, b"ab   "),
    "padded_letters": Raw(6, h5t.STR_SPACEPAD, "é".encode() + b"    "),
    "padded_texts": Raw(3, h5t.STR_SPACEPAD, b"ab c  ", (2,)),
    "nul_in_texts": Raw(3, h5t.STR_NULLTERM, b"a\0bc\0\0", (2,)),
    "letter": Raw(1, h5t.STR_NULLPAD, b"x"),
    "letters_one_by_one": Raw(1, h5t.STR_NULLPAD, b"xy", (2,)),
    "null_number": h5py.Empty("f4"),
    "null_fixed": h5py.Empty("S4"),
    "null_text": h5py.Empty(h5py.string_dtype()),
    "none": np.zeros(0, "i4"),
    "no_float64": np.zeros(0),
    "no_texts": np.zeros(0, "S3"),
    "half": np.float16(1.5),
    "opaque": np.void(b"abc"),
    "_nc_mine": "seen",
    "least_significant_digit": np.int64(3),
    **dict.fromkeys(sorted(HIDDEN - KILLING), "hidden"),
}


@pytest.mark.parametrize("name", VALUES)
def test_attributes_are_identical(name: str, tmp_path: Path) -> None:
    path, value = tmp_path / "attributes.h5", VALUES[name]
    with h5py.File(path, "w") as file:
        for place in (file.create_dataset("v", data=[1.0]), file.create_group("g"), file):
            if isinstance(value, Raw):
                value.write(place, name)
            else:
                place.attrs[name] = value
    check_identical(path, 1)


@pytest.mark.parametrize("value", [np.float32(-999.0), np.int64(7), "x", np.array([1.0, 2.0])], ids=repr)
def test_what_means_something_on_a_variable_is_an_attribute_like_others_on_a_group(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "groups.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=[1.0])
        for place in (file, file.create_group("g")):
            for name in ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "units", "dtype"):
                place.attrs[name] = value
    check_identical(path, 1)


@pytest.mark.parametrize(
    "value",
    [
        np.array((1, 2.5), RECORD),
        np.array([(1, 2.5), (3, 4)], RECORD),
        np.array((1, 2.5), [("a", ">i2"), ("b", ">f8")]),
    ],
    ids=["one", "several", "big-endian"],
)
def test_records_are_identical_where_netcdf_knows_their_type(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "records.h5"
    with h5py.File(path, "w") as file:
        file["known"] = np.zeros(2, RECORD)
        file["known"].attrs["record"] = value
        file.attrs["record"] = value
    check_identical(path, 1)


def test_enumerations_and_references_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "others.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("known", data=np.array([1, 2], "i2"), dtype=ENUM)
        for place in (file, file["known"]):
            place.attrs.create("known", np.int16(2), dtype=ENUM)
            place.attrs["target"] = file["known"].ref
    check_identical(path, 1)


@pytest.mark.parametrize(
    ("code", "fill"),
    [
        ("i2", np.int16(-9)),
        ("i2", np.float64(-9)),
        ("i2", np.float32(1e20)),
        ("u1", np.int16(-1)),
        ("f4", np.float32(1e20)),
        ("f4", np.float64(1e20)),
        ("f4", np.float64(-9999.9)),
        ("f8", np.float64(np.nan)),
        ("f8", np.array([np.inf])),
        ("i4", np.array([1, 2], "i4")),
        (">i4", np.array(7, ">i4")),
        ("i2", "text"),
    ],
    ids=str,
)
def test_fill_values_of_any_type_are_identical(code: str, fill: Any, tmp_path: Path) -> None:
    path = tmp_path / "fill.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(4).astype(code)
        file["v"].attrs["_FillValue"] = fill
    check_identical(path, 1)


def test_fill_values_of_packed_and_unsigned_values_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "packed.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        packed = file.createVariable("packed", "i2", ("x",), fill_value=-1)
        packed.set_auto_maskandscale(False)
        packed.scale_factor, packed.add_offset, packed.missing_value = np.float32(0.1), np.float32(5), np.int16(-2)
        packed[:] = [-1, -2, 3]
        unsigned = file.createVariable("unsigned", "i1", ("x",), fill_value=-1)
        unsigned.set_auto_maskandscale(False)
        unsigned._Unsigned = "true"
        unsigned[:] = [-1, -2, 3]
    check_identical(path, 2)


# --- without a file


def test_references_of_others_have_no_types_and_get_the_usual_ones() -> None:
    restored = restore_attributes({"a": 1, "b": 1.5, "c": [1, 2], "d": [1, 2.5], "e": "x", "f": ["x", "y"]}, {})
    assert [type(one).__name__ for one in restored.values()] == [
        "int64",
        "float64",
        "ndarray",
        "ndarray",
        "str",
        "list",
    ]
    assert (restored["c"].dtype, restored["d"].dtype) == (np.dtype("i8"), np.dtype("f8"))


def test_nested_lists_and_objects_stay_what_they_are() -> None:
    value = {"box": [{"a": [1, "x"]}], "object": {"a": 1}, "table": [[1, 2], [3, 4]]}
    restored = restore_attributes(value, {})
    assert restored["box"] == [{"a": [1, "x"]}]
    assert restored["object"] == {"a": 1}
    assert np.array_equal(restored["table"], [[1, 2], [3, 4]])


def test_a_fill_value_is_of_the_type_that_is_shown() -> None:
    assert restore_fill({}, None, np.dtype("f4")) == {}
    (fill,) = restore_fill({"_FillValue": "AAAA4P//70c="}, None, np.dtype(">f4")).values()
    assert (fill, fill.dtype) == (np.float32(3.4028234663852886e38), np.dtype("f4"))
