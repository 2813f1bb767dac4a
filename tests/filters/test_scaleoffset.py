from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5p, h5t
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from h5zarr.errors import MalformedFile
from h5zarr.filters import scaleoffset
from h5zarr.filters.pipeline import undo_filters
from sample_data.recipes import libhdf5
from tests.filters.written import Written, properties, read_by_hdf5, write_with

INTEGERS = ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">i8", "<u8")
FLOATS = ("<f4", ">f4", "<f8", ">f8")
FILLS = ("undefined", "default", -7, 5)


def prepared(shape: tuple[int, ...], dtype: str, factor: int, fill: Any) -> h5p.PropDCID:
    is_float = np.dtype(dtype).kind == "f"
    kind = h5py.h5z.SO_FLOAT_DSCALE if is_float else h5py.h5z.SO_INT
    # Not with set_scaleoffset, by which h5py refuses negative numbers.
    dcpl = properties(shape, lambda dcpl: dcpl.set_filter(6, 0, (kind, factor % (1 << 32))))
    if fill == "undefined":
        libhdf5.call("H5Pset_fill_value", dcpl, h5t.py_create(np.dtype(dtype)), None)
    elif fill != "default":
        dcpl.set_fill_value(np.array(fill).astype(dtype))
    return dcpl


def check(values: np.ndarray, factor: int, fill: Any) -> Written:
    """Check both directions against libhdf5, and return the chunk."""
    dcpl = prepared(values.shape, values.dtype.str, factor, fill)
    chunk = write_with(values, dcpl)
    assert undo_filters(chunk.content, chunk.filters, chunk.mask, chunk.nbytes) == chunk.plain
    encoded = scaleoffset.encode(values.tobytes(), chunk.filters[0].values)
    assert read_by_hdf5(values, dcpl, encoded) == chunk.plain
    return chunk


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_restored(dtype: str, fill: Any) -> None:
    random = np.random.default_rng(1)
    limits = np.iinfo(dtype)
    for values in (
        random.integers(3, 100, 37),
        random.integers(max(limits.min, -60), 60, (5, 7)),
        np.full(11, 5),
        np.array([limits.min, limits.max] * 5, dtype),
        np.array([limits.max, limits.max - 1, limits.max - 100], dtype),
        np.array([limits.min, limits.min + 1], dtype),
        random.integers(limits.min, limits.max, 50, dtype=np.dtype(dtype).newbyteorder("=")),
    ):
        values = values.astype(dtype)
        assert check(values, 0, fill).plain == values.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_number_of_bits_may_be_given(dtype: str) -> None:
    values = np.random.default_rng(2).integers(20, 27, 50).astype(dtype)
    for nbits in (3, 5, 7, 8 * values.itemsize):
        assert check(values, nbits, "default").plain == values.tobytes()


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_restored_to_the_digit(dtype: str, fill: Any) -> None:
    values = np.random.default_rng(3).normal(2, 30, (7, 9)).astype(dtype)
    for digits in (-1, 0, 1, 3, 5):
        restored = np.frombuffer(check(values, digits, fill).plain, dtype).reshape(values.shape)
        rounding = np.finfo(dtype).eps * abs(values).max()
        assert abs(restored - values).max() <= 10.0**-digits + 2 * rounding


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_that_need_all_bits_are_stored_whole(dtype: str) -> None:
    values = np.array([-1e30, 1e30, 3.5], dtype)
    assert check(values, 9, "default").plain == values.tobytes()


def test_values_that_equal_the_fill_value_come_back_as_it() -> None:
    values = np.array([4, 5, 9, 5, 300], "<i4")
    assert check(values, 0, 5).plain == values.tobytes()
    assert check(np.full(9, 5, ">i2"), 0, 5).plain == np.full(9, 5, ">i2").tobytes()


@settings(max_examples=60, deadline=None)
@given(
    values=hnp.arrays(st.sampled_from(INTEGERS), st.integers(1, 70)),
    fill=st.integers(0, 100) | st.none(),
)
def test_integers_survive_encoding(values: np.ndarray, fill: int | None) -> None:
    chosen = scaleoffset.Settings(
        count=values.size,
        kind="integer",
        element_nbytes=values.itemsize,
        signed=values.dtype.kind == "i",
        byte_order="big" if values.dtype.str[0] == ">" else "little",
        factor=0,
        fill=None if fill is None else hex(fill),
    )
    assert scaleoffset.Settings.from_values(chosen.to_values()) == chosen
    encoded = scaleoffset.encode(values.tobytes(), chosen.to_values())
    assert scaleoffset.decode(encoded, chosen.to_values(), values.nbytes) == values.tobytes()


def settings_values(**changed: Any) -> tuple[int, ...]:
    usual: dict[str, Any] = {
        "count": 10,
        "kind": "float",
        "element_nbytes": 4,
        "signed": True,
        "byte_order": "little",
        "factor": 2,
    }
    return scaleoffset.Settings(**(usual | changed)).to_values()


def test_what_is_not_finite_cannot_be_encoded() -> None:
    values = np.array([1, np.nan] * 5, "<f4")
    with pytest.raises(ValueError, match="infinities or NaN"):
        scaleoffset.encode(values.tobytes(), settings_values())


def test_a_chunk_of_another_size_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="expects 40 bytes, not 39"):
        scaleoffset.encode(bytes(39), settings_values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "shorter than its header"),
        (bytes(20), "shorter than its header"),
        (b"\x21" + bytes(100), "elements of 33 bits"),
        (b"\x20\0\0\0\x08" + bytes(16 + 39), "39 bytes, expected 40"),
        (b"\x09\0\0\0\x08" + bytes(16 + 11), "11 bytes of 10 x 9 bits"),
    ],
)
def test_broken_content_is_malformed(content: bytes, message: str) -> None:
    with pytest.raises(MalformedFile, match=message):
        scaleoffset.decode(content, settings_values(), 40)


def test_no_more_is_allocated_than_a_chunk_needs() -> None:
    with pytest.raises(MalformedFile, match="claims to hold 4294967292 bytes, but the chunk has 40"):
        scaleoffset.decode(bytes(100), settings_values(count=2**30 - 1), 40)


@pytest.mark.parametrize(
    "values",
    [(), (1,) * 20, (2, 0, 10, 0, 3) + (0,) * 15, (0, 0, 10, 1, 2) + (0,) * 15, (2, 40, 10, 0, 4) + (0,) * 15],
)
def test_impossible_client_data_are_malformed(values: tuple[int, ...]) -> None:
    with pytest.raises(MalformedFile, match="impossible client data"):
        scaleoffset.decode(bytes(100), values, 40)
