"""What is encoded is decoded to the same, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.filters import bitshuffle, blosc2, fletcher32, lz4, shuffle, szip, zfp, zstd

QUICK = settings(max_examples=40, deadline=None)
CONTENTS = st.binary(max_size=300) | st.integers(0, 9000).map(lambda count: np.arange(count, dtype="<u2").tobytes())


@QUICK
@given(content=CONTENTS, block_nbytes=st.integers(1, 5000))
def test_lz4(content: bytes, block_nbytes: int) -> None:
    values = lz4.Settings(block_nbytes=block_nbytes).to_values()
    assert lz4.decode(lz4.encode(content, values), values, len(content)) == content


@QUICK
@given(content=CONTENTS, width=st.integers(1, 9))
def test_shuffle(content: bytes, width: int) -> None:
    assert shuffle.decode(shuffle.encode(content, (width,)), (width,), len(content)) == content


@QUICK
@given(content=CONTENTS)
def test_fletcher32(content: bytes) -> None:
    assert fletcher32.decode(fletcher32.encode(content, ()), (), len(content)) == content


@QUICK
@given(content=CONTENTS, level=st.integers(-5, 12))
def test_zstd(content: bytes, level: int) -> None:
    values = (level % (1 << 32),)
    assert zstd.decode(zstd.encode(content, values), values, len(content)) == content


@QUICK
@given(
    content=CONTENTS,
    width=st.integers(1, 12),
    blocks=st.integers(0, 20),
    compressor=st.sampled_from(["none", "lz4", "zstd"]),
)
def test_bitshuffle(content: bytes, width: int, blocks: int, compressor: str) -> None:
    chosen = bitshuffle.Settings(element_nbytes=width, block_count=8 * blocks, compressor=compressor)
    content = content[: len(content) // width * width]
    values = chosen.to_values()
    assert bitshuffle.Settings.from_values(values) == chosen
    assert bitshuffle.decode(bitshuffle.encode(content, values), values, len(content)) == content


@QUICK
@given(content=CONTENTS.filter(bool), width=st.sampled_from([1, 2, 4, 7]), shuffled=st.sampled_from(blosc2.SHUFFLES))
def test_blosc2(content: bytes, width: int, shuffled: str) -> None:
    chosen = blosc2.Settings(element_nbytes=width, shuffle=shuffled, compressor="lz4", level=3)
    values = chosen.to_values()
    assert blosc2.Settings.from_values(values) == chosen
    assert blosc2.decode(blosc2.encode(content, values), values, len(content)) == content


@QUICK
@given(
    content=CONTENTS,
    coding=st.sampled_from(szip.CODINGS),
    byte_order=st.sampled_from(szip.BYTE_ORDERS),
    nbits=st.sampled_from([8, 16, 32, 64]),
    block=st.sampled_from([4, 8, 16, 32]),
    line=st.integers(32, 100),
)
def test_szip(content: bytes, coding: str, byte_order: str, nbits: int, block: int, line: int) -> None:
    chosen = szip.Settings(
        coding=coding, byte_order=byte_order, bits_per_pixel=nbits, pixels_per_block=block, pixels_per_scanline=line
    )
    content = content[: len(content) // 8 * 8]
    values = chosen.to_values()
    assert szip.Settings.from_values(values) == chosen
    assert szip.decode(szip.encode(content, values), values, len(content)) == content


@QUICK
@given(
    dtype=st.sampled_from(["int32", "int64", "float32", "float64"]),
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    byte_order=st.sampled_from(["little", "big"]),
)
def test_zfp_in_its_reversible_mode(dtype: str, shape: list[int], byte_order: str) -> None:
    chosen = zfp.Settings(
        dtype=dtype, shape=tuple(shape), minbits=1, maxbits=16658, maxprec=64, minexp=-1075, byte_order=byte_order
    )
    values = chosen.to_values()
    assert zfp.Settings.from_values(values) == chosen
    numbers = np.random.default_rng(len(shape)).normal(0, 1000, shape).astype(chosen.stored_dtype())
    encoded = zfp.encode(numbers.tobytes(), values)
    assert zfp.decode(encoded, values, numbers.nbytes) == numbers.tobytes()


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (lz4.Settings, {"block_nbytes": 0}),
        (shuffle.Settings, {"element_nbytes": 0}),
        (bitshuffle.Settings, {"element_nbytes": 4, "block_count": 7}),
        (bitshuffle.Settings, {"element_nbytes": 4, "compressor": "gzip"}),
        (bitshuffle.Settings, {"element_nbytes": True}),
        (blosc2.Settings, {"element_nbytes": 4, "level": 10}),
        (blosc2.Settings, {"element_nbytes": 4, "shuffle": "no"}),
        (zfp.Settings, {"dtype": "float16", "shape": [3], "minbits": 1, "maxbits": 9, "maxprec": 9, "minexp": 0}),
        (zfp.Settings, {"dtype": "float32", "shape": [], "minbits": 1, "maxbits": 9, "maxprec": 9, "minexp": 0}),
        (zfp.Settings, {"dtype": "float32", "shape": 3, "minbits": 1, "maxbits": 9, "maxprec": 9, "minexp": 0}),
        (zfp.Settings, {"dtype": "float32", "shape": [3], "minbits": 9, "maxbits": 8, "maxprec": 9, "minexp": 0}),
    ],
)
def test_impossible_settings_are_refused(kind: Any, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        kind(**changed)


def test_a_frame_of_unknown_size_is_decoded() -> None:
    """As a streaming writer leaves it: one raw block of five bytes."""
    frame = b"\x28\xb5\x2f\xfd\0\x58" + (1 | 5 << 3).to_bytes(3, "little") + b"hello"
    assert zstd.decode(frame, (), 5) == b"hello"
    assert zstd.decode(frame, (), 1) == b"hello"  # four bytes more than the chunk: a checksum
