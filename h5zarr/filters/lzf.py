"""Filter 32000, lzf: one LibLZF stream. Client data: version of the filter, version of LibLZF, bytes of a chunk.

LZF is h5py's own compressor and its files are common, so this module decodes it in pure Python. imagecodecs is about a
hundred times as fast, and is used if it is installed. Source: lzf_filter.c of h5py and lzf_d.c of LibLZF.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import FilterPackageMissing, Values, load, most

_FILTER_VERSION, _LIBRARY_VERSION = 4, 0x0105
_MOST_FROM_A_BYTE = 88  # three bytes encode at most 264


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """No settings: a stream describes itself."""

    @classmethod
    def from_values(cls, values: Values) -> Self:
        return cls()

    def to_values(self) -> Values:
        return (_FILTER_VERSION, _LIBRARY_VERSION, 0)


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content."""
    room = min(most(nbytes), _MOST_FROM_A_BYTE * len(content))
    try:
        imagecodecs = load("imagecodecs", "lzf")
    except FilterPackageMissing:
        return _interpreted(content, room)
    try:
        return bytes(imagecodecs.lzf_decode(content, out=room)) if content else b""
    except RuntimeError as error:
        raise MalformedFile(f"lzf stream does not decompress: {error}") from error


def encode(content: bytes, values: Values) -> bytes:
    """Return one LZF stream, which is slightly larger than the content if that is incompressible."""
    if not content:
        return b""
    imagecodecs = load("imagecodecs", "lzf")
    return bytes(imagecodecs.lzf_encode(content, out=len(content) + len(content) // 16 + 64))


def _interpreted(content: bytes, room: int) -> bytes:
    """Decompress in Python: a stream consists of runs of literals and repetitions of earlier output."""
    plain = bytearray()
    at, end = 0, len(content)
    try:
        while at < end:
            control = content[at]
            at += 1
            if control < 32:  # a run of control + 1 literals
                plain += content[at : at + 1 + control]
                at += 1 + control
                continue
            length = control >> 5
            if length == 7:
                length += content[at]
                at += 1
            start = len(plain) - ((control & 31) << 8 | content[at]) - 1
            at += 1
            if start < 0 or len(plain) > room:
                raise MalformedFile("lzf stream repeats bytes that do not exist, or too many")
            repeated = plain[start : start + length + 2]
            while len(repeated) < length + 2:  # it repeats a part of itself
                repeated += repeated[: length + 2 - len(repeated)]
            plain += repeated
    except IndexError:
        raise MalformedFile("lzf stream ends within a repetition") from None
    if at > end or len(plain) > room:
        raise MalformedFile("lzf stream does not decompress to the expected size")
    return bytes(plain)
