"""Elements of every type, as netCDF4 shows them; and what is announced before they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5t

from h5zarr.engine.elements import Change, Presentation, choose_presentation, present, stored_dtype
from h5zarr.errors import Unrepresentable
from h5zarr.tree import StoredForm
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest
from tests.engine.made import check_identical

REFERRING = {"inline_bytes": 0}
GAPS = {"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8], "itemsize": 24}


def odd(base: Any, precision: int, bit_offset: int = 0, nbytes: int | None = None) -> Any:
    made = base.copy()
    made.set_precision(precision)
    made.set_offset(bit_offset)
    if nbytes is not None:
        made.set_size(nbytes)
    return made


def text(nbytes: int, padding: int) -> Any:
    made = h5t.C_S1.copy()
    made.set_size(nbytes)
    made.set_strpad(padding)
    return made


def write(path: Path, kind: Any, stored: bytes, shape: tuple[int, ...]) -> None:
    """Write a dataset of some type from its exact bytes in the file."""
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
        dataset = h5py.h5d.create(file.id, b"x", kind, space)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(stored, f"V{kind.get_size()}"), mtype=kind)


@pytest.mark.parametrize("options", [{}, REFERRING], ids=["inlined", "referred to"])
@pytest.mark.parametrize(
    "kind",
    [
        *("i1", "u1", "<i2", ">i2", "<i8", ">u8", "<f4", ">f4", ">f8", "S1", "S5"),
        h5py.enum_dtype({"A": 1, "B": 2}, basetype="<i2"),
        h5py.enum_dtype({"A": 1, "B": 2}, basetype=">i4"),
        [("a", "i1"), ("b", "<f8")],
        [("a", ">i2"), ("b", ">f8")],
        GAPS,
    ],
    ids=str,
)
def test_types_of_numpy_are_identical(kind: Any, options: dict[str, Any], tmp_path: Path) -> None:
    dtype, path = np.dtype(kind), tmp_path / "x.h5"
    stored = np.random.default_rng(1).integers(0, 2, 4 * dtype.itemsize, np.uint8).tobytes()
    values = np.frombuffer(stored, dtype)
    if (members := h5py.check_enum_dtype(dtype)) is not None:
        values = np.array([*members.values()] * 2, dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values.reshape(2, 2), dtype=dtype)
        file.create_dataset("scalar", data=values[3], dtype=dtype)
    check_identical(path, 2, options)


@pytest.mark.parametrize("options", [{}, REFERRING], ids=["inlined", "referred to"])
@pytest.mark.parametrize(
    "kind",
    [
        odd(h5t.STD_I16LE, 12),
        odd(h5t.STD_I16BE, 9, 2),
        odd(h5t.STD_U32BE, 20),
        odd(h5t.STD_I32LE, 24, nbytes=3),
        odd(h5t.STD_I64BE, 40, nbytes=5),
    ],
    ids=["12 of 16", "9 of 16, big, moved", "20 of 32, big", "3 bytes", "5 bytes, big"],
)
def test_integers_of_odd_precision_are_identical(kind: Any, options: dict[str, Any], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((4,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 1, 100, 255], "i8"))
    check_identical(tmp_path / "x.h5", 1, options)


@pytest.mark.parametrize("options", [{}, REFERRING], ids=["inlined", "referred to"])
@pytest.mark.parametrize(
    ("padding", "stored"),
    [
        (h5t.STR_NULLPAD, b"ab\0\0\0abcde\xc3\xa9\0\0\0"),
        (h5t.STR_NULLPAD, b"a\0cde     \0bcde"),
        (h5t.STR_NULLTERM, b"ab\0xyabcde\0\0\0\0\0"),
        (h5t.STR_SPACEPAD, b"ab   abcde     "),
        (h5t.STR_SPACEPAD, b"  a  \xc3\xa9   a b c"),
    ],
    ids=["filled with NULs", "NULs inside", "ended by NULs", "filled with blanks", "blanks before"],
)
def test_text_of_fixed_length_is_identical(
    padding: int, stored: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    write(tmp_path / "x.h5", text(5, padding), stored, (3,))
    check_identical(tmp_path / "x.h5", 1, options)
    write(tmp_path / "scalar.h5", text(5, padding), stored[:5], ())
    check_identical(tmp_path / "scalar.h5", 1, options)


def test_text_of_any_length_is_identical(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("names", str, ("x",))[:] = np.array(["ab", "", "grün"], object)
        file.createVariable("one", str, ())[...] = "text"
        file.createVariable("unwritten", str, ("x",), fill_value="none")
        file.createVariable("letters", "S1", ("x",), fill_value=b"-")[:2] = [b"a", b"b"]
    check_identical(path, 4)


def test_classic_files_are_identical(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("x", 3)
        file.createDimension("time", None)
        for code in ("i1", "u1", "i2", "u4", "i8", "f4", "f8"):
            made = file.createVariable(code, code, ("time", "x"), fill_value=7)
            made.valid_range, made.CLASS = np.array([1, 2], code), "seen in such files"
            made[:] = [[1, 2, 3]]
        file.createVariable("letters", "S1", ("x",), fill_value=b"-")[:2] = [b"a", b"b"]
    check_identical(path, 8)


# --- without a file


def array(data_type: Any, codec: Any = None) -> ArrayNode:
    none = np.empty(0, np.int64)
    return ArrayNode(
        grid=RegularGrid((2,), (2,)),
        data_type=data_type,
        codecs=(codec or {"name": "bytes", "configuration": {"endian": "little"}},),
        fill_value=0,
        dimension_names=("x",),
        attributes={},
        manifest=Manifest(index=np.empty((0, 1), np.int64), address=none, nbytes=none),
    )


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        ("int16", "<i2"),
        ("bool", "?"),
        ("complex64", "<c8"),
        ("string", "O"),
        ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}, "S3"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 3}}, "V3"),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}, "<M8[10s]"),
        ({"name": "structured", "configuration": {"fields": [["a", "int8"], ["b", "float32"]]}}, "i1,<f4"),
    ],
)
def test_every_type_of_ours_has_one_of_numpys(data_type: Any, expected: str) -> None:
    found = stored_dtype(array(data_type))
    assert found == (np.dtype([("a", "i1"), ("b", "<f4")]) if "," in expected else np.dtype(expected))


def test_a_type_that_is_not_known_is_named() -> None:
    with pytest.raises(Unrepresentable, match="fancy"):
        stored_dtype(array({"name": "fancy"}))


def test_letters_that_are_not_utf8_are_latin1_one_by_one() -> None:
    shown = Presentation(dtype=np.dtype(object), in_encoding=str, change=Change.FIXED_TEXT)
    assert present(np.array([b"\xe9t\xe9", "é".encode()]), shown).tolist() == ["été", "é"]


def test_the_announced_and_the_returned_type_are_equal() -> None:
    shown = choose_presentation(array("int16"), StoredForm(number=">u4"))
    assert shown.dtype == shown.in_encoding == np.dtype(">u4")
    assert present(np.array([1, 2], "i2"), shown).dtype == np.dtype(">u4")
