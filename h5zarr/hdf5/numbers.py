"""Convert numbers without a numpy type: unusual precisions, bit offsets, byte orders and float formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.hdf5.datatype import Bitfield, ByteOrder, FixedPoint, FloatingPoint, Normalization, Time

# Mantissa bits, exponent bits and exponent bias of IEEE 754 binary16, binary32 and binary64, by size in bytes.
_IEEE = {2: (10, 5, 15), 4: (23, 8, 127), 8: (52, 11, 1023)}
_DOUBLE_MANTISSA_NBITS, _DOUBLE_BIAS = 52, 1023


def float_dtype(datatype: FloatingPoint) -> np.dtype[Any] | None:
    """Return the numpy type with the same bits as a floating-point type, or None."""
    if datatype.order is ByteOrder.VAX or datatype.bit_offset:
        return None
    if datatype.nbytes in _IEEE:
        mantissa, exponent, bias = _IEEE[datatype.nbytes]
        is_ieee = (
            datatype.precision == 8 * datatype.nbytes
            and datatype.normalization is Normalization.IMPLIED
            and (datatype.mantissa_location, datatype.mantissa_nbits) == (0, mantissa)
            and (datatype.exponent_location, datatype.exponent_nbits) == (mantissa, exponent)
            and datatype.sign_location == mantissa + exponent
            and datatype.exponent_bias == bias
        )
        return np.dtype(f"{datatype.order.value}f{datatype.nbytes}") if is_ieee else None
    is_native = _is_x87(datatype) and datatype.nbytes == np.dtype(np.longdouble).itemsize
    return np.dtype(np.longdouble) if is_native else None


def _is_x87(datatype: FloatingPoint) -> bool:
    """Return whether this is an x87 long double (64 mantissa bits, none implied), on a machine that supports it."""
    return (
        np.finfo(np.longdouble).nmant == 63
        and 10 <= datatype.nbytes <= np.dtype(np.longdouble).itemsize
        and datatype.order is ByteOrder.LITTLE
        and (datatype.mantissa_location, datatype.mantissa_nbits) == (0, 64)
        and (datatype.exponent_location, datatype.exponent_nbits) == (64, 15)
        and datatype.sign_location == 79
        and datatype.exponent_bias == 16383
        and datatype.normalization is Normalization.NONE
    )


def integer_dtype(datatype: FixedPoint | Bitfield | Time) -> np.dtype[Any] | None:
    """Return the numpy type with the same bits as an integer type, or None."""
    if datatype.nbytes not in (1, 2, 4, 8) or datatype.order is ByteOrder.VAX:
        return None
    if getattr(datatype, "bit_offset", 0) or datatype.precision != 8 * datatype.nbytes:
        return None
    signed = isinstance(datatype, FixedPoint) and datatype.signed
    return np.dtype(f"{datatype.order.value}{'i' if signed else 'u'}{datatype.nbytes}")


def decode_integers(datatype: FixedPoint | Bitfield | Time, raw: bytes, count: int) -> npt.NDArray[Any]:
    """Return integers of up to 8 bytes, of any precision and bit offset, in the smallest type that fits."""
    if datatype.nbytes > 8:
        raise Unsupported(f"integers of {datatype.nbytes} bytes: h5zarr supports at most 8")
    words = _words(raw, count, datatype.nbytes, datatype.order)
    bit_offset = getattr(datatype, "bit_offset", 0)
    signed = isinstance(datatype, FixedPoint) and datatype.signed
    spare = 64 - datatype.precision - bit_offset
    width = next(width for width in (1, 2, 4, 8) if width >= datatype.nbytes)
    shifted = words << np.uint64(spare)
    if signed:
        return (shifted.view(np.int64) >> np.int64(64 - datatype.precision)).astype(f"i{width}")
    return (shifted >> np.uint64(64 - datatype.precision)).astype(f"u{width}")


def decode_floats(datatype: FloatingPoint, raw: bytes, count: int) -> npt.NDArray[Any]:
    """Return floating-point numbers of any format that float64 or this machine's long double represents exactly."""
    if _is_x87(datatype):
        wide = np.zeros((count, np.dtype(np.longdouble).itemsize), np.uint8)
        wide[:, : datatype.nbytes] = np.frombuffer(raw, np.uint8, count * datatype.nbytes).reshape(
            count, datatype.nbytes
        )
        return wide.view(np.longdouble)[:, 0]
    exponents = (1 << datatype.exponent_nbits) - 1
    # Of finite numbers; the last IEEE exponent means infinity or NaN.
    top = exponents if datatype.order is ByteOrder.VAX else exponents - 1
    fits = (
        datatype.nbytes <= 8
        and datatype.mantissa_nbits <= _DOUBLE_MANTISSA_NBITS
        and datatype.normalization is Normalization.IMPLIED
        and top - datatype.exponent_bias <= _DOUBLE_BIAS
        and 1 - datatype.exponent_bias - datatype.mantissa_nbits >= -1074
    )
    if not fits:
        raise Unsupported(
            f"floating-point numbers of {datatype.nbytes} bytes with {datatype.mantissa_nbits} mantissa bits and "
            f"{datatype.exponent_nbits} exponent bits"
        )
    words = _words(raw, count, datatype.nbytes, datatype.order)
    mantissa = _field(words, datatype.mantissa_location, datatype.mantissa_nbits)
    exponent = _field(words, datatype.exponent_location, datatype.exponent_nbits).astype(np.int64)
    negative = _field(words, datatype.sign_location, 1) == 1
    fraction = mantissa.astype(np.float64)
    whole = fraction + np.float64(1 << datatype.mantissa_nbits)
    if datatype.order is ByteOrder.VAX:  # VAX has no denormals and no infinities; a biased exponent of 0 means zero
        magnitude = np.where(
            exponent == 0, 0.0, np.ldexp(whole, exponent - datatype.exponent_bias - datatype.mantissa_nbits)
        )
    else:
        denormal = np.ldexp(fraction, 1 - datatype.exponent_bias - datatype.mantissa_nbits)
        normal = np.ldexp(whole, np.minimum(exponent, exponents - 1) - datatype.exponent_bias - datatype.mantissa_nbits)
        magnitude = np.where(exponent == 0, denormal, normal)
        special = np.where(mantissa == 0, np.inf, np.nan)
        magnitude = np.where(exponent == exponents, special, magnitude)
    return np.where(negative, -magnitude, magnitude)


def _words(raw: bytes, count: int, nbytes: int, order: ByteOrder) -> npt.NDArray[np.uint64]:
    """Return the bytes of each element as one unsigned number."""
    rows = np.frombuffer(raw, np.uint8, count * nbytes).reshape(count, nbytes)
    if order is ByteOrder.BIG:
        rows = rows[:, ::-1]
    elif order is ByteOrder.VAX:  # little-endian 16-bit words, the most significant word first
        rows = rows.reshape(count, nbytes // 2, 2)[:, ::-1].reshape(count, nbytes)
    wide = np.zeros((count, 8), np.uint8)
    wide[:, :nbytes] = rows
    return wide.view("<u8")[:, 0]


def _field(words: npt.NDArray[np.uint64], location: int, nbits: int) -> npt.NDArray[np.uint64]:
    return words >> np.uint64(location) & np.uint64((1 << nbits) - 1)
