"""Filter 4, szip: extended-Rice coding (CCSDS 121.0-B), preceded by the size (4 bytes, little-endian).

Client data: options, pixels of a block, bits of a pixel, pixels of a scan line. szip also
shuffles the bytes of 32- and 64-bit pixels and pads scan lines to whole blocks. libaec reproduces that; imagecodecs
contains it, and libhdf5 is built with it, too. Source: H5Zszip.c and sz_compat.c of libaec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Values, check, check_choice, check_room, load, settings_of

_ALLOW_K13, _CHIP, _ENTROPY, _LITTLE, _BIG, _NEAREST, _RAW = 1, 2, 4, 8, 16, 32, 128
_SIZE_NBYTES = 4
CODINGS = ("entropy", "nearest-neighbor")
BYTE_ORDERS = ("little", "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The coding of pixels."""

    coding: str
    byte_order: str
    pixels_per_block: int
    bits_per_pixel: int
    pixels_per_scanline: int

    def __post_init__(self) -> None:
        check_choice(self.coding, "coding", CODINGS)
        check_choice(self.byte_order, "byte_order", BYTE_ORDERS)
        check(self.pixels_per_block, "pixels_per_block", 2, 32)
        if self.pixels_per_block % 2:
            raise ValueError(f"pixels_per_block must be even, not {self.pixels_per_block}")
        if self.bits_per_pixel not in (*range(1, 25), 32, 64):
            raise ValueError(f"bits_per_pixel must be 1 to 24, 32 or 64, not {self.bits_per_pixel!r}")
        # HDF5 never makes scan lines shorter than a block: padding would make them up to 32 times as large.
        check(self.pixels_per_scanline, "pixels_per_scanline", self.pixels_per_block, 128 * self.pixels_per_block)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        if len(values) != 4:
            raise ValueError(f"szip needs 4 values, not {len(values)}")
        mask, pixels_per_block, bits_per_pixel, pixels_per_scanline = values
        return cls(
            coding=CODINGS[bool(mask & _NEAREST)],
            byte_order=BYTE_ORDERS[bool(mask & _BIG)],
            pixels_per_block=pixels_per_block,
            bits_per_pixel=bits_per_pixel,
            pixels_per_scanline=pixels_per_scanline,
        )

    def to_values(self) -> Values:
        coding = _NEAREST if self.coding == "nearest-neighbor" else _ENTROPY
        order = _BIG if self.byte_order == "big" else _LITTLE
        mask = coding | order | _ALLOW_K13 | _RAW
        return mask, self.pixels_per_block, self.bits_per_pixel, self.pixels_per_scanline


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the pixels."""
    settings = settings_of(Settings, values)
    if len(content) < _SIZE_NBYTES:
        raise MalformedFile(f"szip content of {len(content)} bytes has no room for its size")
    given = int.from_bytes(content[:_SIZE_NBYTES], "little")
    check_room(given, nbytes, "szip content")
    if not given:
        return b""
    imagecodecs = load("imagecodecs", "szip")
    try:
        decoded = imagecodecs.szip_decode(content[_SIZE_NBYTES:], *_arguments(settings), header=False, out=given)
    except (RuntimeError, ValueError) as error:
        raise MalformedFile(f"szip content does not decode: {error}") from error
    if len(decoded) != given:
        raise MalformedFile(f"szip content decodes to {len(decoded)} bytes, expected {given}")
    return bytes(decoded)


def encode(content: bytes, values: Values) -> bytes:
    """Return the coded pixels."""
    settings = settings_of(Settings, values)
    size = len(content).to_bytes(_SIZE_NBYTES, "little")
    if not content:
        return size
    imagecodecs = load("imagecodecs", "szip")
    room = 2 * len(content) + 4096  # coding makes noise larger
    return size + bytes(imagecodecs.szip_encode(content, *_arguments(settings), header=False, out=room))


def _arguments(settings: Settings) -> tuple[int, int, int, int]:
    """Return the arguments of imagecodecs: options, pixels per block, bits per pixel, pixels per scan line."""
    mask, pixels_per_block, bits_per_pixel, pixels_per_scanline = settings.to_values()
    return mask, pixels_per_block, bits_per_pixel, pixels_per_scanline


def netcdf_encoding(values: Values) -> dict[str, Any]:
    if len(values) < 2:
        return {}
    return {"szip": {"coding": "nn" if values[0] & _NEAREST else "ec", "pixels_per_block": values[1]}}
