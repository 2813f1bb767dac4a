"""HDF5 datatypes for numpy types, so that all files and references are described in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np

from h5zarr.hdf5.datatype import (
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
    VariableLengthString,
)

TEXT = VariableLengthString(nbytes=16, padding=Padding.NULL_TERMINATED, charset=Charset.UTF8)
_BYTE = FixedPoint(nbytes=1, order=ByteOrder.LITTLE, signed=True, bit_offset=0, precision=8)
BOOLEAN = Enumeration(nbytes=1, base=_BYTE, members=(("FALSE", 0), ("TRUE", 1)))
_MANTISSAS = {2: 10, 4: 23, 8: 52}


def datatype_of(dtype: np.dtype[Any]) -> Datatype | None:
    """Return the datatype of numbers, booleans, records or opaque bytes; None for a type that HDF5 lacks."""
    order = ByteOrder.BIG if dtype.byteorder == ">" else ByteOrder.LITTLE
    match dtype.kind:
        case "b":
            return BOOLEAN
        case "i" | "u":
            nbits = 8 * dtype.itemsize
            return FixedPoint(
                nbytes=dtype.itemsize, order=order, signed=dtype.kind == "i", bit_offset=0, precision=nbits
            )
        case "f":
            return _floating(dtype.itemsize, order)
        case "c":
            return Complex(nbytes=dtype.itemsize, base=_floating(dtype.itemsize // 2, order))
        case "V" if dtype.names is None:
            return Opaque(nbytes=dtype.itemsize, tag="")
        case "V":
            return _compound(dtype)
    return None


def _floating(nbytes: int, order: ByteOrder) -> FloatingPoint:
    """Return an IEEE type of 2, 4 or 8 bytes, or the 80 bits of x87 in more bytes."""
    is_long = nbytes not in _MANTISSAS
    precision, mantissa = (80, 64) if is_long else (8 * nbytes, _MANTISSAS[nbytes])
    exponent = precision - 1 - mantissa
    return FloatingPoint(
        nbytes=nbytes,
        order=order,
        bit_offset=0,
        precision=precision,
        sign_location=precision - 1,
        exponent_location=mantissa,
        exponent_nbits=exponent,
        mantissa_location=0,
        mantissa_nbits=mantissa,
        exponent_bias=(1 << exponent - 1) - 1,
        normalization=Normalization.NONE if is_long else Normalization.IMPLIED,
    )


def _compound(dtype: np.dtype[Any]) -> Compound | None:
    members = []
    for name, (inner, byte_offset, *_) in (dtype.fields or {}).items():
        datatype = datatype_of(inner)
        if datatype is None:
            return None
        members.append(CompoundMember(name=name, byte_offset=byte_offset, datatype=datatype))
    return Compound(nbytes=dtype.itemsize, members=tuple(members))
