from __future__ import annotations

import struct
import unicodedata

import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.netcdf3.header import is_classic
from h5zarr.netcdf3.nc_types import NcType
from tests.netcdf3.classic import Reading, Var, encode_classic

EMPTY = {1: bytes(28), 2: bytes(28), 5: bytes(44)}
CODES = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11}


def u32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


@pytest.mark.parametrize("version", [1, 2, 5])
def test_the_smallest_file_has_nothing_but_a_header(version: int):
    content = b"CDF" + bytes([version]) + EMPTY[version]
    reading = Reading(content)
    header = reading.file.header
    assert (header.version, header.nbytes, header.stated_records) == (version, len(content), 0)
    assert (header.dimensions, dict(header.attributes), header.variables) == ((), {}, ())


def test_the_example_of_the_specification():
    content = b"CDF\x01" + u32(0, 10, 1, 3) + b"dim\0" + u32(5, 0, 0, 11, 1, 2) + b"vx\0\0" + u32(1, 0, 0, 0, 3, 12, 80)
    content += struct.pack(">6h", 3, 1, 4, 1, 5, -32767)
    assert len(content) == 92
    file = Reading(content).file
    (variable,) = file.header.variables
    assert (variable.name, variable.type, variable.begin, variable.slab_nbytes) == ("vx", NcType.SHORT, 80, 10)
    assert file.shape(variable) == (5,)


@pytest.mark.parametrize("code", CODES)
def test_every_type_of_attributes_and_variables(code: str):
    attribute = "ab" if code == "S1" else np.array([1, 2, 3], code)
    variable = Var(name="v", code=code, dimensions=("x",), values=np.zeros(3, code), attributes={"a": attribute})
    (found,) = Reading(encode_classic(5, {"x": 3}, [variable])).file.header.variables
    assert found.type == CODES[code]
    assert found.type.dtype.newbyteorder("=") == np.dtype(code)
    values = found.attributes["a"].values
    assert values.dtype == np.dtype("S1" if code == "S1" else code)
    assert found.attributes["a"].text == "ab" if code == "S1" else values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("type", "stored"),
    {
        NcType.CHAR: "00", NcType.BYTE: "81", NcType.SHORT: "8001", NcType.INT: "80000001", NcType.FLOAT: "7cf00000",
        NcType.DOUBLE: "479e000000000000", NcType.UBYTE: "ff", NcType.USHORT: "ffff", NcType.UINT: "ffffffff",
        NcType.INT64: "8000000000000002", NcType.UINT64: "fffffffffffffffe",
    }.items(),
)  # fmt: skip
def test_default_fill_values_are_those_of_the_specification(type: NcType, stored: str):
    assert type.default_fill.tobytes().hex() == stored


def test_text_is_utf8_or_latin1_without_nulls():
    attributes = {"utf8": "é", "latin1": b"caf\xe9", "nulls": b"a\0b\0\0", "none": ""}
    found = Reading(encode_classic(1, {}, [], attributes)).file.header.attributes
    assert {name: one.text for name, one in found.items()} == {"utf8": "é", "latin1": "café", "nulls": "ab", "none": ""}


def test_names_are_in_normal_form_c_and_end_at_a_null():
    stored = unicodedata.normalize("NFD", "été")
    variable = Var(name=stored, code="i1", dimensions=(stored,), values=[1], attributes={stored: "x"})
    header = Reading(encode_classic(1, {stored: 1}, [variable], {"title\0\0x": "y"})).file.header
    assert header.dimensions[0].name == header.variables[0].name == "été"
    assert list(header.variables[0].attributes) == ["été"]
    assert list(header.attributes) == ["title"]


def test_padding_may_hold_anything():
    content = bytearray(encode_classic(1, {"abc": 2}, [], {"a": "xyz"}))
    for place in (content.index(b"abc\0") + 3, content.index(b"xyz\0") + 3, content.index(b"a\0\0\0") + 1):
        content[place] = 0xFF
    file = Reading(bytes(content)).file
    assert (file.header.dimensions[0].name, file.header.attributes["a"].text) == ("abc", "xyz")


def test_a_header_of_any_length_takes_few_rounds():
    for count in (1, 100, 3000, 20_000):
        attributes = {"long_name": "some variable", "units": "K"}
        one = Var(name="variable", code="i2", dimensions=("x",), values=[1, 2, 3], attributes=attributes)
        content = encode_classic(2, {"x": 3}, [one] * min(count, 1000))
        if count > 1000:  # a long list that is quick to make: the same thousand again and again
            start = content.index(struct.pack(">II", 11, 1000)) + 8
            entry = (Reading(content).file.header.nbytes - start) // 1000
            listed = content[start : start + entry - 8] + struct.pack(">Q", 127)
            content = content[: start - 4] + struct.pack(">I", count) + listed * count + bytes(100)
        reading = Reading(content, beginning=2048)
        assert len(reading.file.header.variables) == count
        assert len(reading.requests) <= (1 if count <= 100 else 2)


def test_no_more_is_read_than_up_to_the_first_value():
    variable = Var(name="v", code="f8", dimensions=("x",), values=np.zeros(100_000))
    reading = Reading(encode_classic(1, {"x": 100_000}, [variable], {"title": "x" * 5000}), beginning=2048)
    assert len(reading.requests) == 1
    assert sum(span.nbytes for spans in reading.requests for span in spans) <= 64 << 10


def test_the_values_of_a_distant_first_variable_are_not_read():
    variables = [
        Var(name="record", code="i4", dimensions=("t",), values=[1, 2]),
        Var(name="fixed", code="f8", dimensions=("x",), values=np.zeros(100_000)),
        Var(name="last", code="i4", dimensions=("t",), values=[1, 2], attributes={"a": "x" * 3000}),
    ]
    reading = Reading(encode_classic(1, {"t": None, "x": 100_000}, variables), beginning=2048)
    assert [span.nbytes < 1 << 17 for spans in reading.requests for span in spans] == [True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"CDF\x03" + bytes(40), "known version"),
        (b"CDF\x01" + u32(0, 11, 1, 1) + b"x\0\0\0" + u32(1), "tag 11, expected 10"),
        (b"CDF\x01" + u32(0, 10, 1 << 30) + bytes(40), "longer than the file"),
        (b"CDF\x01" + u32(0, 10, 1, 1 << 30) + bytes(40), "longer than the rest of the file"),
        (b"CDF\x01" + u32(0, 0, 0, 12, 1, 1) + b"a\0\0\0" + u32(12, 1, 0, 0, 0), "unknown type 12"),
        (b"CDF\x01" + u32(0, 0, 0, 12, 1, 1) + b"a\0\0\0" + u32(6, 1 << 29, 0, 0, 0), "longer than the rest"),
        (b"CDF\x01" + u32(0, 0, 0, 0, 0, 11, 1, 1) + b"v\0\0\0" + u32(1, 0, 0, 0, 4, 4, 60), "uses dimension 0"),
        (
            b"CDF\x01" + u32(0, 0, 0, 0, 0, 11, 1, 1) + b"v\0\0\0" + u32(1 << 30, 0, 0, 0, 4, 4, 60),
            "more than fit into the file",
        ),
        (b"CDF\x05" + u32(0, 0, 10, 0, 1, 0, 1) + b"x\0\0\0" + b"\xff" * 8 + bytes(40), "has length 1844"),
    ],
)
def test_a_broken_header_is_refused(content: bytes, message: str):
    with pytest.raises(MalformedFile, match=message):
        Reading(content)


def test_every_cut_of_a_header_is_refused_as_such():
    one = Var(name="v", code="i2", dimensions=("x",), values=[1, 2], attributes={"a": "text", "b": np.arange(3)})
    for version in (1, 2, 5):
        content = encode_classic(version, {"x": 2}, [one], {"title": "abc"})
        for nbytes in range(4, Reading(content).file.header.nbytes):
            with pytest.raises(MalformedFile, match=r"ends inside|longer than"):
                Reading(content[:nbytes])


def test_of_two_attributes_with_one_name_the_first_is_kept_and_the_other_named():
    content = encode_classic(1, {}, [], {"aa": "1", "ab": "2"}).replace(b"ab\0\0", b"aa\0\0")
    file = Reading(content).file
    assert file.header.attributes["aa"].text == "1"
    assert [problem.path for problem in file.problems] == ["/@aa"]


def test_only_known_versions_are_classic_files():
    assert [version for version in range(256) if is_classic(b"CDF" + bytes([version]))] == [1, 2, 5]
    assert not is_classic(b"CDF")
    assert not is_classic(b"\x89HDF")
