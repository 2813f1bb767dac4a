"""Broken content ends in MalformedFile, or in values where the format has no checksum: quickly, in little memory."""

from __future__ import annotations

import random
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress

import hdf5plugin
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.filters import bitshuffle, blosc, blosc2, bzip2, deflate, lz4, lzf, szip, zfp, zstd
from h5zarr.filters.table import FILTERS
from h5zarr.filters.toolkit import most
from tests.filters.written import DEFLATE, LZF, NBIT, Setting, numbers, plugin, write

ROUNDS = 300
DAMAGED: dict[str, tuple[str, Setting]] = {
    "deflate": ("<i4", DEFLATE),
    "lzf": ("<i4", LZF),
    "nbit": ("<i4", NBIT),
    "szip": ("<i4", lambda dcpl: dcpl.set_szip(32, 16)),
    "scaleoffset": ("<i4", lambda dcpl: dcpl.set_scaleoffset(2, 0)),
    "scaleoffset of floats": ("<f4", lambda dcpl: dcpl.set_scaleoffset(0, 2)),
    "lz4": ("<i4", plugin(hdf5plugin.LZ4())),
    "zstd": ("<i4", plugin(hdf5plugin.Zstd())),
    "bzip2": ("<i4", plugin(hdf5plugin.BZip2())),
    "bitshuffle": ("<i4", plugin(hdf5plugin.Bitshuffle(cname="lz4"))),
    "bitshuffle, zstd": ("<i4", plugin(hdf5plugin.Bitshuffle(cname="zstd"))),
    "blosc": ("<i4", plugin(hdf5plugin.Blosc(cname="blosclz"))),
    "blosc, lz4": ("<i4", plugin(hdf5plugin.Blosc(cname="lz4", shuffle=2))),
    "blosc2": ("<i4", plugin(hdf5plugin.Blosc2(cname="zstd"))),
    "blosc2, blosclz": ("<i4", plugin(hdf5plugin.Blosc2())),
    "zfp": ("<f4", plugin(hdf5plugin.Zfp(accuracy=0.01))),
    "zfp, reversible": ("<i4", plugin(hdf5plugin.Zfp(reversible=True))),
}


def damaged(content: bytes, chance: random.Random) -> Iterator[bytes]:
    for _ in range(ROUNDS):
        broken = bytearray(content)
        match chance.randrange(4):
            case 0:
                del broken[chance.randrange(len(broken)) :]
            case 1:
                broken[chance.randrange(min(len(broken), 100))] = chance.choice((0, 127, 128, 255))
            case 2:
                broken += chance.randbytes(chance.randrange(1, 50))
            case 3:
                for _ in range(chance.choice((1, 3, 10))):
                    broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        yield bytes(broken)


@pytest.mark.parametrize(("dtype", "setting"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_content_is_malformed_or_a_value(dtype: str, setting: Setting) -> None:
    chunk = write(numbers((31, 41), dtype), setting)
    (one,) = chunk.filters
    decode = FILTERS[one.number].decode
    started = time.perf_counter()
    for content in damaged(chunk.content, random.Random(1)):
        with suppress(MalformedFile):
            assert len(decode(content, one.values, chunk.nbytes)) <= most(chunk.nbytes)
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(("dtype", "setting"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_client_data_are_malformed_or_lead_to_a_value(dtype: str, setting: Setting) -> None:
    chunk = write(numbers((31, 41), dtype), setting)
    (one,) = chunk.filters
    decode = FILTERS[one.number].decode
    for position in range(len(one.values)):
        for value in (0, 1, 2, 7, 33, 255, 2**16, 2**31, 2**32 - 1):
            values = (*one.values[:position], value, *one.values[position + 1 :])
            with suppress(MalformedFile):
                assert len(decode(chunk.content, values, chunk.nbytes)) <= most(chunk.nbytes)
    for count in range(len(one.values)):
        with suppress(MalformedFile):
            decode(chunk.content, one.values[:count], chunk.nbytes)


GIANT = 1 << 30
BOMBS = {
    "deflate": (deflate.decode, zlib.compress(bytes(30_000_000)), ()),
    "bzip2": (bzip2.decode, bzip2.encode(bytes(30_000_000), ()), ()),
    "zstd": (zstd.decode, zstd.encode(bytes(30_000_000), ()), ()),
    "zstd of unknown size": (zstd.decode, b"\x28\xb5\x2f\xfd\0\x58" + b"\x02\0\x10\0" * 300 + b"\x03\0\x10\0", ()),
    "blosc": (blosc.decode, blosc.encode(bytes(30_000_000), (2, 2, 4, 0, 5, 1, 0)), ()),
    "blosc2": (blosc2.decode, blosc2.encode(bytes(30_000_000), (1, 0, 4, 0)), (1, 0, 4, 0)),
    "lz4": (lz4.decode, lz4.encode(bytes(30_000_000), ()), ()),
    "lz4 of tiny blocks": (lz4.decode, lz4.HEADER.pack(GIANT, 1) + bytes(100), ()),
    "lzf": (lzf.decode, lzf.encode(bytes(30_000_000), ()), ()),
    "bitshuffle": (bitshuffle.decode, lz4.HEADER.pack(GIANT, 8192) + bytes(100), (0, 4, 4, 0, 2)),
    "szip": (szip.decode, GIANT.to_bytes(4, "little") + bytes(100), (141, 16, 8, 16)),
    "zfp": (
        zfp.decode,
        bytes(100),
        zfp.Settings(dtype="float64", shape=(GIANT,), minbits=1, maxbits=16658, maxprec=64, minexp=-1074).to_values(),
    ),
    "zfp of a high rate": (
        zfp.decode,
        bytes(100),
        zfp.Settings(dtype="int32", shape=(100,), minbits=32768, maxbits=32768, maxprec=64, minexp=0).to_values(),
    ),
}


@pytest.mark.parametrize(("decode", "content", "values"), BOMBS.values(), ids=BOMBS)
def test_no_more_is_allocated_than_a_chunk_needs(decode, content: bytes, values: tuple[int, ...]) -> None:
    with pytest.raises(MalformedFile):  # the packages are imported now
        decode(content, values, 1000)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedFile):
            decode(content, values, 1000)
        assert tracemalloc.get_traced_memory()[1] < 500_000 + len(content)
    finally:
        tracemalloc.stop()
