"""Filter 6, scaleoffset: the smallest value, and the differences from it in as few bits as possible.

Content: bits per element (4 bytes, little-endian), size of the minimum (1 byte), the minimum (16 bytes, little-endian),
then the packed differences. If the differences need all bits of the type, the values themselves are stored instead. The
largest difference that fits into the bits means the fill value, if there is one. Floats are first multiplied by a power
of ten and rounded, which loses further digits. Source: H5Zscaleoffset.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters.packing import number_places, pack, packed_nbytes, unpack
from h5zarr.filters.toolkit import Numbers, Values, check, check_choice, check_room, settings_of, signed

_HEADER_NBYTES = 21
_MINIMUM_NBYTES = 8
_COUNT = 20  # of all values
_FILL_AT = 8  # from here on, the fill value, least significant word first
_DECIMAL_SCALE, _INTEGER_SCALE = 0, 2
KINDS = ("integer", "float")
BYTE_ORDERS = ("little", "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The type of the elements and how to pack them.

    `factor` is the number of bits for integers (0 lets the filter choose), and the number of decimal places for
    floats. `fill` has the bits of the fill value in hexadecimal, None if there is none.
    """

    count: int
    kind: str
    element_nbytes: int
    signed: bool
    byte_order: str
    factor: int
    fill: str | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.byte_order, "byte_order", BYTE_ORDERS)
        check(self.count, "count", 0, 2**32 - 1)
        if self.element_nbytes not in ((1, 2, 4, 8) if self.kind == "integer" else (4, 8)):
            raise ValueError(f"element_nbytes cannot be {self.element_nbytes!r} if kind is {self.kind}")
        if not isinstance(self.signed, bool):
            raise ValueError(f"signed must be true or false, not {self.signed!r}")
        bounds = (0, self.nbits) if self.kind == "integer" else (-400, 400)
        check(self.factor, "factor", *bounds)
        if self.fill is not None and not (
            isinstance(self.fill, str)
            and re.fullmatch("0x[0-9a-f]+", self.fill)
            and int(self.fill, 16) >> self.nbits == 0
        ):
            raise ValueError(f"fill must be a number of {self.nbits} bits in hexadecimal, not {self.fill!r}")

    @classmethod
    def from_values(cls, values: Values) -> Self:
        if len(values) != _COUNT:
            raise ValueError(f"scaleoffset needs {_COUNT} values, not {len(values)}")
        scale, factor, count, kind, element_nbytes, sign, order, has_fill = values[:_FILL_AT]
        if kind > 1 or sign > 1 or order > 1 or has_fill > 1:
            raise ValueError(
                f"kind {kind}, sign {sign}, byte order {order} and fill value {has_fill} must each be 0 or 1"
            )
        if scale != (_DECIMAL_SCALE if kind else _INTEGER_SCALE):
            raise ValueError(f"scale type {scale} is not one for {KINDS[kind]}s")
        word = sum(value << 32 * number for number, value in enumerate(values[_FILL_AT : _FILL_AT + 2]))
        return cls(
            count=count,
            kind=KINDS[kind],
            element_nbytes=element_nbytes,
            signed=bool(sign or kind),
            byte_order=BYTE_ORDERS[order],
            # As in libhdf5, a negative number of bits means 0.
            factor=signed(factor) if kind else max(0, signed(factor)),
            fill=hex(word % (1 << 8 * min(element_nbytes, 8))) if has_fill else None,
        )

    def to_values(self) -> Values:
        is_float = self.kind == "float"
        word = int(self.fill, 16) if self.fill is not None else 0
        return (
            _DECIMAL_SCALE if is_float else _INTEGER_SCALE,
            self.factor % (1 << 32),
            self.count,
            int(is_float),
            self.element_nbytes,
            int(self.signed and not is_float),
            BYTE_ORDERS.index(self.byte_order),
            int(self.fill is not None),
            word % (1 << 32),
            word >> 32,
            *(0,) * (_COUNT - _FILL_AT - 2),
        )

    @property
    def nbits(self) -> int:
        return 8 * self.element_nbytes

    @property
    def nbytes(self) -> int:
        return self.count * self.element_nbytes

    @property
    def is_stored_whole(self) -> bool:
        """Whether the filter leaves content unchanged, because all bits of an integer are kept."""
        return self.kind == "integer" and self.factor == self.nbits

    @property
    def unsigned_dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<u{self.element_nbytes}")

    @property
    def native_dtype(self) -> np.dtype[Any]:
        """The type of the values, little-endian, in which differences are computed."""
        code = "f" if self.kind == "float" else "i" if self.signed else "u"
        return np.dtype(f"<{code}{self.element_nbytes}")

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The type of the values in the dataset."""
        return self.native_dtype.newbyteorder("<" if self.byte_order == "little" else ">")

    def fill_number(self) -> Any:
        """Return the fill value in the type of the values."""
        word = int(self.fill or "0", 16).to_bytes(self.element_nbytes, "little")
        return np.frombuffer(word, self.native_dtype)[0]

    def scale(self) -> Any:
        """Return the power of ten by which floats are multiplied, in their own precision."""
        kind = self.native_dtype.type
        with np.errstate(all="ignore"):
            return np.power(kind(10), kind(self.factor))


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the values in the byte order of the dataset."""
    settings = settings_of(Settings, values)
    if settings.is_stored_whole:
        return content
    check_room(settings.nbytes, nbytes, "scaleoffset content")
    if len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"scaleoffset content of {len(content)} bytes is shorter than its header")
    nbits = int.from_bytes(content[:4], "little")
    minimum = int.from_bytes(content[5 : 5 + min(content[4], _MINIMUM_NBYTES)], "little")
    if nbits > settings.nbits:
        raise MalformedFile(f"scaleoffset content has elements of {nbits} bits, but the type has {settings.nbits}")
    if nbits == settings.nbits:
        return _whole(content[_HEADER_NBYTES:], settings)
    differences = _differences(content[_HEADER_NBYTES:], nbits, settings)
    restored = _restored_integers if settings.kind == "integer" else _restored_floats
    return _ordered(restored(differences, nbits, minimum, settings), settings)


def encode(content: bytes, values: Values) -> bytes:
    """Return the packed content. Floats are rounded; those close to the fill value become the fill value."""
    settings = settings_of(Settings, values)
    if len(content) != settings.nbytes:
        raise ValueError(f"scaleoffset expects {settings.nbytes} bytes, not {len(content)}")
    if settings.is_stored_whole:
        return content
    numbers = np.frombuffer(content, settings.stored_dtype).astype(settings.native_dtype)
    if settings.kind == "integer":
        differences, nbits, minimum = _integer_differences(numbers, settings)
    else:
        differences, nbits, minimum = _float_differences(numbers, settings)
    header = nbits.to_bytes(4, "little") + bytes((_MINIMUM_NBYTES,)) + minimum.to_bytes(16, "little")
    if nbits == settings.nbits:
        return header + numbers.tobytes()
    places = number_places(settings.element_nbytes, "big", nbits, 0)
    packed = pack(_big_endian_bytes(differences), places) if nbits else b""
    # libhdf5 always allocates the byte after the last whole one.
    return header + packed.ljust(settings.count * nbits // 8 + 1, b"\0")


def _whole(stored: bytes, settings: Settings) -> bytes:
    """Return values that were stored in full, little-endian."""
    if len(stored) < settings.nbytes:
        raise MalformedFile(f"scaleoffset content has {len(stored)} bytes, expected {settings.nbytes}")
    return _ordered(np.frombuffer(stored, settings.native_dtype, settings.count), settings)


def _ordered(numbers: Numbers, settings: Settings) -> bytes:
    return numbers.astype(settings.stored_dtype).tobytes()


def _differences(packed: bytes, nbits: int, settings: Settings) -> Numbers:
    """Return the packed numbers as unsigned integers of the type's size."""
    if nbits == 0:
        return np.zeros(settings.count, settings.unsigned_dtype)
    if len(packed) < packed_nbytes(settings.count, nbits):
        raise MalformedFile(f"scaleoffset content has {len(packed)} bytes of {settings.count} x {nbits} bits")
    places = number_places(settings.element_nbytes, "big", nbits, 0)
    unpacked = unpack(packed, settings.count, places, settings.element_nbytes)
    return unpacked.reshape(-1).view(settings.unsigned_dtype.newbyteorder(">")).astype(settings.unsigned_dtype)


def _big_endian_bytes(differences: Numbers) -> Numbers:
    swapped = differences.astype(differences.dtype.newbyteorder(">"))
    return swapped.view(np.uint8).reshape(len(differences), -1)


def _restored_integers(differences: Numbers, nbits: int, minimum: int, settings: Settings) -> Numbers:
    """Return the integers. Sums wrap around, as in C, so the sign does not matter."""
    lowest = settings.unsigned_dtype.type(minimum % (1 << settings.nbits))
    numbers: Numbers = (differences + lowest).view(settings.native_dtype)
    if settings.fill is not None:
        numbers[differences == (1 << nbits) - 1] = settings.fill_number()
    return numbers


def _restored_floats(differences: Numbers, nbits: int, minimum: int, settings: Settings) -> Numbers:
    """Return the floats, computed in their own precision and in the order of operations of libhdf5."""
    lowest = _float_of(minimum, settings)
    with np.errstate(all="ignore"):
        numbers: Numbers = differences.astype(settings.native_dtype) / settings.scale() + lowest
    if settings.fill is not None:
        numbers[differences == (1 << nbits) - 1] = settings.fill_number()
    return numbers


def _float_of(bits: int, settings: Settings) -> np.floating:
    word = (bits % (1 << settings.nbits)).to_bytes(settings.element_nbytes, "little")
    return np.frombuffer(word, settings.native_dtype)[0]  # type: ignore[no-any-return]


def _log2_up(number: int) -> int:
    """Return the smallest n with 2**n >= number."""
    return (number - 1).bit_length()


def _integer_differences(numbers: Numbers, settings: Settings) -> tuple[Numbers, int, int]:
    """Return the differences, their bits, and the minimum."""
    is_fill = np.zeros(len(numbers), bool) if settings.fill is None else numbers == settings.fill_number()
    others = numbers[~is_fill]
    lowest, highest = (int(others.min()), int(others.max())) if others.size else (0, 0)
    nbits = settings.factor
    if not nbits:
        if highest - lowest > (1 << settings.nbits) - 3:
            return numbers, settings.nbits, 0
        nbits = _log2_up(highest - lowest + 1 + (settings.fill is not None))
        if nbits == settings.nbits:
            return numbers, nbits, lowest % (1 << 64)
    unsigned = numbers.view(settings.unsigned_dtype) - settings.unsigned_dtype.type(lowest % (1 << settings.nbits))
    unsigned[is_fill] = (1 << nbits) - 1
    return unsigned, nbits, lowest % (1 << 64)


def _float_differences(numbers: Numbers, settings: Settings) -> tuple[Numbers, int, int]:
    """Return the scaled and rounded differences, their bits, and the bits of the minimum."""
    if not np.isfinite(numbers).all():
        raise ValueError("scaleoffset cannot store infinities or NaN")
    scale = settings.scale()
    with np.errstate(all="ignore"):
        if settings.fill is None:
            is_fill = np.zeros(len(numbers), bool)
        else:
            is_fill = np.abs(numbers - settings.fill_number()) < np.power(
                settings.native_dtype.type(10), -settings.factor
            )
        others = numbers[~is_fill]
        lowest = others.min() if others.size else settings.native_dtype.type(0)
        scaled = others * scale - lowest * scale
        span = float(scaled.max()) if others.size else 0.0
        if not span <= 2.0 ** (settings.nbits - 1):
            return numbers, settings.nbits, 0
        whole = np.floor(scaled)
        rounded = whole + (scaled - whole >= 0.5)  # halves go up, as with C's lround
    nbits = _log2_up(int(rounded.max() if others.size else 0) + 1 + (settings.fill is not None))
    minimum = int.from_bytes(lowest.tobytes(), "little")
    if nbits >= settings.nbits:
        return numbers, settings.nbits, minimum
    differences = np.full(len(numbers), (1 << nbits) - 1, settings.unsigned_dtype)
    differences[~is_fill] = rounded.astype(settings.unsigned_dtype)
    return differences, nbits, minimum


def label(values: Values) -> str:
    """Return the decimal digits that are kept of floats (scale type 0), or the bits of integers (scale type 2)."""
    match values[:2]:
        case (0, digits):
            return f"{signed(digits)} digits"
        case (2, bits) if bits:
            return f"{bits} bits"
    return ""
