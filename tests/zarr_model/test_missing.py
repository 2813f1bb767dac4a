"""`_FillValue`: cast to the variable's type, in xarray's form, or left out with the reason."""

from __future__ import annotations

import base64
import struct
from typing import Any

import numpy as np
import pytest
from xarray.backends.zarr import FillValueCoder

from h5zarr.zarr_model.data_types import describe, find_type
from h5zarr.zarr_model.missing import (
    NotAFillValue,
    decode_missing,
    decode_missing_number,
    encode_missing,
    is_covered,
    wrong_missing,
)


def encode(value: Any, code: str, unsigned: str | None = None) -> Any:
    given = value if isinstance(value, str) else np.asarray(value)
    return encode_missing(given, np.dtype(code), unsigned)


def doubles(encoded: Any) -> list[float]:
    parts = encoded if isinstance(encoded, list) else [encoded]
    return [struct.unpack("<d", base64.b64decode(part))[0] for part in parts]


def test_a_float32_is_the_double_of_the_float32() -> None:
    assert encode(np.float32(3.4028235e38), "<f4") == "AAAA4P//70c="
    assert doubles(encode(np.float64(1e20), ">f4")) == [float(np.float32(1e20))] != [1e20]


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (np.int16(-9999), "<i2", -9999),
        (np.int64(-9999), "<i2", -9999),
        (np.float64(255.0), "u1", 255),
        (np.uint64(2**64 - 1), "<u8", 2**64 - 1),
        (np.int8(1), "?", True),
        ([np.int16(3)], "<i4", 3),
    ],
)
def test_an_integer_is_a_number_of_the_variables_type(value: Any, code: str, expected: Any) -> None:
    encoded = encode(value, code)
    assert encoded == expected
    assert type(encoded) is type(expected)


def test_nan_and_infinity_are_base64_of_doubles() -> None:
    assert np.isnan(doubles(encode(np.float32(np.nan), "<f8"))).all()
    assert doubles(encode(-np.inf, "<f2")) == [-np.inf]


def test_complex_numbers_are_two_doubles() -> None:
    assert doubles(encode(np.complex64(1 - 2j), "<c16")) == [1.0, -2.0]


@pytest.mark.parametrize(
    ("value", "code"), [(np.float32(-999.9), "<f4"), (7, "<i2"), (np.nan, ">f8"), (1 + 2j, "<c8"), (True, "?")]
)
def test_xarray_decodes_what_was_encoded(value: Any, code: str) -> None:
    dtype = np.dtype(code)
    decoded = FillValueCoder.decode(encode(value, code), dtype)
    np.testing.assert_array_equal(np.array(decoded, dtype), np.array(value, dtype))


@pytest.mark.parametrize(
    ("value", "code", "reason"),
    [
        (-9999, "u1", "outside the range of uint8, which is 0 to 255"),
        (256, "u1", "outside the range"),
        (np.nan, "<i2", "it is not an integer"),
        (1e20, "<i4", "outside the range"),
        (0.5, "<i4", "it is not an integer"),
        (1e300, "<f4", "outside the range of float32"),
        (1j, "<f4", "it is a complex number"),
        (1j, "<i2", "it is not an integer"),
        (2, "?", "outside the range of bool"),
        ([1, 2], "<i2", "it has 2 elements instead of one"),
        ([], "<i2", "it has 0 elements"),
        ("-9999", "<i2", "it is not a number"),
        (b"x", "<f4", "it is not a number"),
        ("x", "S4", "readers cannot mask values of type text of 4 bytes"),
        ("x", "O", "readers cannot mask values of type text"),
        (1, "<M8[s]", "readers cannot mask values"),
    ],
)
def test_what_cannot_mask_is_refused_with_the_reason(value: Any, code: str, reason: str) -> None:
    with pytest.raises(NotAFillValue, match=reason):
        encode(value, code)


def test_records_cannot_be_masked() -> None:
    with pytest.raises(NotAFillValue, match="records"):
        encode_missing(np.array(1), np.dtype([("a", "<i2")]))


@pytest.mark.parametrize(
    ("value", "code", "unsigned", "expected"),
    [
        (255, "i1", "true", -1),
        (128, "i1", "True", -128),
        (-1, "i1", "true", -1),
        (65535, "<i2", "true", -1),
        (-1, "u1", "false", 255),
        (-128, "u1", "False", 128),
        (200, "u1", "false", 200),
    ],
)
def test_with_unsigned_it_is_the_number_that_is_stored(value: int, code: str, unsigned: str, expected: int) -> None:
    assert encode(value, code, unsigned) == expected


@pytest.mark.parametrize(
    ("value", "code", "unsigned"), [(256, "i1", "true"), (-129, "u1", "false"), (255, "i1", "false")]
)
def test_unsigned_helps_only_within_the_width(value: int, code: str, unsigned: str) -> None:
    with pytest.raises(NotAFillValue, match="outside the range"):
        encode(value, code, unsigned)


def test_types_are_described_in_words() -> None:
    described = [describe(np.dtype(code)) for code in ("O", "S3", "<i2")] + [describe(np.dtype([("a", "i1")]))]
    assert described == ["text", "text of 3 bytes", "int16", "records"]


@pytest.mark.parametrize(("code", "number"), [("i2", -5), ("u1", 200), ("f4", 1.5), ("f8", np.nan), ("c8", 1 + 2j)])
def test_a_missing_value_survives_both_ways(code: str, number: Any) -> None:
    dtype = np.dtype(code)
    encoded = encode_missing(np.array(number, dtype), dtype)
    kind = find_type(dtype.name)
    assert not isinstance(kind, str)
    assert is_covered(kind)
    assert wrong_missing(encoded, kind) == ""
    np.testing.assert_array_equal(decode_missing(encoded, dtype), np.array(number, dtype))
    np.testing.assert_array_equal(decode_missing_number(encoded), number)


@pytest.mark.parametrize(
    ("value", "name"), [(1.5, "float32"), ("AAAA", "float64"), ([1, 2], "complex64"), ("x", "int8"), (300, "uint8")]
)
def test_a_missing_value_in_another_form_is_wrong(value: Any, name: str) -> None:
    kind = find_type(name)
    assert not isinstance(kind, str)
    assert wrong_missing(value, kind)
