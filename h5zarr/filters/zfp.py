"""Filter 32013, zfp: one zfp stream. Its header is in the client data. Source: H5Zzfp.c of H5Z-ZFP, zfp.c.

zfp loses precision, unless it is used in its reversible mode. Decoded values equal those of the HDF5 filter.

Client data: versions, and the words of a zfp header: the magic number (32 bits), type and shape (52 bits), and the
compression parameters (12 or 64 bits).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Values, check, check_choice, check_room, load, settings_of

_VERSIONS = 0x1010 << 16 | 5 << 12 | 0x111  # of zfp, of its format, and of the filter
_CODEC = 5
_MAGIC = int.from_bytes(b"zfp" + bytes((_CODEC,)), "little")
_MAGIC_NBITS, _META_NBITS, _SHORT_NBITS, _LONG_NBITS = 32, 52, 12, 64
_DIMENSION_NBITS = {1: 48, 2: 24, 3: 16, 4: 12}
_LONG = 0xFFF
_EXPONENT_BIAS = 16495
_GREATEST_NBITS = 16658
LEAST_EXPONENT = -1074
EXACT_EXPONENT = LEAST_EXPONENT - 1  # means reversible mode
DTYPES = ("int32", "int64", "float32", "float64")
BYTE_ORDERS = ("little", "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Type and shape of a chunk without dimensions of length 1, and zfp's four parameters.

    zfp's documentation explains minbits, maxbits, maxprec and minexp under "expert mode"; every other mode is a
    combination of them. `byte_order` is that of the dataset.
    """

    dtype: str
    shape: tuple[int, ...]
    minbits: int
    maxbits: int
    maxprec: int
    minexp: int
    byte_order: str = "little"

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (list, tuple)):
            raise ValueError(f"shape must be a list of lengths, not {self.shape!r}")
        object.__setattr__(self, "shape", tuple(self.shape))  # JSON has lists
        check_choice(self.dtype, "dtype", DTYPES)
        check_choice(self.byte_order, "byte_order", BYTE_ORDERS)
        if len(self.shape) not in _DIMENSION_NBITS:
            raise ValueError(f"shape must have 1 to 4 dimensions, not {self.shape!r}")
        for length in self.shape:
            check(length, "shape", 1, 1 << _DIMENSION_NBITS[len(self.shape)])
        check(self.minbits, "minbits", 1, 1 << 15)
        check(self.maxbits, "maxbits", self.minbits, 1 << 15)
        check(self.maxprec, "maxprec", 1, 64)
        check(self.minexp, "minexp", EXACT_EXPONENT, (1 << 15) - 1 - _EXPONENT_BIAS)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        header = sum(value << 32 * number for number, value in enumerate(values[1:7]))
        byte_order = "little"
        if header % (1 << _MAGIC_NBITS) != _MAGIC:  # perhaps written on a big-endian machine
            swapped = (int.from_bytes((value % (1 << 32)).to_bytes(4, "little"), "big") for value in values[1:7])
            header = sum(value << 32 * number for number, value in enumerate(swapped))
            byte_order = "big"
        if header % (1 << _MAGIC_NBITS) != _MAGIC:
            raise ValueError(f"there is no zfp header of format version {_CODEC}")
        meta = header >> _MAGIC_NBITS & (1 << _META_NBITS) - 1
        minbits, maxbits, maxprec, minexp = _parameters(header >> _MAGIC_NBITS + _META_NBITS)
        return cls(
            dtype=DTYPES[meta & 3],
            shape=_shape(meta >> 4, (meta >> 2 & 3) + 1),
            minbits=minbits,
            maxbits=maxbits,
            maxprec=maxprec,
            minexp=minexp,
            byte_order=byte_order,
        )

    def to_values(self) -> Values:
        header, nbits = self.header()
        words = [header >> 32 * number & 0xFFFFFFFF for number in range(-(-nbits // 32))]
        if self.byte_order == "big":
            words = [int.from_bytes(word.to_bytes(4, "little"), "big") for word in words]
        return (_VERSIONS, *words)

    def header(self) -> tuple[int, int]:
        """Return the header as a number, and its number of bits. Parameters are always in the long form."""
        dimension_nbits = _DIMENSION_NBITS[len(self.shape)]
        meta = 0
        for length in self.shape:
            meta = meta << dimension_nbits | length - 1
        meta = (meta << 2 | len(self.shape) - 1) << 2 | DTYPES.index(self.dtype)
        mode = self.minexp + _EXPONENT_BIAS
        mode = mode << 7 | self.maxprec - 1
        mode = mode << 15 | self.maxbits - 1
        mode = (mode << 15 | self.minbits - 1) << _SHORT_NBITS | _LONG
        header = (mode << _META_NBITS | meta) << _MAGIC_NBITS | _MAGIC
        return header, _MAGIC_NBITS + _META_NBITS + _LONG_NBITS

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.stored_dtype().itemsize

    def stored_dtype(self) -> np.dtype[Any]:
        """Return the type of the values in the dataset."""
        return np.dtype(self.dtype).newbyteorder("<" if self.byte_order == "little" else ">")

    def least_nbits(self) -> int:
        """Return the fewest bits a stream can have: `minbits` per block."""
        return self._block_count() * self.minbits

    def greatest_nbytes(self) -> int:
        """Return the most bytes a stream can have, plus some for the last word. From zfp_stream_maximum_size of zfp."""
        count = 1 << 2 * len(self.shape)
        overhead = 32  # signs, exponent and precision of a block: 6 to 19 bits
        nbits = overhead + count + count * min(self.maxprec, 8 * self.stored_dtype().itemsize)
        nbits = max(min(nbits, self.maxbits), self.minbits)
        return -(-self._block_count() * nbits // 8) + 64

    def _block_count(self) -> int:
        count: int = math.prod(-(-length // 4) for length in self.shape)
        return count


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the values.

    zfp reads past the end of a truncated stream, so pad it with zeros to the largest size that these settings allow.
    """
    settings = settings_of(Settings, values)
    check_room(settings.nbytes, nbytes, "zfp stream")
    if 8 * len(content) < settings.least_nbits():
        raise MalformedFile(f"zfp stream of {len(content)} bytes is too short for an array of shape {settings.shape}")
    zfpy = load("zfpy", "zfp")
    header, nbits = settings.header()
    stream = _joined(header, nbits, content.ljust(settings.greatest_nbytes(), b"\0"))
    try:
        decoded = zfpy.decompress_numpy(stream)
    except (RuntimeError, ValueError, TypeError) as error:
        raise MalformedFile(f"zfp stream does not decompress: {error}") from error
    return decoded.astype(settings.stored_dtype()).tobytes()  # type: ignore[no-any-return]


def encode(content: bytes, values: Values) -> bytes:
    """Return the stream without its header. The parameters must be those of one of zfp's modes."""
    settings = settings_of(Settings, values)
    if len(content) != settings.nbytes:
        raise ValueError(f"zfp expects {settings.nbytes} bytes, not {len(content)}")
    zfpy = load("zfpy", "zfp")
    numbers = np.frombuffer(content, settings.stored_dtype()).astype(settings.dtype).reshape(settings.shape)
    stream = zfpy.compress_numpy(numbers, **_mode(settings), write_header=False)
    return bytes(stream)


def _mode(settings: Settings) -> dict[str, float]:
    """Return the arguments for zfpy, which can write only the combinations of parameters that are modes."""
    if settings.minbits == settings.maxbits:
        return {"rate": settings.maxbits / 4 ** len(settings.shape)}
    if settings.minexp == EXACT_EXPONENT:
        return {}
    if settings.minexp > LEAST_EXPONENT and settings.maxprec == 64:
        return {"tolerance": math.ldexp(1.0, settings.minexp)}
    if settings.minexp == LEAST_EXPONENT:
        return {"precision": settings.maxprec}
    raise ValueError("zfp streams with these parameters can be read, but not written")


def _joined(header: int, nbits: int, content: bytes) -> bytes:
    """Return the header followed by the stream. Bits are in little-endian order and not aligned to bytes."""
    shift = nbits % 8
    head = header.to_bytes(-(-nbits // 8), "little")
    if not shift:
        return head + content
    stored = np.frombuffer(content, np.uint8)
    shifted = np.zeros(len(content) + 1, np.uint8)
    shifted[:-1] = stored << shift
    shifted[1:] |= stored >> (8 - shift)
    shifted[0] |= head[-1]
    return head[:-1] + shifted.tobytes()


def _shape(packed: int, rank: int) -> tuple[int, ...]:
    nbits = _DIMENSION_NBITS[rank]
    return tuple((packed >> nbits * number & (1 << nbits) - 1) + 1 for number in reversed(range(rank)))


def _parameters(mode: int) -> tuple[int, int, int, int]:
    """Return minbits, maxbits, maxprec and minexp. From zfp_stream_set_mode of zfp."""
    short = mode & _LONG
    if short == _LONG:
        mode >>= _SHORT_NBITS
        minbits, maxbits = (mode & 0x7FFF) + 1, (mode >> 15 & 0x7FFF) + 1
        return minbits, maxbits, (mode >> 30 & 0x7F) + 1, (mode >> 37 & 0x7FFF) - _EXPONENT_BIAS
    if short < 2048:  # a fixed rate
        return short + 1, short + 1, 64, LEAST_EXPONENT
    if short < 2048 + 128:  # a fixed precision
        return 1, _GREATEST_NBITS, short + 1 - 2048, LEAST_EXPONENT
    if short == 2048 + 128:  # reversible
        return 1, _GREATEST_NBITS, 64, EXACT_EXPONENT
    return 1, _GREATEST_NBITS, 64, short + LEAST_EXPONENT - (2048 + 128 + 1)
