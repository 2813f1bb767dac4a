"""Attributes as a netCDF user knows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.formats import scan
from h5zarr.netcdf4.attribute_values import interpret_attribute


@pytest.fixture
def file(tmp_path: Path) -> Any:
    with h5py.File(tmp_path / "attributes.h5", "w") as made:
        yield made


def value(file: h5py.File) -> Any:
    """Return the attribute "a" of the root."""
    file.flush()
    scanned = scan(file.filename)
    return interpret_attribute(scanned.root.attributes["a"], scanned)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("metre", "metre"),
        (np.bytes_(b"metre"), "metre"),
        (np.bytes_(b"\xb5m"), "µm"),
        ("µm", "µm"),
        (np.array([b"a", b"bc"]), ["a", "bc"]),
        (np.array(["a"], h5py.string_dtype()), "a"),
        (np.array([["a", "b"], ["c", "d"]], h5py.string_dtype()), [["a", "b"], ["c", "d"]]),
        ("", ""),
        (h5py.Empty("S3"), ""),
        (h5py.Empty(h5py.string_dtype()), []),
        (np.array([], h5py.string_dtype()), []),
    ],
)
def test_text_is_text_whatever_it_was(given: Any, expected: Any, file: h5py.File) -> None:
    file.attrs["a"] = given
    assert value(file) == expected


@pytest.mark.parametrize("code", ["i1", "<u2", ">i4", "<f4", ">f8"])
def test_numbers_keep_type_and_shape(code: str, file: h5py.File) -> None:
    given = np.arange(6).astype(code).reshape(2, 3)
    file.attrs["a"] = given
    shown = value(file)
    np.testing.assert_array_equal(shown, given)
    assert shown.dtype.newbyteorder("=") == given.dtype.newbyteorder("=")


def test_an_attribute_without_values_is_empty(file: h5py.File) -> None:
    file.attrs["a"] = h5py.Empty("f4")
    assert value(file).shape == (0,)


def test_booleans_and_complex_numbers_are_what_they_mean(file: h5py.File) -> None:
    file.attrs["a"] = np.array([True, False])
    assert value(file).tolist() == [True, False]
    file.attrs["a"] = np.array([1 + 2j], "<c8")
    assert value(file).tolist() == [1 + 2j]


def test_enumerations_are_their_numbers(file: h5py.File) -> None:
    file.attrs.create("a", [1, 2], dtype=h5py.enum_dtype({"ONE": 1, "TWO": 2}, "<i2"))
    assert value(file).tolist() == [1, 2]


def test_sequences_are_lists(file: h5py.File) -> None:
    rows = np.empty(2, object)
    rows[:] = [np.array([1, 2], "<i4"), np.array([3], "<i4")]
    file.attrs.create("a", rows, dtype=h5py.vlen_dtype(np.dtype("<i4")))
    assert [part.tolist() for part in value(file)] == [[1, 2], [3]]


def test_references_are_the_paths_that_they_point_to(file: h5py.File) -> None:
    file.create_group("g/h")
    file.attrs["a"] = file["g/h"].ref
    assert value(file) == "/g/h"
    file.attrs.create("a", h5py.Reference(), dtype=h5py.ref_dtype)
    assert value(file) == ""


def test_records_with_text_are_mappings(file: h5py.File) -> None:
    dtype = np.dtype([("n", "<i2"), ("t", h5py.string_dtype())])
    file.attrs["a"] = np.array([(1, "x"), (2, "y")], dtype)
    shown = value(file)
    assert [(int(one["n"]), one["t"]) for one in shown] == [(1, "x"), (2, "y")]
