"""Data types and fill values as JSON."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from h5zarr.errors import Unrepresentable, Unsupported
from h5zarr.zarr_model.data_types import decode_data_type, encode_dtype, encode_serializer, find_type
from h5zarr.zarr_model.fill_values import decode_fill, encode_fill
from h5zarr.zarr_model.missing import encode_double

BIG = {"name": "bytes", "configuration": {"endian": "big"}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def bits(code: str, number: int) -> Any:
    """Return the float that has these bits."""
    dtype = np.dtype(code)
    return np.frombuffer(number.to_bytes(dtype.itemsize, "big"), dtype.newbyteorder(">")).astype(dtype)[0]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("?", "bool"),
        ("i1", "int8"),
        (">u2", "uint16"),
        ("<i8", "int64"),
        ("<f2", "float16"),
        (">f4", "float32"),
        (">c8", "complex64"),
        ("<c16", "complex128"),
        ("O", "string"),
    ],
)
def test_the_name_of_a_type_has_no_byte_order(code: str, name: str) -> None:
    assert encode_dtype(np.dtype(code)) == name


def test_types_with_a_length_or_a_unit_are_configured() -> None:
    assert encode_dtype(np.dtype("S5")) == {"name": "null_terminated_bytes", "configuration": {"length_bytes": 5}}
    assert encode_dtype(np.dtype("V3")) == {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
    time = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}
    assert encode_dtype(np.dtype(">M8[10s]")) == time
    assert encode_dtype(np.dtype("m8[ns]"))["name"] == "numpy.timedelta64"


def test_records_are_lists_of_fields() -> None:
    fields = [["a", "int16"], ["b", {"name": "raw_bytes", "configuration": {"length_bytes": 2}}]]
    dtype = np.dtype([("a", "<i2"), ("b", "V2")])
    assert encode_dtype(dtype) == {"name": "structured", "configuration": {"fields": fields}}


@pytest.mark.parametrize("code", ["f16", "c32", "U4"])
def test_a_type_that_zarr_lacks_is_refused(code: str) -> None:
    with pytest.raises(Unrepresentable, match="Zarr has no type"):
        encode_dtype(np.dtype(code))


def test_the_codec_tells_the_byte_order_where_there_is_one() -> None:
    assert encode_serializer(np.dtype(">f4")) == BIG
    assert encode_serializer(np.dtype("=i2")) == LITTLE
    assert encode_serializer(np.dtype([("a", "i1")])) == LITTLE
    for code in ("i1", "?", "S7", "V3"):
        assert encode_serializer(np.dtype(code)) == {"name": "bytes"}
    assert encode_serializer(np.dtype("O")) == {"name": "vlen-utf8"}


@pytest.mark.parametrize(
    ("code", "fill", "expected"),
    [
        ("<i2", -32767, -32767),
        (">u8", 2**64 - 1, 2**64 - 1),
        ("?", True, True),
        (">f4", 3.4028235e38, 3.4028234663852886e38),
        ("<f8", 0.1, 0.1),
        ("<f4", np.inf, "Infinity"),
        ("<f8", -np.inf, "-Infinity"),
        ("<f2", np.nan, "NaN"),
        (">f4", np.nan, "NaN"),
        ("<c8", 1 - 2j, [1.0, -2.0]),
        (">c16", complex(np.nan, -np.inf), ["NaN", "-Infinity"]),
        ("S3", b"ab", base64.b64encode(b"ab\0").decode()),
        ("<M8[s]", np.datetime64(7, "s"), 7),
        (">M8[s]", np.datetime64(7, "s"), 7),
        ("<M8[s]", np.datetime64("NaT", "s"), -(2**63)),
        ("O", None, ""),
    ],
)
def test_a_fill_value_in_json(code: str, fill: Any, expected: Any) -> None:
    dtype = np.dtype(code)
    encoded = encode_fill(dtype, None if fill is None else np.array(fill, dtype))
    assert encoded == expected
    assert type(encoded) is type(expected)


@pytest.mark.parametrize(
    ("code", "number", "expected"),
    [
        ("<f4", 0x7FC00001, "0x7fc00001"),
        (">f4", 0xFFC00000, "0xffc00000"),
        ("<f2", 0x7E01, "0x7e01"),
        ("<f8", 0x7FF8000000000123, "0x7ff8000000000123"),
        ("<f4", 0x7FC00000, "NaN"),
        ("<f8", 0x7FF8000000000000, "NaN"),
    ],
)
def test_every_nan_keeps_its_bits(code: str, number: int, expected: str) -> None:
    assert encode_fill(np.dtype(code), bits(code, number)) == expected


def test_negative_zero_stays_negative() -> None:
    assert str(encode_fill(np.dtype("<f4"), np.array(-0.0, "<f4"))) == "-0.0"


@pytest.mark.parametrize(
    ("code", "zero"), [("<f8", 0.0), ("i1", 0), ("?", False), ("<c8", [0.0, 0.0]), ("S2", "AAA="), ("V1", "AA==")]
)
def test_without_a_fill_value_it_is_zero_and_never_null(code: str, zero: Any) -> None:
    assert encode_fill(np.dtype(code), None) == zero


def test_records_are_base64_of_their_bytes() -> None:
    dtype = np.dtype([("a", "<i2"), ("b", "<f4")])
    element = np.array((5, 1.5), dtype)
    assert base64.b64decode(encode_fill(dtype, element)) == element.tobytes()


def test_a_double_is_written_as_xarray_does() -> None:
    assert encode_double(float(np.float32(3.4028235e38))) == "AAAA4P//70c="


@pytest.mark.parametrize(
    "code", ["?", "<i1", ">u2", "<i8", "<f2", ">f4", ">c8", "<c16", "O", "S5", "V3", ">M8[10s]", "<m8[ns]"]
)
def test_a_type_and_its_zero_survive_both_ways(code: str) -> None:
    dtype = np.dtype(code)
    order = ">" if code.startswith(">") else "<"
    encoded = encode_dtype(dtype)
    assert decode_data_type(encoded, order) == dtype
    found = find_type(encoded)
    assert not isinstance(found, str)
    assert found.nbytes == (None if code == "O" else dtype.itemsize)
    fill = encode_fill(dtype, None)
    assert found.wrong(fill) == ""
    assert decode_fill(fill, dtype) == (np.array("", object) if code == "O" else np.zeros((), dtype))


def test_records_are_decoded_in_the_byte_order_of_the_codec() -> None:
    dtype = np.dtype([("a", ">i2"), ("b", [("c", ">f4"), ("d", "S2")])])
    assert decode_data_type(encode_dtype(dtype), ">") == dtype
    assert decode_data_type(encode_dtype(dtype), "<") == dtype.newbyteorder("<")


@pytest.mark.parametrize(
    "data_type",
    [
        *("bfloat16", "r16", "bytes", "fancy", None, 3, {"name": "raw_bytes"}),
        {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}},
        {"name": "structured", "configuration": {"fields": [["a", "string"]]}},
        {"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}},
    ],
)
def test_a_type_that_h5zarr_does_not_read_is_an_error_of_ours(data_type: Any) -> None:
    with pytest.raises((Unrepresentable, Unsupported)):
        decode_data_type(data_type, "<")
