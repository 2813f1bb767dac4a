from __future__ import annotations

import struct

import h5py
import numpy as np
import pytest
from h5py import h5t

from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from h5zarr.hdf5.datatype import (
    Array,
    Bitfield,
    ByteOrder,
    Charset,
    Complex,
    Compound,
    CompoundMember,
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
from h5zarr.hdf5.messages.datatype import decode_datatype
from tests.fake_file import padded, uint

LITTLE, BIG = ByteOrder.LITTLE, ByteOrder.BIG


def integer(nbytes: int, signed: bool = True, order: ByteOrder = LITTLE, offset: int = 0, nbits: int = 0) -> FixedPoint:
    return FixedPoint(
        nbytes=nbytes, order=order, signed=signed, bit_offset=offset, precision=nbits or 8 * nbytes - offset
    )


def ieee(nbytes: int, order: ByteOrder = LITTLE) -> FloatingPoint:
    mantissa, exponent, bias = {2: (10, 5, 15), 4: (23, 8, 127), 8: (52, 11, 1023)}[nbytes]
    return FloatingPoint(
        nbytes=nbytes,
        order=order,
        bit_offset=0,
        precision=8 * nbytes,
        sign_location=8 * nbytes - 1,
        exponent_location=mantissa,
        exponent_nbits=exponent,
        mantissa_location=0,
        mantissa_nbits=mantissa,
        exponent_bias=bias,
        normalization=Normalization.IMPLIED,
    )


def encoded(datatype: h5t.TypeID) -> bytes:
    """Return the message that libhdf5 writes: H5Tencode puts a message type and a version in front."""
    whole = datatype.encode()
    assert whole[:2] == b"\x03\x00"
    return whole[2:]


def of(dtype: object) -> bytes:
    return encoded(h5t.py_create(np.dtype(dtype), logical=True))


def prefix(version: int, code: int, bits: int, nbytes: int) -> bytes:
    """Return the first eight bytes of a datatype message."""
    return bytes((version << 4 | code,)) + uint(bits, 3) + uint(nbytes, 4)


I4 = prefix(1, 0, 8, 4) + uint(0, 2) + uint(32, 2)
I1 = prefix(1, 0, 8, 1) + uint(0, 2) + uint(8, 2)
F8 = prefix(1, 1, 0x3F20, 8) + struct.pack("<HHBBBBI", 0, 64, 52, 11, 0, 52, 1023)


# --- as libhdf5 encodes them


@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("nbytes", [1, 2, 4, 8])
def test_integers_of_numpy(order: ByteOrder, signed: bool, nbytes: int) -> None:
    found = decode_datatype(of(f"{order.value}{'i' if signed else 'u'}{nbytes}"))
    assert found == integer(nbytes, signed, LITTLE if nbytes == 1 else order)
    assert isinstance(found, FixedPoint)
    assert found.is_plain


@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize("nbytes", [2, 4, 8])
def test_floats_of_numpy(order: ByteOrder, nbytes: int) -> None:
    assert decode_datatype(of(f"{order.value}f{nbytes}")) == ieee(nbytes, order)


def test_integers_of_odd_precision_and_offset() -> None:
    datatype = h5t.STD_I32BE.copy()
    datatype.set_precision(12)
    datatype.set_offset(5)
    found = decode_datatype(encoded(datatype))
    assert found == integer(4, order=BIG, offset=5, nbits=12)
    assert isinstance(found, FixedPoint)
    assert not found.is_plain


def test_bitfields_and_times() -> None:
    assert decode_datatype(encoded(h5t.STD_B16BE)) == Bitfield(nbytes=2, order=BIG, bit_offset=0, precision=16)
    assert decode_datatype(encoded(h5t.UNIX_D64LE)) == Time(nbytes=8, order=LITTLE, precision=64)


@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize("charset", list(Charset))
def test_strings_of_fixed_length(padding: Padding, charset: Charset) -> None:
    datatype = h5t.C_S1.copy()
    datatype.set_size(7)
    datatype.set_strpad(int(padding))
    datatype.set_cset(int(charset))
    assert decode_datatype(encoded(datatype)) == String(nbytes=7, padding=padding, charset=charset)


@pytest.mark.parametrize("charset", list(Charset))
def test_strings_of_variable_length(charset: Charset) -> None:
    """H5Tencode states the size in memory, a pointer's; the padding of such types is null-terminated."""
    datatype = h5t.C_S1.copy()
    datatype.set_size(h5t.VARIABLE)
    datatype.set_cset(int(charset))
    found = decode_datatype(encoded(datatype))
    assert found == VariableLengthString(nbytes=8, padding=Padding.NULL_TERMINATED, charset=charset)


def test_opaque_types_have_a_tag() -> None:
    datatype = h5t.create(h5t.OPAQUE, 5)
    datatype.set_tag(b"NUMPY:|V5, padded")
    assert decode_datatype(encoded(datatype)) == Opaque(nbytes=5, tag="NUMPY:|V5, padded")
    assert decode_datatype(of("V9")) == Opaque(nbytes=9, tag="")


def test_references_of_every_kind() -> None:
    assert decode_datatype(encoded(h5t.STD_REF_OBJ)) == Reference(nbytes=8, kind=ReferenceKind.OBJECT)
    assert decode_datatype(encoded(h5t.STD_REF_DSETREG)) == Reference(nbytes=12, kind=ReferenceKind.REGION)
    for kind in ReferenceKind:
        assert decode_datatype(prefix(4, 7, kind, 18)) == Reference(nbytes=18, kind=kind)


def test_enumerations_keep_their_members_in_the_file_s_order() -> None:
    found = decode_datatype(of(h5py.enum_dtype({"RED": -1, "GREEN": 5, "A LONG ONE": 300}, ">i2")))
    assert isinstance(found, Enumeration)
    assert found.base == integer(2, order=BIG)
    assert dict(found.members) == {"RED": -1, "GREEN": 5, "A LONG ONE": 300}


def test_compounds_of_scalars_arrays_and_compounds() -> None:
    inner = np.dtype([("x", "<f4"), ("y", ">f4")])
    outer = np.dtype({"names": ["a", "table", "inner"], "formats": ["<i2", ("<i4", (2, 3)), inner], "itemsize": 40})
    assert decode_datatype(of(outer)) == Compound(
        nbytes=40,
        members=(
            CompoundMember(name="a", byte_offset=0, datatype=integer(2)),
            CompoundMember(name="table", byte_offset=2, datatype=Array(nbytes=24, base=integer(4), shape=(2, 3))),
            CompoundMember(
                name="inner",
                byte_offset=26,
                datatype=Compound(
                    nbytes=8,
                    members=(
                        CompoundMember(name="x", byte_offset=0, datatype=ieee(4)),
                        CompoundMember(name="y", byte_offset=4, datatype=ieee(4, BIG)),
                    ),
                ),
            ),
        ),
    )


def test_sequences_of_variable_length_and_sequences_of_those() -> None:
    found = decode_datatype(encoded(h5t.vlen_create(h5t.vlen_create(h5t.STD_U16BE))))
    inner = VariableLengthSequence(nbytes=16, base=integer(2, False, BIG))
    assert found == VariableLengthSequence(nbytes=16, base=inner)


def test_native_complex_numbers() -> None:
    assert decode_datatype(encoded(h5t.COMPLEX_IEEE_F32BE)) == Complex(nbytes=8, base=ieee(4, BIG))
    assert decode_datatype(encoded(h5t.COMPLEX_IEEE_F64LE)) == Complex(nbytes=16, base=ieee(8))


# --- as older and newer libraries encode them


def member_v1(name: bytes, at: int, shape: tuple[int, ...], datatype: bytes) -> bytes:
    extents = [*shape, 0, 0, 0, 0][:4]
    fields = uint(at, 4) + uint(len(shape), 1) + bytes(3) + bytes(4) + bytes(4) + struct.pack("<4I", *extents)
    return padded(name + b"\0") + fields + datatype


def test_members_of_version_1_may_be_arrays_themselves() -> None:
    message = prefix(1, 6, 3, 60) + member_v1(b"scalar", 0, (), I4) + member_v1(b"exactly8", 4, (2, 3), F8)
    message += member_v1(b"longer than eight", 52, (1, 1, 2, 1), I4)
    assert decode_datatype(message) == Compound(
        nbytes=60,
        members=(
            CompoundMember(name="scalar", byte_offset=0, datatype=integer(4)),
            CompoundMember(name="exactly8", byte_offset=4, datatype=Array(nbytes=48, base=ieee(8), shape=(2, 3))),
            CompoundMember(
                name="longer than eight", byte_offset=52, datatype=Array(nbytes=8, base=integer(4), shape=(1, 1, 2, 1))
            ),
        ),
    )


def test_members_of_version_2_are_padded_and_have_no_shape() -> None:
    message = prefix(2, 6, 2, 8) + padded(b"a\0") + uint(0, 4) + I4 + padded(b"seven..\0") + uint(4, 4) + I4
    members = (
        CompoundMember(name="a", byte_offset=0, datatype=integer(4)),
        CompoundMember(name="seven..", byte_offset=4, datatype=integer(4)),
    )
    assert decode_datatype(message) == Compound(nbytes=8, members=members)


@pytest.mark.parametrize(("nbytes", "width"), [(8, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (1 << 24, 4)])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_members_of_version_3_have_offsets_as_wide_as_the_size_needs(version: int, nbytes: int, width: int) -> None:
    message = prefix(version, 6, 2, nbytes) + b"a\0" + uint(0, width) + I4 + b"bb\0" + uint(4, width) + I4
    members = (
        CompoundMember(name="a", byte_offset=0, datatype=integer(4)),
        CompoundMember(name="bb", byte_offset=4, datatype=integer(4)),
    )
    assert decode_datatype(message) == Compound(nbytes=nbytes, members=members)


def test_arrays_of_version_2_have_permutations() -> None:
    message = prefix(2, 10, 0, 24) + b"\x02\0\0\0" + uint(2, 4) + uint(3, 4) + uint(0, 4) + uint(1, 4) + I4
    assert decode_datatype(message) == Array(nbytes=24, base=integer(4), shape=(2, 3))


def test_arrays_of_version_3_have_none() -> None:
    message = prefix(3, 10, 0, 24) + b"\x02" + uint(2, 4) + uint(3, 4) + I4
    assert decode_datatype(message) == Array(nbytes=24, base=integer(4), shape=(2, 3))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_names_of_enumerations_are_padded_before_version_3(version: int) -> None:
    names = [b"RED\0", b"EXACTLY\0", b"LONGER NAME\0"]
    stored = b"".join(name if version == 3 else padded(name) for name in names)
    message = prefix(version, 8, 3, 1) + I1 + stored + b"\x00\x01\xff"
    assert decode_datatype(message) == Enumeration(
        nbytes=1, base=integer(1), members=(("RED", 0), ("EXACTLY", 1), ("LONGER NAME", -1))
    )


def test_vax_floats_need_version_3() -> None:
    fields = struct.pack("<HHBBBBI", 0, 32, 23, 8, 0, 23, 129)
    found = decode_datatype(prefix(3, 1, 0x1F61, 4) + fields)
    assert isinstance(found, FloatingPoint)
    assert (found.order, found.sign_location, found.exponent_bias) == (ByteOrder.VAX, 31, 129)
    older = decode_datatype(prefix(1, 1, 0x1F61, 4) + fields)
    assert isinstance(older, FloatingPoint)
    assert older.order is BIG


def test_strings_of_variable_length_may_be_padded_with_spaces() -> None:
    message = prefix(1, 9, 0x121, 16) + prefix(1, 3, 0, 1)
    found = decode_datatype(message)
    assert found == VariableLengthString(nbytes=16, padding=Padding.SPACE_PADDED, charset=Charset.UTF8)


@pytest.mark.parametrize(("offset", "precision", "stored", "value"), [(0, 3, 0xFD, -3), (4, 4, 0x7F, 7)])
def test_values_of_enumerations_have_the_precision_of_their_base(
    offset: int, precision: int, stored: int, value: int
) -> None:
    base = prefix(1, 0, 8, 1) + uint(offset, 2) + uint(precision, 2)
    found = decode_datatype(prefix(3, 8, 1, 1) + base + b"ONE\0" + bytes((stored,)))
    assert isinstance(found, Enumeration)
    assert found.members == (("ONE", value),)


def test_bytes_behind_the_message_do_not_matter() -> None:
    assert decode_datatype(padded(I4 + b"more", 32)) == integer(4)


# --- damage


@pytest.mark.parametrize(
    "message",
    [
        I4,
        F8,
        of("V9"),
        of([("a", "<i2"), ("b", "<f8", (2,))]),
        of(h5py.enum_dtype({"RED": 1, "GREEN": 2}, "i4")),
        encoded(h5t.vlen_create(h5t.STD_U16BE)),
        encoded(h5t.UNIX_D32LE),
        encoded(h5t.STD_B16BE),
        encoded(h5t.COMPLEX_IEEE_F32BE),
        prefix(1, 6, 1, 60) + member_v1(b"array", 4, (2, 3), F8),
        prefix(2, 10, 0, 24) + b"\x02\0\0\0" + uint(2, 4) + uint(3, 4) + uint(0, 4) + uint(1, 4) + I4,
    ],
)
def test_a_message_cut_short_anywhere_is_malformed(message: bytes) -> None:
    decode_datatype(message)
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_datatype(message[:nbytes])


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (prefix(0, 0, 8, 4) + I4[8:], "unknown version 0"),
        (prefix(6, 0, 8, 4) + I4[8:], "unknown version 6"),
        (prefix(1, 0, 8, 0) + I4[8:], "elements of 0 bytes"),
        (prefix(1, 0, 8, 4) + uint(0, 2) + uint(0, 2), "has 0 bits"),
        (prefix(1, 0, 8, 4) + uint(1, 2) + uint(32, 2), "32 bits at bit 1"),
        (prefix(1, 4, 0, 4) + uint(30, 2) + uint(3, 2), "3 bits at bit 30"),
        (prefix(3, 1, 0x3F40, 8) + F8[8:], "unknown byte order"),
        (prefix(1, 1, 0x3F30, 8) + F8[8:], "mantissa normalization"),
        (prefix(1, 1, 0x4020, 8) + F8[8:], "fields outside its size"),
        (prefix(1, 1, 0x3F20, 8) + struct.pack("<HHBBBBI", 0, 64, 54, 11, 0, 52, 1023), "fields outside its size"),
        (prefix(1, 1, 0x3F20, 8) + struct.pack("<HHBBBBI", 0, 64, 52, 0, 0, 52, 1023), "fields outside its size"),
        (prefix(3, 1, 0x1761, 3) + struct.pack("<HHBBBBI", 0, 24, 15, 8, 0, 15, 129), "unknown byte order"),
        (prefix(1, 2, 0, 4) + uint(33, 2), "33 bits at bit 0"),
        (prefix(1, 2, 0, 4) + uint(0, 2), "has 0 bits"),
        (prefix(1, 3, 0, 0), "elements of 0 bytes"),
        (prefix(1, 3, 0x03, 4), "string datatype has unknown padding 3"),
        (prefix(1, 3, 0x20, 4), "unknown character set 2"),
        (prefix(1, 6, 0, 4), "compound datatype has no members"),
        (prefix(3, 6, 1, 4) + b"a\0\x01" + I4, "extends beyond it"),
        (prefix(3, 6, 1, 4) + b"never ends", "unterminated name"),
        (prefix(1, 6, 1, 4) + padded(b"a\0") + uint(0, 4) + b"\x05" + bytes(27) + I4, "rank 5, but at most 4"),
        (prefix(3, 6, 2, 8) + b"a\0\x00" + I4 + b"a\0\x04" + I4, "with the same name"),
        (prefix(3, 6, 2, 8) + b"a\0\x00" + I4 + b"\0\x04" + I4, "unnamed members"),
        (prefix(1, 7, 5, 8), "unknown type 5"),
        (prefix(1, 7, 0, 1), "reference datatype has elements of 1 bytes, expected at least 2"),
        (prefix(1, 8, 0, 4) + I1, "not based on an integer type of the same size"),
        (prefix(1, 8, 0, 8) + F8, "not based on an integer"),
        (prefix(1, 9, 2, 16) + I1, "unknown type 2"),
        (prefix(3, 10, 0, 24) + b"\x21" + bytes(200), "array datatype has rank 33, but at most 32 is allowed"),
        (prefix(3, 10, 0, 20) + b"\x02" + uint(2, 4) + uint(3, 4) + I4, "20 bytes, but its elements need 24"),
        (prefix(3, 10, 0, 24) + b"\x02" + uint(0, 4) + uint(3, 4) + I4, "invalid size of 0 bytes"),
        (prefix(3, 10, 0, 24) + b"\x02" + 2 * uint(0xFFFFFFFF, 4) + I4, "array datatype of shape"),
        (
            prefix(3, 10, 0, 4) + b"\x20" + 32 * uint(1, 4) + prefix(3, 10, 0, 4) + b"\x01" + uint(1, 4) + I4,
            "nested array datatypes have more than 32 dimensions",
        ),
        (prefix(5, 11, 1, 8) + F8, "not a pair of floating-point numbers"),
        (prefix(5, 11, 1, 8) + I4, "not a pair of floating-point numbers"),
    ],
)
def test_an_impossible_type_is_malformed(message: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        decode_datatype(message)


@pytest.mark.parametrize("code", [3, 5, 6])
def test_elements_larger_than_numpy_s_largest_are_unsupported(code: int) -> None:
    assert decode_datatype(prefix(1, 3, 0, 0x7FFFFFFF)).nbytes == 0x7FFFFFFF
    with pytest.raises(Unsupported, match="elements of 2147483648 bytes"):
        decode_datatype(prefix(3, code, 1, 0x80000000) + b"a\0" + uint(0, 4) + I4)


@pytest.mark.parametrize("code", [12, 15])
def test_an_unknown_class_is_unsupported(code: int) -> None:
    with pytest.raises(Unsupported, match=f"datatype class {code}"):
        decode_datatype(prefix(5, code, 0, 4))


@pytest.mark.parametrize(("depth", "allowed"), [(30, True), (40, False), (5000, False)])
def test_types_may_be_nested_but_not_without_end(depth: int, allowed: bool) -> None:
    message = prefix(1, 9, 0, 16) * depth + I4
    if allowed:
        assert isinstance(decode_datatype(message), VariableLengthSequence)
    else:
        with pytest.raises(H5ZarrError, match="nested more than 32 levels deep"):
            decode_datatype(message)
