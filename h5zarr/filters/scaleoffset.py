"""Filter 6, scaleoffset: the smallest value, and how far above it the others are, in as many bits as that needs.

Content: bits of an element (4 bytes, little-endian), size of the minimum (1 byte), the minimum (16 bytes,
little-endian), then the packed differences; where those need all bits of the type, the values themselves. The
greatest difference that the bits can express stands for the fill value, if there is one. Floats are scaled by a power
of ten and rounded first, which loses what is beyond that digit. Source: H5Zscaleoffset.c.
"""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters.arrays import Numbers
from h5zarr.filters.bounds import check_room
from h5zarr.filters.packing import number_places, pack, packed_nbytes, unpack
from h5zarr.filters.scaleoffset_settings import Settings
from h5zarr.filters.settings import settings_of

__all__ = ["Settings", "decode", "encode"]

_HEADER_NBYTES = 21
_MINIMUM_NBYTES = 8


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
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
        raise MalformedFile(f"scaleoffset content has elements of {nbits} bits, the type has {settings.nbits}")
    if nbits == settings.nbits:
        return _whole(content[_HEADER_NBYTES:], settings)
    differences = _differences(content[_HEADER_NBYTES:], nbits, settings)
    restored = _restored_integers if settings.kind == "integer" else _restored_floats
    return _ordered(restored(differences, nbits, minimum, settings), settings)


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the packed content. Floats are rounded; those that differ from the fill value by less become that."""
    settings = settings_of(Settings, values)
    if len(content) != settings.nbytes:
        raise ValueError(f"scaleoffset is set up for {settings.nbytes} bytes, not {len(content)}")
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
    # libhdf5 always allots the byte behind the last whole one.
    return header + packed.ljust(settings.count * nbits // 8 + 1, b"\0")


def _whole(stored: bytes, settings: Settings) -> bytes:
    """Return values that were stored in full, little-endian as on the machine that wrote them."""
    if len(stored) < settings.nbytes:
        raise MalformedFile(f"scaleoffset content has {len(stored)} bytes, expected {settings.nbytes}")
    return _ordered(np.frombuffer(stored, settings.native_dtype, settings.count), settings)


def _ordered(numbers: Numbers, settings: Settings) -> bytes:
    return numbers.astype(settings.stored_dtype).tobytes()


def _differences(packed: bytes, nbits: int, settings: Settings) -> Numbers:
    """Return the packed numbers, unsigned and as wide as the type."""
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
    """Return the integers. Sums wrap around, as in C; so do not mind the sign."""
    lowest = settings.unsigned_dtype.type(minimum % (1 << settings.nbits))
    numbers: Numbers = (differences + lowest).view(settings.native_dtype)
    if settings.fill is not None:
        numbers[differences == (1 << nbits) - 1] = settings.fill_number()
    return numbers


def _restored_floats(differences: Numbers, nbits: int, minimum: int, settings: Settings) -> Numbers:
    """Return the floats, computed in their own precision and in libhdf5's order of operations."""
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
