from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.heaps.local import LocalHeap, read_local_heap
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, local_heap

SEGMENT = b"\0\0\0\0\0\0\0\0lat\0\0\0\0\0l\xf6n\0\0\0\0\0rest"


def read(file: FakeFile) -> LocalHeap:
    return run(read_local_heap(0x100, file.sizes), file.read_many)


def test_a_local_heap_needs_two_rounds() -> None:
    file = FakeFile({0x100: local_heap(segment=0x200, nbytes=len(SEGMENT)), 0x200: SEGMENT})
    heap = read(file)
    assert heap.name(0) == ""
    assert heap.name(8) == "lat"
    assert heap.name(9) == "at"
    assert heap.name(16) == "lön"
    assert file.rounds == 2


@pytest.mark.parametrize("position", [24, 27, 28, 1 << 62])
def test_a_name_without_an_end_is_malformed(position: int) -> None:
    heap = read(FakeFile({0x100: local_heap(segment=0x200, nbytes=len(SEGMENT)), 0x200: SEGMENT}))
    with pytest.raises(MalformedFile, match=f"local heap of 28 bytes has no name at {position}") as caught:
        heap.name(position)
    assert caught.value.address == 0x200


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (local_heap(segment=UNDEFINED, nbytes=8), "no data segment"),
        (local_heap(segment=0x200, nbytes=8, version=1), "unknown version 1"),
        (local_heap(segment=0x200, nbytes=1 << 40), "outside the file"),
        (local_heap(segment=0x5000, nbytes=8), "outside the file"),
        (b"HEEP" + bytes(28), "signature"),
    ],
)
def test_an_impossible_header_is_malformed(header: bytes, complaint: str) -> None:
    file = FakeFile({0x100: header, 0x200: SEGMENT}, nbytes=0x1000)
    with pytest.raises(MalformedFile, match=complaint):
        read(file)
    assert file.rounds == 1
