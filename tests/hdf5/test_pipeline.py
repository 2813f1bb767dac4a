from __future__ import annotations

import random
import zlib

import h5py
import numpy as np
import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.model import Filter
from h5zarr.hdf5.pipeline import undo_filters

DEFLATE = Filter(number=1, name="deflate", optional=True, values=(6,))
SHUFFLE = Filter(number=2, name="shuffle", optional=True, values=(4,))
FLETCHER32 = Filter(number=3, name="fletcher32", optional=False, values=())
CONTENT = bytes(range(22))  # five elements of four bytes, and two bytes that are left over


def shuffled(content: bytes) -> bytes:
    whole = len(content) // 4 * 4
    return np.frombuffer(content[:whole], np.uint8).reshape(-1, 4).T.tobytes() + content[whole:]


def test_filters_are_undone_in_reverse() -> None:
    """The sum of the bytes is libhdf5's own, which is checked below."""
    deflated = zlib.compress(shuffled(CONTENT))
    stored = deflated + summed(deflated)
    assert undo_filters(stored, (SHUFFLE, DEFLATE, FLETCHER32), 0, 100) == CONTENT


@pytest.mark.parametrize(
    ("mask", "stored"),
    [
        (0b01, zlib.compress(CONTENT)),
        (0b10, shuffled(CONTENT)),
        (0b11, CONTENT),
    ],
)
def test_filters_that_were_skipped_are_not_undone(mask: int, stored: bytes) -> None:
    assert undo_filters(stored, (SHUFFLE, DEFLATE), mask, 100) == CONTENT


def test_no_filter_gives_more_than_was_asked_for() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    with pytest.raises(MalformedFile, match="does not decompress to the size that it should have"):
        undo_filters(bomb, (DEFLATE,), 0, 1000)


def summed(content: bytes) -> bytes:
    """Return the checksum that libhdf5's fletcher32 filter puts behind `content`."""
    with h5py.File("summed", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("d", data=np.frombuffer(content, "u1"), chunks=(len(content),), fletcher32=True)
        stored: bytes = dataset.id.read_direct_chunk((0,))[1]
    assert stored[:-4] == content
    return stored[-4:]


@pytest.mark.parametrize(
    "content",
    [
        *(random.Random(nbytes).randbytes(nbytes) for nbytes in (1, 2, 3, 100, 719, 720, 721, 722, 1441, 100_001)),
        *(b"\xff" * nbytes for nbytes in (1, 2, 3, 720, 131_070, 131_072)),
        *(bytes(nbytes) for nbytes in (1, 2, 1000)),
        b"\x01\x01" + bytes(508),  # 257 times 255 is 65535, which counts as nothing modulo 65535
    ],
    ids=lambda content: f"{len(content)} bytes of {content[:1].hex()}",
)
def test_a_fletcher32_checksum_is_that_of_libhdf5(content: bytes) -> None:
    assert undo_filters(content + summed(content), (FLETCHER32,), 0, len(content)) == content
    damaged = content[:-1] + bytes((content[-1] ^ 1,))
    with pytest.raises(MalformedFile, match="fails its checksum"):
        undo_filters(damaged + summed(content), (FLETCHER32,), 0, len(content))


def test_what_does_not_decompress_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="does not decompress"):
        undo_filters(b"not deflated", (DEFLATE,), 0, 100)


@pytest.mark.parametrize(("name", "shown"), [("zstd", "zstd"), ("", "unnamed")])
def test_other_filters_are_unsupported(name: str, shown: str) -> None:
    with pytest.raises(Unsupported, match=rf"filter 32015 \({shown}\)"):
        undo_filters(b"", (Filter(number=32_015, name=name, optional=True, values=()),), 0, 100)


@pytest.mark.parametrize("values", [(), (0,), (1,), (100,)])
def test_a_shuffle_of_an_impossible_width_changes_nothing(values: tuple[int, ...]) -> None:
    assert undo_filters(CONTENT, (Filter(number=2, name="", optional=True, values=values),), 0, 100) == CONTENT
