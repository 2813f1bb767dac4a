from __future__ import annotations

import random
import zlib

import h5py
import numpy as np
import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.pipeline import is_known, redo_filters, undo_filters
from h5zarr.hdf5.model import Filter

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
    with pytest.raises(MalformedFile, match="does not decompress to the expected size"):
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


@pytest.mark.parametrize(("name", "shown"), [("Lempel", "Lempel"), ("", "unnamed")])
def test_a_filter_without_a_module_is_unsupported(name: str, shown: str) -> None:
    unknown = Filter(number=31_999, name=name, optional=True, values=())
    with pytest.raises(Unsupported, match=rf"filter 31999 \({shown}\) is not known") as caught:
        undo_filters(b"", (unknown,), 0, 100)
    assert "h5repack" in caught.value.remedy


def test_an_unknown_filter_that_was_skipped_causes_no_problem() -> None:
    unknown = Filter(number=31_999, name="", optional=True, values=())
    assert undo_filters(b"plain", (unknown,), 1, 100) == b"plain"


@pytest.mark.parametrize(("number", "reason"), [(305, "LZO"), (32_017, "SZ"), (32_024, "SZ3")])
def test_filters_that_are_refused_say_why(number: int, reason: str) -> None:
    with pytest.raises(Unsupported, match=rf"filter {number} \(unnamed\) is {reason}"):
        undo_filters(b"", (Filter(number=number, name="", optional=True, values=()),), 0, 100)


@pytest.mark.parametrize("number", [32_022, 32_023, 32_032])
def test_quantizing_filters_leave_nothing_to_undo(number: int) -> None:
    assert (
        undo_filters(CONTENT, (Filter(number=number, name="", optional=False, values=(3, 4, 0, 0, 0)),), 0, 22)
        == CONTENT
    )


def test_what_cannot_be_undone_cannot_be_applied() -> None:
    with pytest.raises(Unsupported, match=r"filter 32017 .* is SZ"):
        redo_filters(b"", (Filter(number=32_017, name="", optional=True, values=()),))


def test_which_filters_are_known() -> None:
    known = {1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32013, 32015, 32022, 32023, 32026, 32032}
    assert {number for number in range(65_536) if is_known(number)} == known


def test_the_old_checksum_of_little_endian_machines_is_accepted() -> None:
    """libhdf5 before 1.6.3 summed words of the other byte order. Source: H5Zfletcher32.c."""
    first, second, third, fourth = summed(CONTENT)
    assert undo_filters(CONTENT + bytes((second, first, fourth, third)), (FLETCHER32,), 0, 22) == CONTENT
    with pytest.raises(MalformedFile, match="fails its checksum"):
        undo_filters(CONTENT + bytes((fourth, third, second, first)), (FLETCHER32,), 0, 22)


@pytest.mark.parametrize("nbytes", [0, 1, 3])
def test_content_without_room_for_a_checksum_is_malformed(nbytes: int) -> None:
    with pytest.raises(MalformedFile, match="has no room for its checksum"):
        undo_filters(bytes(nbytes), (FLETCHER32,), 0, 100)


@pytest.mark.parametrize("values", [(), (0,), (1,), (100,)])
def test_a_shuffle_of_an_impossible_width_changes_nothing(values: tuple[int, ...]) -> None:
    assert undo_filters(CONTENT, (Filter(number=2, name="", optional=True, values=values),), 0, 100) == CONTENT
