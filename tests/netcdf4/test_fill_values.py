"""What unwritten space reads as, inside a dataset and beyond its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

from h5zarr.errors import Unrepresentable
from h5zarr.formats import scan
from h5zarr.netcdf4.element_forms import interpret_element
from h5zarr.netcdf4.fill_values import fill_beyond, interpret_fill
from sample_data.recipes import libhdf5


def fills(tmp_path: Path, dtype: Any, **options: Any) -> tuple[Any, Any]:
    """Return both fill values of a dataset."""
    with h5py.File(tmp_path / "fill.h5", "w") as file:
        file.create_dataset("x", (4,), dtype, chunks=(2,), **options)
    ((_, dataset),) = scan(str(tmp_path / "fill.h5")).datasets()
    form = interpret_element(dataset.datatype)
    return interpret_fill(dataset, form), fill_beyond(dataset, form)


@pytest.mark.parametrize("code", ["i1", ">i2", "<u8", "<f4", ">f8"])
def test_a_fill_value_of_the_user_holds_everywhere(code: str, tmp_path: Path) -> None:
    inside, beyond = fills(tmp_path, code, fillvalue=7)
    assert inside.dtype == beyond.dtype == np.dtype(code)
    assert inside == beyond == 7
    assert inside.shape == ()


@pytest.mark.parametrize(
    "code", sorted(set(netCDF4.default_fillvals) & {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"})
)
def test_without_one_it_is_zero_inside_and_the_default_of_netcdf_beyond(code: str, tmp_path: Path) -> None:
    inside, beyond = fills(tmp_path, code)
    assert inside is None
    assert beyond == np.array(netCDF4.default_fillvals[code], code)


def test_a_nan_keeps_its_bits(tmp_path: Path) -> None:
    payload = np.array([0x7FC00001], "<u4").view("<f4")[0]
    inside, _ = fills(tmp_path, "<f4", fillvalue=payload)
    assert inside.tobytes() == payload.tobytes()


def test_text_has_no_fill_value(tmp_path: Path) -> None:
    assert fills(tmp_path, h5py.string_dtype(), fillvalue="none") == (None, None)


@pytest.mark.parametrize(("elements", "expected"), [((3, 3), 3), ((3, 4), None)])
def test_the_fill_value_of_an_array_type_must_be_the_same_for_all(
    elements: tuple[int, int], expected: int | None, tmp_path: Path
) -> None:
    kind = h5py.h5t.array_create(h5py.h5t.STD_I16LE, (2,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    libhdf5.call("H5Pset_fill_value", plist, kind, np.array(elements, "<i2").ctypes.data)
    with h5py.File(tmp_path / "fill.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((4,)), plist)
    ((_, dataset),) = scan(str(tmp_path / "fill.h5")).datasets()
    form = interpret_element(dataset.datatype)
    if expected is not None:
        assert interpret_fill(dataset, form) == expected
        return
    with pytest.raises(Unrepresentable, match="the fill value is an array"):
        interpret_fill(dataset, form)
