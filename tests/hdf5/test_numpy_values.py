"""Every row of the table of values: what the elements of each datatype become in numpy."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.datatype import (
    Array,
    Bitfield,
    ByteOrder,
    Charset,
    Complex,
    Compound,
    CompoundMember,
    Datatype,
    Enumeration,
    FixedPoint,
    FloatingPoint,
    Normalization,
    Opaque,
    Padding,
    Reference,
    ReferenceKind,
    String,
    Time,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.numpy_values import ValueReader, plain_dtype
from h5zarr.hdf5.object_references import ObjectReference
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, collection, element_of_heap, uint

LITTLE, BIG = ByteOrder.LITTLE, ByteOrder.BIG
HEAP = 0x1000


def integer(nbytes: int, *, signed: bool = True, order: ByteOrder = LITTLE, precision: int = 0) -> FixedPoint:
    return FixedPoint(nbytes=nbytes, order=order, signed=signed, bit_offset=0, precision=precision or 8 * nbytes)


def floating(nbytes: int, exponent: int, mantissa: int, bias: int, order: ByteOrder = LITTLE) -> FloatingPoint:
    return FloatingPoint(
        nbytes=nbytes,
        order=order,
        bit_offset=0,
        precision=8 * nbytes,
        sign_location=mantissa + exponent,
        exponent_location=mantissa,
        exponent_nbits=exponent,
        mantissa_location=0,
        mantissa_nbits=mantissa,
        exponent_bias=bias,
        normalization=Normalization.IMPLIED,
    )


HALF, SINGLE, DOUBLE = floating(2, 5, 10, 15), floating(4, 8, 23, 127), floating(8, 11, 52, 1023)
BFLOAT16 = floating(2, 8, 7, 127)
TEXT = VariableLengthString(nbytes=16, padding=Padding.NULL_TERMINATED, charset=Charset.UTF8)


def string(nbytes: int, padding: Padding = Padding.NULL_TERMINATED) -> String:
    return String(nbytes=nbytes, padding=padding, charset=Charset.ASCII)


def sequence(base: Datatype) -> VariableLengthSequence:
    return VariableLengthSequence(nbytes=16, base=base)


def compound(nbytes: int, *members: tuple[str, int, Datatype]) -> Compound:
    return Compound(
        nbytes=nbytes,
        members=tuple(CompoundMember(name=name, byte_offset=at, datatype=datatype) for name, at, datatype in members),
    )


def read(datatype: Datatype, raw: bytes, count: int, heap: dict[int, bytes] | None = None) -> np.ndarray[Any, Any]:
    file = FakeFile({HEAP: collection(heap or {})})
    reader = ValueReader(file.sizes, GlobalHeap(file.sizes))
    found = run(reader.read(datatype, raw, count), file.read_many)
    assert file.rounds == bool(heap)
    return found


# --- numbers


@pytest.mark.parametrize("code", ["<i1", "<i2", ">i4", "<i8", "<u1", ">u2", "<u4", ">u8"])
def test_integers_are_the_same_bits(code: str) -> None:
    dtype = np.dtype(code)
    order = BIG if code[0] == ">" else LITTLE
    values = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    found = read(integer(dtype.itemsize, signed=dtype.kind == "i", order=order), values.tobytes(), 4)
    assert found.dtype == dtype
    assert found.tolist() == values.tolist()


def test_odd_integers_become_the_next_larger_type() -> None:
    found = read(integer(3), bytes.fromhex("ffffff 010000"), 2)
    assert (found.dtype, found.tolist()) == (np.dtype("i4"), [-1, 1])
    found = read(integer(2, signed=False, precision=12), bytes.fromhex("fff1"), 1)
    assert (found.dtype, found.tolist()) == (np.dtype("u2"), [0x1FF])


@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize(("base", "code"), [(HALF, "f2"), (SINGLE, "f4"), (DOUBLE, "f8")])
def test_floats_are_the_same_bits(base: FloatingPoint, code: str, order: ByteOrder) -> None:
    datatype = floating(base.nbytes, base.exponent_nbits, base.mantissa_nbits, base.exponent_bias, order)
    values = np.array([0, -1.5, np.inf, np.nan, 6e-8], order.value + code)
    found = read(datatype, values.tobytes(), 5)
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()


def test_odd_floats_become_doubles() -> None:
    found = read(BFLOAT16, bytes.fromhex("803f c0bf"), 2)
    assert (found.dtype, found.tolist()) == (np.dtype("f8"), [1.0, -1.5])


def test_bitfields_and_times_are_unsigned() -> None:
    found = read(Bitfield(nbytes=2, order=BIG, bit_offset=0, precision=16), b"\xff\x01", 1)
    assert (found.dtype, found.tolist()) == (np.dtype(">u2"), [0xFF01])
    found = read(Bitfield(nbytes=1, order=LITTLE, bit_offset=2, precision=3), b"\xff", 1)
    assert (found.dtype, found.tolist()) == (np.dtype("u1"), [7])
    found = read(Time(nbytes=4, order=LITTLE, precision=32), b"\xff\xff\xff\xff", 1)
    assert (found.dtype, found.tolist()) == (np.dtype("<u4"), [0xFFFFFFFF])


def test_an_enumeration_is_its_base() -> None:
    datatype = Enumeration(nbytes=2, base=integer(2, order=BIG), members=(("OFF", 0), ("ON", 1)))
    found = read(datatype, b"\0\1\0\0\xff\xff", 3)
    assert (found.dtype, found.tolist()) == (np.dtype(">i2"), [1, 0, -1])
    odd = Enumeration(nbytes=3, base=integer(3), members=(("OFF", 0),))
    assert read(odd, b"\xff\xff\xff", 1).tolist() == [-1]


@pytest.mark.parametrize(("base", "code"), [(SINGLE, "<c8"), (DOUBLE, "<c16"), (floating(4, 8, 23, 127, BIG), ">c8")])
def test_complex_numbers_are_the_same_bits(base: FloatingPoint, code: str) -> None:
    values = np.array([1 - 2j, complex(np.inf, -0.0)], code)
    found = read(Complex(nbytes=2 * base.nbytes, base=base), values.tobytes(), 2)
    assert found.dtype == np.dtype(code)
    assert found.tobytes() == values.tobytes()


def test_complex_halves_become_complex_singles() -> None:
    parts = np.array([1, -2, 0.5, 65504], "<f2")
    found = read(Complex(nbytes=4, base=HALF), parts.tobytes(), 2)
    assert found.dtype == np.dtype("c8")
    assert found.tolist() == [1 - 2j, 0.5 + 65504j]


def test_the_parts_of_complex_numbers_that_are_converted_stay_apart() -> None:
    """Infinity times i is not a number in its real part, but nothing is multiplied here."""
    parts = np.array([1, np.inf, -0.0, 0], "<f2")
    found = read(Complex(nbytes=4, base=HALF), parts.tobytes(), 2)
    assert found.real.tolist() == [1, 0]
    assert np.signbit(found.real).tolist() == [False, True]
    assert found.imag.tolist() == [np.inf, 0]


# --- strings and opaque


@pytest.mark.parametrize(
    ("padding", "stored", "values"),
    [
        (Padding.NULL_TERMINATED, b"abc\0de\0xfghijk", [b"abc", b"de", b"fghi"]),
        (Padding.NULL_TERMINATED, b"abc\0defgabcd", [b"abc", b"defg", b"abcd"]),
        (Padding.NULL_PADDED, b"abc\0d\0f\0\0\0\0\0", [b"abc", b"d\0f", b""]),
        (Padding.SPACE_PADDED, b"abc  d  a\0b ", [b"abc", b" d", b"a\0b"]),
    ],
)
def test_fixed_strings_lose_their_padding(padding: Padding, stored: bytes, values: list[bytes]) -> None:
    found = read(string(4, padding), stored, 3)
    assert found.dtype == np.dtype("S4")
    assert found.tolist() == values


def test_opaque_values_are_bytes() -> None:
    found = read(Opaque(nbytes=3, tag="any"), b"abc\0\0\0", 2)
    assert found.dtype == np.dtype("V3")
    assert [one.tobytes() for one in found] == [b"abc", b"\0\0\0"]


def test_strings_of_variable_length_are_objects() -> None:
    raw = element_of_heap(3, HEAP, 1) + element_of_heap(9, HEAP, 2) + element_of_heap(0, 0, 0)
    found = read(TEXT, raw, 3, {1: b"abc", 2: "Höhe m²".encode()})
    assert found.dtype == object
    assert found.tolist() == [b"abc", "Höhe m²".encode(), b""]


def test_strings_of_variable_length_end_at_a_null_or_before_their_spaces() -> None:
    raw = element_of_heap(6, HEAP, 1)
    assert read(TEXT, raw, 1, {1: b"ab\0cd\0"}).tolist() == [b"ab"]
    spaced = VariableLengthString(nbytes=16, padding=Padding.SPACE_PADDED, charset=Charset.ASCII)
    assert read(spaced, raw, 1, {1: b" abc  "}).tolist() == [b" abc"]


def test_the_heap_may_hold_more_than_the_stated_length() -> None:
    assert read(TEXT, element_of_heap(2, HEAP, 1), 1, {1: b"abcdefgh"}).tolist() == [b"ab"]


@pytest.mark.parametrize("element", [element_of_heap(0, HEAP, 1), element_of_heap(3, 0, 0), bytes(16)])
def test_an_element_that_points_nowhere_is_empty(element: bytes) -> None:
    assert read(TEXT, element, 1).tolist() == [b""]
    assert [one.tolist() for one in read(sequence(integer(2)), element, 1)] == [[]]


def test_an_element_with_a_length_but_an_undefined_address_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="variable-length element of length 3 has the undefined address"):
        read(TEXT, element_of_heap(3, UNDEFINED, 1), 1)


@pytest.mark.parametrize("offset_nbytes", [2, 4])
def test_pointers_to_the_heap_have_the_file_s_width(offset_nbytes: int) -> None:
    file = FakeFile({HEAP: collection({1: b"abc"})}, sizes=Sizes(offset_nbytes=offset_nbytes))
    reader = ValueReader(file.sizes, GlobalHeap(file.sizes))
    datatype = VariableLengthString(nbytes=8 + offset_nbytes, padding=Padding.NULL_TERMINATED, charset=Charset.ASCII)
    raw = element_of_heap(3, HEAP, 1, offset_nbytes)
    assert run(reader.read(datatype, raw, 1), file.read_many).tolist() == [b"abc"]
    with pytest.raises(MalformedFile, match="variable-length elements have 16 bytes"):
        run(reader.read(TEXT, bytes(16), 1), file.read_many)


# --- composed types


def test_sequences_are_arrays_of_their_own() -> None:
    raw = element_of_heap(2, HEAP, 1) + bytes(16) + element_of_heap(3, HEAP, 2)
    found = read(sequence(integer(2, order=BIG)), raw, 3, {1: b"\0\1\0\2", 2: b"\0\3\0\4\xff\xff"})
    assert found.dtype == object
    assert [one.tolist() for one in found] == [[1, 2], [], [3, 4, -1]]
    assert found[0].dtype == np.dtype(">i2")


def test_sequences_of_strings_and_of_sequences_read_the_heap_again() -> None:
    inner = element_of_heap(1, HEAP, 1) + element_of_heap(2, HEAP, 2)
    found = read(sequence(TEXT), element_of_heap(2, HEAP, 3), 1, {1: b"a", 2: b"bc", 3: inner})
    assert found[0].tolist() == [b"a", b"bc"]
    nested = sequence(sequence(integer(1)))
    found = read(nested, element_of_heap(2, HEAP, 3), 1, {1: b"\1", 2: b"\2\3", 3: inner})
    assert [one.tolist() for one in found[0]] == [[1], [2, 3]]


def test_a_sequence_longer_than_its_heap_object_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="has 4 bytes, but 6 are needed"):
        read(sequence(integer(2)), element_of_heap(3, HEAP, 1), 1, {1: b"1234"})


def test_arrays_are_trailing_axes() -> None:
    datatype = Array(nbytes=6, base=integer(1), shape=(2, 3))
    assert plain_dtype(datatype) == np.dtype(("i1", (2, 3)))
    found = read(datatype, bytes(range(12)), 2)
    assert found.shape == (2, 2, 3)
    assert found.tolist() == np.arange(12).reshape(2, 2, 3).tolist()


def test_arrays_of_arrays_and_of_converted_elements() -> None:
    strings = Array(nbytes=8, base=string(4), shape=(2,))
    assert read(Array(nbytes=16, base=strings, shape=(2,)), b"a\0\0\0bc\0\0ddddeeee", 1).tolist() == [
        [[b"a", b"bc"], [b"dddd", b"eeee"]]
    ]
    found = read(Array(nbytes=6, base=integer(3), shape=(2,)), b"\1\0\0\2\0\0" * 2, 2)
    assert found.tolist() == [[1, 2], [1, 2]]


def test_a_compound_of_plain_members_has_exactly_the_file_s_bytes() -> None:
    datatype = compound(16, ("a", 1, integer(2, order=BIG)), ("b", 8, DOUBLE))
    found = read(datatype, bytes.fromhex("ff0102ffffffffff") + struct.pack("<d", 1.5), 1)
    assert found.dtype == np.dtype({"names": ["a", "b"], "formats": [">i2", "<f8"], "offsets": [1, 8], "itemsize": 16})
    assert found.tolist() == [(0x0102, 1.5)]


def test_a_compound_of_other_members_is_packed() -> None:
    members = [("s", 0, string(4)), ("n", 4, integer(3)), ("t", 8, TEXT), ("v", 24, sequence(integer(1)))]
    datatype = compound(48, *members, ("x", 40, Array(nbytes=6, base=integer(3), shape=(2,))))
    element = b"ab\0x" + b"\xff\xff\xff" + b"?" + element_of_heap(2, HEAP, 1) + element_of_heap(3, HEAP, 2)
    found = read(datatype, (element + b"\1\0\0\2\0\0??") * 2, 2, {1: b"hi", 2: b"\1\2\3"})
    assert found.dtype.names == ("s", "n", "t", "v", "x")
    assert found["s"].tolist() == [b"ab", b"ab"]
    assert (found["n"].dtype, found["n"].tolist()) == (np.dtype("i4"), [-1, -1])
    assert found["t"].tolist() == [b"hi", b"hi"]
    assert [one.tolist() for one in found["v"]] == [[1, 2, 3]] * 2
    assert found["x"].tolist() == [[1, 2]] * 2


def test_a_compound_in_a_compound_may_need_objects() -> None:
    inner = compound(16, ("t", 0, TEXT))
    found = read(
        compound(20, ("n", 0, integer(4)), ("in", 4, inner)), uint(7, 4) + element_of_heap(2, HEAP, 1), 1, {1: b"hi"}
    )
    assert found.tolist() == [(7, (b"hi",))]


def test_references_are_objects() -> None:
    found = read(Reference(nbytes=8, kind=ReferenceKind.OBJECT), uint(0x800) + uint(0) + uint(UNDEFINED), 3)
    assert found.tolist() == [ObjectReference(0x800), ObjectReference(None), ObjectReference(None)]


# --- damage and extremes


@pytest.mark.parametrize(
    "datatype",
    [integer(4), integer(3), HALF, BFLOAT16, string(4), TEXT, Opaque(nbytes=3, tag=""), sequence(integer(1))],
)
def test_elements_cut_short_are_malformed(datatype: Datatype) -> None:
    with pytest.raises(MalformedFile, match=r"2 elements of .* are truncated"):
        read(datatype, bytes(2 * datatype.nbytes - 1), 2)


@pytest.mark.parametrize(
    "datatype",
    [
        integer(4),
        integer(3),
        DOUBLE,
        BFLOAT16,
        string(4),
        string(4, Padding.SPACE_PADDED),
        TEXT,
        Opaque(nbytes=3, tag=""),
        Complex(nbytes=16, base=DOUBLE),
        Complex(nbytes=4, base=HALF),
        Enumeration(nbytes=4, base=integer(4), members=()),
        compound(4, ("a", 0, integer(4))),
        compound(16, ("a", 0, TEXT)),
        Array(nbytes=12, base=integer(3), shape=(4,)),
        Array(nbytes=8, base=integer(4), shape=(2,)),
        sequence(integer(4)),
        Reference(nbytes=8, kind=ReferenceKind.OBJECT),
        Reference(nbytes=12, kind=ReferenceKind.REGION),
        Reference(nbytes=18, kind=ReferenceKind.OBJECT2),
    ],
)
def test_no_elements_of_any_type_are_an_empty_array(datatype: Datatype) -> None:
    assert len(read(datatype, b"", 0)) == 0


@pytest.mark.parametrize("datatype", [TEXT, sequence(DOUBLE)])
def test_elements_that_claim_more_than_the_file_has_are_malformed(datatype: Datatype) -> None:
    with pytest.raises(MalformedFile, match=r"take \d+ bytes, more than the file has"):
        read(datatype, element_of_heap(0xFFFFFFFF, HEAP, 1) * 3, 3)
