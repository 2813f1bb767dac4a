"""The datatype message, versions 1 to 5. Spec: IV.A.2.d."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.cursor import Cursor, text
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
from h5zarr.hdf5.numbers import decode_integers

_MAX_DEPTH = 32  # real types nest a few levels; deeper nesting is hostile and would exhaust the stack
_MAX_ARRAY_RANK = 32
_LEAST_REFERENCE_NBYTES = 2  # size of the shortest address
_MAX_NBYTES = 0x7FFFFFFF  # the largest element size of numpy
_FLOAT_ORDERS = {0x00: ByteOrder.LITTLE, 0x01: ByteOrder.BIG, 0x41: ByteOrder.VAX}


@lru_cache(maxsize=4096)
def decode_datatype(content: bytes) -> Datatype:
    """Return the type that a message describes.

    Cached, because the thousands of attributes of a file have few different types.
    """
    return _decode(Cursor(content, "datatype message"), 0)


def _decode(cursor: Cursor, depth: int) -> Datatype:
    if depth > _MAX_DEPTH:
        raise MalformedFile(f"datatype is nested more than {_MAX_DEPTH} levels deep")
    class_and_version = cursor.u8()
    version, code = class_and_version >> 4, class_and_version & 0x0F
    bits = cursor.uint(3)
    nbytes = cursor.u32()
    if not 1 <= version <= 5:
        raise MalformedFile(f"datatype message has unknown version {version}")
    decoder = _CLASSES.get(code)
    if decoder is None:
        raise Unsupported(f"datatype class {code} does not exist in HDF5 2.0")
    if nbytes == 0:
        raise MalformedFile(f"datatype of class {code} has elements of 0 bytes")
    if nbytes > _MAX_NBYTES:
        raise Unsupported(f"elements of {nbytes} bytes: h5zarr supports at most {_MAX_NBYTES}")
    return decoder(cursor, bits, nbytes, version, depth)


def _order(bits: int) -> ByteOrder:
    return ByteOrder.BIG if bits & 1 else ByteOrder.LITTLE


def _check_bits(bit_offset: int, precision: int, nbytes: int) -> None:
    if precision == 0 or bit_offset + precision > 8 * nbytes:
        raise MalformedFile(f"datatype of {nbytes} bytes has {precision} bits at bit {bit_offset}")


def _fixed_point(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> FixedPoint:
    bit_offset, precision = cursor.u16(), cursor.u16()
    _check_bits(bit_offset, precision, nbytes)
    return FixedPoint(
        nbytes=nbytes, order=_order(bits), signed=bool(bits & 8), bit_offset=bit_offset, precision=precision
    )


def _floating_point(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> FloatingPoint:
    order = _FLOAT_ORDERS.get(bits & (0x41 if version >= 3 else 0x01))  # VAX order exists since version 3
    if order is None or (order is ByteOrder.VAX and nbytes % 2):
        raise MalformedFile("floating-point datatype has an unknown byte order")
    normalization = bits >> 4 & 3
    if normalization == 3:
        raise MalformedFile("floating-point datatype has an unknown mantissa normalization")
    found = FloatingPoint(
        nbytes=nbytes,
        order=order,
        sign_location=bits >> 8 & 0xFF,
        normalization=Normalization(normalization),
        bit_offset=cursor.u16(),
        precision=cursor.u16(),
        exponent_location=cursor.u8(),
        exponent_nbits=cursor.u8(),
        mantissa_location=cursor.u8(),
        mantissa_nbits=cursor.u8(),
        exponent_bias=cursor.u32(),
    )
    _check_bits(found.bit_offset, found.precision, nbytes)
    ends = (
        found.sign_location + 1,
        found.exponent_location + found.exponent_nbits,
        found.mantissa_location + found.mantissa_nbits,
    )
    if max(ends) > 8 * nbytes or not found.exponent_nbits or not found.mantissa_nbits:
        raise MalformedFile(f"floating-point datatype of {nbytes} bytes has fields outside its size")
    return found


def _time(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Time:
    precision = cursor.u16()
    _check_bits(0, precision, nbytes)
    return Time(nbytes=nbytes, order=_order(bits), precision=precision)


def _padding(code: int) -> Padding:
    if code > Padding.SPACE_PADDED:
        raise MalformedFile(f"string datatype has unknown padding {code}")
    return Padding(code)


def _charset(code: int) -> Charset:
    if code > Charset.UTF8:
        raise MalformedFile(f"string datatype has unknown character set {code}")
    return Charset(code)


def _string(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> String:
    return String(nbytes=nbytes, padding=_padding(bits & 0x0F), charset=_charset(bits >> 4 & 0x0F))


def _bitfield(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Bitfield:
    bit_offset, precision = cursor.u16(), cursor.u16()
    _check_bits(bit_offset, precision, nbytes)
    return Bitfield(nbytes=nbytes, order=_order(bits), bit_offset=bit_offset, precision=precision)


def _opaque(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Opaque:
    return Opaque(nbytes=nbytes, tag=text(cursor.take(bits & 0xFF).rstrip(b"\0")))


def _name(cursor: Cursor, version: int) -> str:
    """Return a member name. Before version 3 it is padded to a multiple of eight bytes."""
    start = cursor.position
    name = text(cursor.terminated())
    if version < 3:
        cursor.align(8, start)
    return name


def _compound(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Compound:
    count = bits & 0xFFFF
    if count == 0:
        raise MalformedFile("compound datatype has no members")
    members = tuple(_member(cursor, nbytes, version, depth) for _ in range(count))
    if len({member.name for member in members}) != count or not all(member.name for member in members):
        raise MalformedFile("compound datatype has unnamed members, or several with the same name")
    if any(member.byte_offset + member.datatype.nbytes > nbytes for member in members):
        raise MalformedFile(f"compound datatype of {nbytes} bytes has a member that extends beyond it")
    return Compound(nbytes=nbytes, members=members)


def _member(cursor: Cursor, nbytes: int, version: int, depth: int) -> CompoundMember:
    name = _name(cursor, version)
    byte_offset = cursor.uint((nbytes.bit_length() + 7) // 8) if version >= 3 else cursor.u32()
    shape: tuple[int, ...] = ()
    if version == 1:
        rank = cursor.u8()
        cursor.skip(3 + 4 + 4)  # reserved, dimension permutation, reserved
        extents = [cursor.u32() for _ in range(4)]
        if rank > 4:
            raise MalformedFile(f"compound member {name!r} has rank {rank}, but at most 4 is allowed")
        shape = tuple(extents[:rank])
    datatype = _decode(cursor, depth + 1)
    if shape:
        datatype = _array_of(datatype, shape)
    return CompoundMember(name=name, byte_offset=byte_offset, datatype=datatype)


def _reference(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Reference:
    if (code := bits & 0x0F) > ReferenceKind.ATTRIBUTE:
        raise MalformedFile(f"reference datatype has unknown type {code}")
    if nbytes < _LEAST_REFERENCE_NBYTES:
        raise MalformedFile(
            f"reference datatype has elements of {nbytes} bytes, expected at least {_LEAST_REFERENCE_NBYTES}"
        )
    return Reference(nbytes=nbytes, kind=ReferenceKind(code))


def _enumeration(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Enumeration:
    base = _decode(cursor, depth + 1)
    if not isinstance(base, FixedPoint) or base.nbytes != nbytes:
        raise MalformedFile("enumeration is not based on an integer type of the same size")
    names = [_name(cursor, version) for _ in range(bits & 0xFFFF)]
    values = decode_integers(base, cursor.take(nbytes * len(names)), len(names)).tolist()
    return Enumeration(nbytes=nbytes, base=base, members=tuple(zip(names, values, strict=True)))


def _variable_length(
    cursor: Cursor, bits: int, nbytes: int, version: int, depth: int
) -> VariableLengthString | VariableLengthSequence:
    base = _decode(cursor, depth + 1)
    if (code := bits & 0x0F) == 0:
        return VariableLengthSequence(nbytes=nbytes, base=base)
    if code == 1:
        return VariableLengthString(
            nbytes=nbytes, padding=_padding(bits >> 4 & 0x0F), charset=_charset(bits >> 8 & 0x0F)
        )
    raise MalformedFile(f"variable-length datatype has unknown type {code}")


def _array(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Array:
    rank = cursor.u8()
    if rank > _MAX_ARRAY_RANK:
        raise MalformedFile(f"array datatype has rank {rank}, but at most {_MAX_ARRAY_RANK} is allowed")
    if version < 3:
        cursor.skip(3)
    shape = tuple(cursor.u32() for _ in range(rank))
    if version < 3:
        cursor.skip(4 * rank)  # the permutation was never used
    found = _array_of(_decode(cursor, depth + 1), shape)
    if found.nbytes != nbytes:
        raise MalformedFile(
            f"array datatype of shape {shape} has a stated size of {nbytes} bytes, but its elements need {found.nbytes}"
        )
    return found


def _array_of(base: Datatype, shape: tuple[int, ...]) -> Array:
    nbytes = base.nbytes
    for extent in shape:
        nbytes *= extent
    if nbytes == 0 or nbytes > _MAX_NBYTES:
        raise MalformedFile(f"array datatype of shape {shape} has an invalid size of {nbytes} bytes")
    if len(shape) + (len(base.shape) if isinstance(base, Array) else 0) > _MAX_ARRAY_RANK:
        raise MalformedFile(f"nested array datatypes have more than {_MAX_ARRAY_RANK} dimensions")
    return Array(nbytes=nbytes, base=base, shape=shape)


def _complex(cursor: Cursor, bits: int, nbytes: int, version: int, depth: int) -> Complex:
    """Complex numbers of HDF5 2.0. The bit field says "homogeneous, rectangular", the only defined form."""
    base = _decode(cursor, depth + 1)
    if not isinstance(base, FloatingPoint) or 2 * base.nbytes != nbytes:
        raise MalformedFile(f"complex datatype of {nbytes} bytes is not a pair of floating-point numbers")
    return Complex(nbytes=nbytes, base=base)


_CLASSES: dict[int, Callable[[Cursor, int, int, int, int], Datatype]] = {
    0: _fixed_point,
    1: _floating_point,
    2: _time,
    3: _string,
    4: _bitfield,
    5: _opaque,
    6: _compound,
    7: _reference,
    8: _enumeration,
    9: _variable_length,
    10: _array,
    11: _complex,
}
