from __future__ import annotations

import pytest

from h5zarr.commands.inspect.types import type_name
from h5zarr.filters.table import filter_label
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
from h5zarr.hdf5.model import Filter
from tests.commands.inspect.made import floating, integer

BIG = ByteOrder.BIG
X87 = FloatingPoint(
    nbytes=16,
    order=ByteOrder.LITTLE,
    bit_offset=0,
    precision=80,
    sign_location=79,
    exponent_location=64,
    exponent_nbits=15,
    mantissa_location=0,
    mantissa_nbits=64,
    exponent_bias=16383,
    normalization=Normalization.NONE,
)
PAIR = Compound(
    nbytes=12,
    members=(
        CompoundMember(name="a", byte_offset=0, datatype=integer()),
        CompoundMember(name="b", byte_offset=4, datatype=floating(8)),
    ),
)


def string(nbytes: int, charset: Charset = Charset.ASCII) -> String:
    return String(nbytes=nbytes, padding=Padding.NULL_PADDED, charset=charset)


@pytest.mark.parametrize(
    ("datatype", "name"),
    [
        (integer(), "int32"),
        (integer(1, signed=False, order=BIG), "uint8"),
        (integer(2, order=BIG), "int16 (big-endian)"),
        (integer(bit_offset=4, precision=12), "int32 (12 bits at 4)"),
        (integer(3, precision=20), "int24 (20 bits)"),
        (floating(), "float32"),
        (floating(8, BIG), "float64 (big-endian)"),
        (floating(2), "float16"),
        (floating(4, ByteOrder.VAX), "float32 (VAX)"),
        (X87, "float128 (80 bits)"),
        (string(12), "string (ascii, 12 bytes)"),
        (string(1), "char"),
        (string(4, Charset.UTF8), "string (utf-8, 4 bytes)"),
        (
            VariableLengthString(nbytes=16, padding=Padding.NULL_TERMINATED, charset=Charset.UTF8),
            "string (utf-8, variable)",
        ),
        (Bitfield(nbytes=2, order=BIG, bit_offset=0, precision=16), "bitfield16 (big-endian)"),
        (Time(nbytes=4, order=ByteOrder.LITTLE, precision=32), "time32"),
        (Opaque(nbytes=4, tag="raw"), 'opaque (4 bytes, "raw")'),
        (Reference(nbytes=8, kind=ReferenceKind.OBJECT2), "object reference"),
        (Complex(nbytes=8, base=floating()), "complex64"),
        (Complex(nbytes=16, base=floating(8, BIG)), "complex128 (big-endian)"),
        (PAIR, "compound {a: int32, b: float64}"),
        (
            Enumeration(nbytes=1, base=integer(1), members=(("FALSE", 0), ("TRUE", 1))),
            "enum int8 {FALSE=0, TRUE=1}",
        ),
        (VariableLengthSequence(nbytes=16, base=integer()), "sequence of int32"),
        (Array(nbytes=48, base=integer(), shape=(3, 4)), "int32 [3, 4]"),
    ],
)
def test_types_have_the_names_that_people_use(datatype: Datatype, name: str):
    assert type_name(datatype) == name


def test_a_limit_counts_the_members_it_leaves_out():
    members = tuple((f"NAME{number}", number) for number in range(9))
    assert type_name(Enumeration(nbytes=4, base=integer(), members=members), limit=20) == (
        "enum int32 {NAME0=0, NAME1=1, … 7 more}"
    )


@pytest.mark.parametrize(
    ("number", "values", "name"),
    [
        (1, (4,), "deflate(4)"),
        (2, (8,), "shuffle"),
        (3, (), "fletcher32"),
        (6, (0, 3), "scaleoffset(3 digits)"),
        (6, (2, 0), "scaleoffset"),
        (32000, (4, 261, 400), "lzf"),
        (32015, (3,), "zstd(3)"),
        (32015, (2**32 - 5,), "zstd(-5)"),
        (32015, (), "zstd"),
        (32001, (2, 2, 4, 4000, 5, 1, 1), "blosc(lz4, 5, shuffle)"),
        (32008, (0, 4, 4, 0, 2), "bitshuffle(lz4)"),
        (32099, (), "filter 32099 (mine)"),
    ],
)
def test_filters_are_named_with_their_level(number: int, values: tuple[int, ...], name: str):
    assert filter_label(Filter(number=number, name="mine", optional=False, values=values)) == name
