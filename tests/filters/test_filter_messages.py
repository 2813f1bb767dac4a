"""Messages for damaged content and client data say which filter they mean, what is wrong, and what was expected."""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from h5zarr.codecs.elements import Settings as ElementSettings
from h5zarr.errors import H5ZarrError
from h5zarr.filters import bitshuffle, blosc, blosc2, lz4, lzf, nbit, scaleoffset, szip, zfp, zstd
from h5zarr.filters.pipeline import ChunkedArray
from h5zarr.filters.table import FILTERS, FilterKind, _check_new
from h5zarr.filters.toolkit import ClientData

SCALE = scaleoffset.Settings(
    count=4, kind="integer", element_nbytes=4, signed=True, byte_order="little", factor=3
).to_values()
ZFP = zfp.Settings(dtype="int32", shape=(4, 4), minbits=64, maxbits=64, maxprec=64, minexp=-1074)
MEMBER = {"position": 0, "layout": {"kind": "whole", "nbytes": 4}}
VLEN_TEXT = (0x19, 1, 0, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0)
FRAME = blosc2.encode(bytes(64), (1, 0, 4, 0))


def _zfp_settings(**changes: Any) -> Any:
    names = ("dtype", "shape", "minbits", "maxbits", "maxprec", "minexp")
    return zfp.Settings(**{**{name: getattr(ZFP, name) for name in names}, **changes})


def _szip_settings(**changes: Any) -> Any:
    whole = {"coding": "entropy", "byte_order": "little", "pixels_per_block": 8, "bits_per_pixel": 8}
    return szip.Settings(**{**whole, "pixels_per_scanline": 16, **changes})


def _nested(depth: int) -> tuple[int, ...]:
    """Return client data of nbit for arrays within arrays."""
    values = (2, 4) * depth + (4, 4)
    return (3 + len(values), 0, 1, *values)


def _blosc2_with_wrong_sizes() -> Any:
    frame = SimpleNamespace(meta={}, get_chunk=lambda number: struct.pack("<4x3I", 64, 100, 16))
    return blosc2._decompressed(SimpleNamespace(schunk_from_cframe=lambda content: frame), FRAME, 64)


MESSAGES: dict[str, Callable[[], Any]] = {
    "bitshuffle has no compressor 1": lambda: bitshuffle.decode(b"", (0, 4, 4, 0, 1), 0),
    "bitshuffle needs at least 3 values, not 2": lambda: bitshuffle.decode(b"", (0, 4), 0),
    "bitshuffle content of 64 bytes has blocks of 12 bytes, but a block has a multiple of 8 elements, and an element "
    "has 4 bytes": lambda: bitshuffle.decode(lz4.HEADER.pack(64, 12), (0, 4, 4, 0, 2), 64),
    "bitshuffle content ends within its last elements": lambda: bitshuffle.decode(
        lz4.HEADER.pack(8, 32), (0, 4, 4, 0, 2), 64
    ),
    "blosc buffer claims to have 99 bytes, but there are 16": lambda: blosc.decode(
        struct.pack("<4B3I", 2, 1, 1, 4, 64, 64, 99), (), 64
    ),
    "filter 32001 (blosc) has impossible client data (2, 2, 4, 0, 11, 1, 0): level 11, shuffle 1, compressor 0": (
        lambda: blosc.described((2, 2, 4, 0, 11, 1, 0))
    ),
    r"blosc2 frame begins with b'no', expected b'\x9e\xa8b2frame\x00'": lambda: blosc2.decode(b"no", (), 64),
    f"blosc2 frame claims to have {len(FRAME)} bytes, but there are {len(FRAME) - 1}": lambda: blosc2.decode(
        FRAME[:-1], (), 64
    ),
    "blosc2 chunk has 16 of 16 bytes, and blocks of 100": _blosc2_with_wrong_sizes,
    "compressed block needs the content up to byte 116, which has 18 bytes": lambda: lz4.decode(
        lz4.HEADER.pack(64, 64) + struct.pack(">I", 100) + b"ab", (), 64
    ),
    "filter nbit has impossible client data (5, 0, 1): the first value must be the number of values, which is 3 and at "
    "least 3": lambda: nbit.decode(b"", (5, 0, 1), 0),
    "filter 5 (nbit) has elements of 1048577 bytes; h5zarr supports up to 1048576": lambda: nbit.decode(
        b"", (5, 0, 1, 4, (1 << 20) + 1), 1 << 21
    ),
    "layouts are nested more than 32 deep": lambda: nbit.decode(b"", _nested(33), 0),
    "filter nbit has impossible client data (5, 0, 1, 1, 4): the layout of an element is cut short": lambda: (
        nbit.decode(b"", (5, 0, 1, 1, 4), 0)
    ),
    "lzf stream repeats bytes that do not exist, or too many": lambda: lzf._interpreted(b"\x20\0", 64),
    "lzf stream ends within a repetition": lambda: lzf._interpreted(b"\x20", 64),
    "scaleoffset content has elements of 40 bits, but the type has 32": lambda: scaleoffset.decode(
        struct.pack("<IB16x", 40, 16), SCALE, 16
    ),
    "signed must be true or false, not 1": lambda: scaleoffset.Settings(
        count=4, kind="integer", element_nbytes=4, signed=1, byte_order="little", factor=3
    ),
    "scaleoffset needs 20 values, not 3": lambda: scaleoffset.decode(b"", SCALE[:3], 16),
    "kind 0, sign 2, byte order 0 and fill value 0 must each be 0 or 1": lambda: scaleoffset.decode(
        b"", (*SCALE[:5], 2, *SCALE[6:]), 16
    ),
    "pixels_per_block must be even, not 7": lambda: _szip_settings(pixels_per_block=7),
    "bits_per_pixel must be 1 to 24, 32 or 64, not 25": lambda: _szip_settings(bits_per_pixel=25),
    "szip needs 4 values, not 2": lambda: szip.decode(b"", (141, 16), 16),
    "zfp stream of 1 bytes is too short for an array of shape (4, 4)": lambda: zfp.decode(b"a", ZFP.to_values(), 64),
    "shape must have 1 to 4 dimensions, not ()": lambda: _zfp_settings(shape=()),
    "zstd frame ends within its header": lambda: zstd.decode(b"\x28\xb5\x2f\xfd\xc0\x58\0", (), 64),
    "number 1 is already taken by deflate": lambda: _check_new(FilterKind(1, "new", "m"), FILTERS),
    "bitshuffle content of 3 bytes is shorter than its header": lambda: bitshuffle.decode(b"abc", (0, 4, 4, 0, 2), 64),
    "bitshuffle content has 3 bytes, which is not a multiple of 4": lambda: bitshuffle.decode(b"abc", (0, 4, 4), 64),
    "blosc buffer of 3 bytes is shorter than its header": lambda: blosc.decode(b"abc", (), 64),
    "blosc2 frame has an array of shape [0] in blocks of [1]": lambda: blosc2._partition((0, 1, [0], [1], [1])),
    "lz4 content of 3 bytes is shorter than its header": lambda: lz4.decode(b"abc", (), 64),
    "lz4 content has blocks of 0 bytes": lambda: lz4.decode(lz4.HEADER.pack(64, 0), (), 64),
    "nbit expects 4 bytes, not 3": lambda: nbit.encode(b"abc", (5, 0, 1, 4, 4)),
    "members take more than the 4 bytes of their compound": lambda: nbit.Settings(
        count=1, layout={"kind": "compound", "nbytes": 4, "members": [MEMBER, MEMBER]}
    ),
    "chunk (0,) has 2 bytes instead of 8": lambda: ChunkedArray(
        shape=(2,), chunk_shape=(2,), element_nbytes=4, fill=None, filters=()
    ).assemble([b"ab"], np.zeros((1, 1), np.int64), [0]),
    "scaleoffset content of 3 bytes is shorter than its header": lambda: scaleoffset.decode(b"abc", SCALE, 16),
    "scaleoffset expects 16 bytes, not 3": lambda: scaleoffset.encode(b"abc", SCALE),
    "element_nbytes cannot be 3 if kind is integer": lambda: scaleoffset.decode(b"", (*SCALE[:4], 3, *SCALE[5:]), 16),
    "szip content of 1 bytes has no room for its size": lambda: szip.decode(b"a", (141, 16, 8, 16), 16),
    "zfp expects 64 bytes, not 3": lambda: zfp.encode(b"abc", ZFP.to_values()),
    "it is not a FilterKind, but int": lambda: _check_new(3, FILTERS),
    "the name deflate is already taken": lambda: _check_new(FilterKind(999, "deflate", "m"), FILTERS),
    "values must be a list of integers, not 3": lambda: ClientData(values=3),  # type: ignore[arg-type]
    "datatype has variable length, which this codec cannot read": lambda: ElementSettings.from_values(VLEN_TEXT),
    "this codec cannot read the datatype: ": lambda: ElementSettings("AAAA"),
    "datatype must be base64, not '?'": lambda: ElementSettings("?"),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_says_what_is_wrong(message: str) -> None:
    with pytest.raises((H5ZarrError, TypeError, ValueError)) as caught:
        MESSAGES[message]()
    assert message in str(caught.value)
