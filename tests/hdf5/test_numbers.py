"""Numbers that numpy has no type for, against exact arithmetic, libhdf5's conversions, and published bit patterns."""

from __future__ import annotations

import random
from fractions import Fraction

import h5py
import numpy as np
import pytest
from h5py import h5d, h5s, h5t

from h5zarr.errors import Unsupported
from h5zarr.hdf5.datatype import Bitfield, ByteOrder, FixedPoint, FloatingPoint, Normalization, Time
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.numbers import decode_floats, decode_integers, float_dtype, integer_dtype

LITTLE, BIG, VAX = ByteOrder.LITTLE, ByteOrder.BIG, ByteOrder.VAX


def floating(
    nbytes: int,
    exponent: int,
    mantissa: int,
    bias: int,
    *,
    order: ByteOrder = LITTLE,
    shift: int = 0,
    normalization: Normalization = Normalization.IMPLIED,
) -> FloatingPoint:
    """Return a type of sign, exponent and mantissa, next to one another, `shift` bits above the lowest."""
    return FloatingPoint(
        nbytes=nbytes,
        order=order,
        bit_offset=0,
        precision=8 * nbytes,
        sign_location=shift + mantissa + exponent,
        exponent_location=shift + mantissa,
        exponent_nbits=exponent,
        mantissa_location=shift,
        mantissa_nbits=mantissa,
        exponent_bias=bias,
        normalization=normalization,
    )


BFLOAT16 = floating(2, 8, 7, 127)
FLOAT8_E4M3 = floating(1, 4, 3, 7)
FLOAT8_E5M2 = floating(1, 5, 2, 15)
VAX_F = floating(4, 8, 23, 129, order=VAX)
VAX_G = floating(8, 11, 52, 1025, order=VAX)
FORMATS = {
    "bfloat16": BFLOAT16,
    "bfloat16 big-endian": floating(2, 8, 7, 127, order=BIG),
    "float8 E4M3": FLOAT8_E4M3,
    "float8 E5M2": FLOAT8_E5M2,
    "24 bits": floating(3, 7, 16, 63),
    "24 bits big-endian": floating(3, 7, 16, 63, order=BIG),
    "float16 in the upper half of 32 bits": floating(4, 5, 10, 15, shift=16),
    "64 bits with another bias": floating(8, 10, 52, 400),
    "float64 with a narrow mantissa": floating(8, 11, 40, 1023, order=BIG),
    "VAX F": VAX_F,
    "VAX with 5 bits of exponent": floating(2, 5, 10, 17, order=VAX),
    "VAX with 64 bits": floating(8, 10, 52, 500, order=VAX),
}


def exact(datatype: FloatingPoint, element: bytes) -> Fraction | float:
    """Return the number that `element` represents, computed with integers; a float if it is not finite."""
    match datatype.order:
        case ByteOrder.BIG:
            word = int.from_bytes(element, "big")
        case ByteOrder.LITTLE:
            word = int.from_bytes(element, "little")
        case ByteOrder.VAX:  # pairs of bytes, each little-endian, the most significant pair first
            pairs = [element[start : start + 2] for start in range(0, len(element), 2)]
            word = int.from_bytes(b"".join(reversed(pairs)), "little")

    def bits(location: int, nbits: int) -> int:
        return word >> location & ((1 << nbits) - 1)

    sign = -1 if bits(datatype.sign_location, 1) else 1
    exponent = bits(datatype.exponent_location, datatype.exponent_nbits)
    mantissa = bits(datatype.mantissa_location, datatype.mantissa_nbits)
    fraction = Fraction(mantissa, 1 << datatype.mantissa_nbits)
    if datatype.order is ByteOrder.VAX:
        if exponent == 0:
            return Fraction(0)
    elif exponent == (1 << datatype.exponent_nbits) - 1:
        return float("nan") if mantissa else sign * float("inf")
    elif exponent == 0:
        return sign * fraction * Fraction(2) ** (1 - datatype.exponent_bias)
    return sign * (1 + fraction) * Fraction(2) ** (exponent - datatype.exponent_bias)


def patterns(datatype: FloatingPoint) -> list[bytes]:
    """Return elements: all of them where that is few, else random ones and those with extreme fields."""
    nbytes = datatype.nbytes
    if nbytes <= 2:
        return [number.to_bytes(nbytes, "little") for number in range(256**nbytes)]
    chance = random.Random(nbytes)
    found = [chance.randbytes(nbytes) for _ in range(2000)]
    for _ in range(300):
        exponent = chance.choice([0, 1, (1 << datatype.exponent_nbits) - 2, (1 << datatype.exponent_nbits) - 1])
        mantissa = chance.choice(
            [0, 1, (1 << datatype.mantissa_nbits) - 1, chance.getrandbits(datatype.mantissa_nbits)]
        )
        word = chance.getrandbits(1) << datatype.sign_location
        word |= exponent << datatype.exponent_location | mantissa << datatype.mantissa_location
        stored = word.to_bytes(nbytes, "big" if datatype.order is BIG else "little")
        if datatype.order is VAX:
            stored = b"".join(reversed([stored[start : start + 2] for start in range(0, nbytes, 2)]))
        found.append(stored)
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_floats_of_any_format_are_exact(name: str) -> None:
    datatype = FORMATS[name]
    elements = patterns(datatype)
    found = decode_floats(datatype, b"".join(elements), len(elements))
    assert found.dtype == np.float64
    kinds = set()
    for element, value in zip(elements, found.tolist(), strict=True):
        expected = exact(datatype, element)
        if isinstance(expected, float):
            kinds.add("not finite")
            assert value == expected or (value != value and expected != expected)
        else:
            kinds.add("finite")
            assert Fraction(value) == expected
    assert kinds == ({"finite"} if datatype.order is VAX else {"finite", "not finite"})


@pytest.mark.parametrize(
    ("datatype", "element", "value"),
    [
        (BFLOAT16, "803f", 1.0),
        (BFLOAT16, "4940", 3.140625),
        (BFLOAT16, "80ff", -np.inf),
        (BFLOAT16, "0100", 2.0**-133),
        (FLOAT8_E5M2, "7b", 57344.0),  # the largest
        (FLOAT8_E5M2, "01", 2.0**-16),  # the smallest
        (FLOAT8_E4M3, "38", 1.0),
        (FLOAT8_E4M3, "01", 2.0**-9),
        # VAX Architecture Reference Manual, F_floating: as bytes in memory.
        (VAX_F, "80400000", 1.0),
        (VAX_F, "80c00000", -1.0),
        (VAX_F, "60410000", 3.5),
        (VAX_F, "4941d00f", 3.141590118408203),
        (VAX_F, "4941db0f", 3.1415927410125732),
        (VAX_F, "ff7fffff", 1.7014117331926443e38),
        (VAX_F, "80000000", 2.9387358770557188e-39),
        (VAX_F, "00000000", 0.0),
    ],
)
def test_known_constants(datatype: FloatingPoint, element: str, value: float) -> None:
    assert decode_floats(datatype, bytes.fromhex(element), 1).tolist() == [value]


def test_signed_zeros_keep_their_sign() -> None:
    assert np.signbit(decode_floats(BFLOAT16, bytes.fromhex("00800000"), 2)).tolist() == [True, False]


@pytest.mark.parametrize("name", FORMATS)
def test_no_elements_are_no_numbers(name: str) -> None:
    assert decode_floats(FORMATS[name], b"", 0).tolist() == []


# --- against libhdf5


def converted(datatype: h5t.TypeID, raw: bytes, memory: h5t.TypeID, dtype: str) -> np.ndarray:
    """Return elements of `datatype` as libhdf5 converts them."""
    count = len(raw) // datatype.get_size()
    with h5py.File("converted", "w", driver="core", backing_store=False) as file:
        dataset = h5d.create(file.id, b"values", datatype, h5s.create_simple((count,)))
        dataset.write(h5s.ALL, h5s.ALL, np.frombuffer(raw, f"V{datatype.get_size()}").copy(), datatype)
        found = np.zeros(count, dtype)
        dataset.read(h5s.ALL, h5s.ALL, found, memory)
    return found


@pytest.mark.parametrize("order", [h5t.ORDER_LE, h5t.ORDER_BE])
@pytest.mark.parametrize(
    ("nbytes", "exponent", "mantissa", "bias", "offset"),
    [(1, 4, 3, 7, 0), (1, 5, 2, 15, 0), (2, 8, 7, 127, 0), (3, 7, 16, 63, 0), (4, 5, 10, 15, 7), (8, 9, 30, 255, 0)],
)
def test_custom_floats_are_those_of_libhdf5(
    order: int, nbytes: int, exponent: int, mantissa: int, bias: int, offset: int
) -> None:
    datatype = h5t.IEEE_F64LE.copy()
    datatype.set_fields(mantissa + exponent, mantissa, exponent, 0, mantissa)
    datatype.set_ebias(bias)
    datatype.set_precision(1 + exponent + mantissa)
    datatype.set_size(nbytes)
    datatype.set_offset(offset)
    datatype.set_order(order)
    raw = bytes(range(256)) if nbytes == 1 else random.Random(nbytes).randbytes(2000 * nbytes)
    decoded = decode_datatype(datatype.encode()[2:])
    assert isinstance(decoded, FloatingPoint)
    found = decode_floats(decoded, raw, len(raw) // nbytes)
    assert np.array_equal(found, converted(datatype, raw, h5t.NATIVE_DOUBLE, "f8"), equal_nan=True)


@pytest.mark.parametrize("order", [h5t.ORDER_LE, h5t.ORDER_BE])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(
    ("nbytes", "precision", "offset"),
    [
        (1, 3, 2),
        (1, 1, 7),
        (2, 12, 0),
        (2, 12, 4),
        (3, 24, 0),
        (3, 20, 3),
        (4, 17, 15),
        (5, 40, 0),
        (7, 1, 55),
        (8, 33, 9),
    ],
)
def test_odd_integers_are_those_of_libhdf5(order: int, signed: bool, nbytes: int, precision: int, offset: int) -> None:
    datatype = (h5t.STD_I64LE if signed else h5t.STD_U64LE).copy()
    datatype.set_precision(precision)
    datatype.set_offset(offset)
    datatype.set_size(nbytes)
    datatype.set_order(order)
    raw = random.Random(nbytes).randbytes(500 * nbytes)
    decoded = decode_datatype(datatype.encode()[2:])
    assert isinstance(decoded, FixedPoint)
    assert (decoded.precision, decoded.bit_offset) == (precision, offset)
    found = decode_integers(decoded, raw, 500)
    assert found.dtype.kind == ("i" if signed else "u")
    assert found.dtype.itemsize == {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 7: 8, 8: 8}[nbytes]
    assert found.tolist() == converted(datatype, raw, h5t.NATIVE_INT64, "i8").tolist()


# --- integers


def integer(nbytes: int, *, signed: bool, precision: int, offset: int = 0, order: ByteOrder = LITTLE) -> FixedPoint:
    return FixedPoint(nbytes=nbytes, order=order, signed=signed, bit_offset=offset, precision=precision)


@pytest.mark.parametrize(
    ("datatype", "element", "value"),
    [
        (integer(3, signed=True, precision=24), "ffffff", -1),
        (integer(3, signed=False, precision=24), "ffffff", 0xFFFFFF),
        (integer(3, signed=False, precision=24, order=BIG), "010203", 0x010203),
        (integer(2, signed=True, precision=12), "0008", -2048),
        (integer(2, signed=True, precision=12), "ff07", 2047),
        (integer(2, signed=True, precision=12), "fff7", 2047),  # bits outside the number do not count
        (integer(4, signed=False, precision=8, offset=12), "efdcab89", 0xBD),
        (integer(8, signed=True, precision=63), "ffffffffffffff7f", -1),
        (integer(8, signed=False, precision=63), "ffffffffffffffff", (1 << 63) - 1),
        (Bitfield(nbytes=2, order=BIG, bit_offset=4, precision=4), "0ab0", 0xB),
        (Time(nbytes=4, order=LITTLE, precision=31), "ffffffff", (1 << 31) - 1),
    ],
)
def test_integers_of_any_precision_and_offset(datatype: FixedPoint | Bitfield | Time, element: str, value: int) -> None:
    assert integer_dtype(datatype) is None
    assert decode_integers(datatype, bytes.fromhex(element) * 3, 3).tolist() == [value] * 3


def test_no_elements_are_no_integers() -> None:
    assert decode_integers(integer(3, signed=True, precision=24), b"", 0).tolist() == []


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8])
@pytest.mark.parametrize("order", [LITTLE, BIG])
def test_plain_integers_are_numpy_s_own(nbytes: int, order: ByteOrder) -> None:
    code = f"{order.value}%s{nbytes}"
    assert integer_dtype(integer(nbytes, signed=True, precision=8 * nbytes, order=order)) == np.dtype(code % "i")
    assert integer_dtype(integer(nbytes, signed=False, precision=8 * nbytes, order=order)) == np.dtype(code % "u")
    bitfield = Bitfield(nbytes=nbytes, order=order, bit_offset=0, precision=8 * nbytes)
    assert integer_dtype(bitfield) == np.dtype(code % "u")
    assert integer_dtype(Time(nbytes=nbytes, order=order, precision=8 * nbytes)) == np.dtype(code % "u")


def test_integers_of_more_than_8_bytes_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="integers of 16 bytes"):
        decode_integers(integer(16, signed=True, precision=128), bytes(16), 1)


# --- floats that numpy has


@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize(("nbytes", "exponent", "mantissa"), [(2, 5, 10), (4, 8, 23), (8, 11, 52)])
def test_ieee_floats_are_numpy_s_own(order: ByteOrder, nbytes: int, exponent: int, mantissa: int) -> None:
    bias = (1 << (exponent - 1)) - 1
    datatype = floating(nbytes, exponent, mantissa, bias, order=order)
    assert float_dtype(datatype) == np.dtype(f"{order.value}f{nbytes}")
    assert float_dtype(floating(nbytes, exponent, mantissa, bias + 1, order=order)) is None
    assert float_dtype(floating(nbytes, exponent + 1, mantissa - 1, bias, order=order)) is None


LONG_DOUBLE_IS_X87 = np.finfo(np.longdouble).nmant == 63


@pytest.mark.skipif(not LONG_DOUBLE_IS_X87, reason="this machine has no 80-bit long double")
@pytest.mark.parametrize("nbytes", [10, 12, 16])
def test_long_doubles_of_the_x87_are_this_machine_s_own_in_any_room(nbytes: int) -> None:
    datatype = floating(nbytes, 15, 64, 16383, normalization=Normalization.NONE)
    values = np.array([1.0, -2.5, np.inf, 1e-4000, 0], np.longdouble)
    values[3] = np.longdouble("1e-4000")
    raw = b"".join(value.tobytes()[:10] + bytes(nbytes - 10) for value in values)
    if nbytes == values.itemsize:
        assert float_dtype(datatype) == np.dtype(np.longdouble)
    assert decode_floats(datatype, raw, 5).tolist() == values.tolist()


@pytest.mark.skipif(not LONG_DOUBLE_IS_X87, reason="this machine has no 80-bit long double")
def test_no_long_doubles_are_no_numbers() -> None:
    datatype = floating(12, 15, 64, 16383, normalization=Normalization.NONE)
    assert decode_floats(datatype, b"", 0).tolist() == []


@pytest.mark.parametrize(
    "datatype",
    [
        floating(16, 15, 112, 16383),
        floating(8, 8, 55, 129, order=VAX),  # D_floating: three bits more than a double
        floating(8, 11, 52, 1023, order=VAX),  # whose largest exponent is a number, as all of VAX are
        VAX_G,  # whose smallest numbers a double holds without their last bits
        floating(8, 12, 51, 2047),
        floating(4, 8, 23, 2000),
        floating(4, 8, 23, 127, normalization=Normalization.NONE),
        floating(4, 8, 23, 127, normalization=Normalization.ALWAYS_SET),
    ],
)
def test_what_a_double_cannot_hold_is_unsupported(datatype: FloatingPoint) -> None:
    assert float_dtype(datatype) is None
    with pytest.raises(Unsupported, match="floating-point numbers"):
        decode_floats(datatype, bytes(datatype.nbytes), 1)
