from __future__ import annotations

from collections.abc import Iterable

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.heaps.collections import CollectionsMissing, GlobalHeap
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, collection, padded, uint


def read(file: FakeFile, addresses: Iterable[int], heap: GlobalHeap | None = None) -> GlobalHeap:
    heap = heap or GlobalHeap(file.sizes)
    run(heap.read(addresses), file.read_many)
    return heap


def test_small_collections_take_one_round_together() -> None:
    file = FakeFile({0x1000: collection({1: b"one", 2: b""}), 0x3000: collection({1: b"eins", 7: b"sieben!!"})})
    heap = read(file, [0x1000, 0x3000])
    assert heap.object(0x1000, 1) == b"one"
    assert heap.object(0x1000, 2) == b""
    assert heap.object(0x3000, 1) == b"eins"
    assert heap.object(0x3000, 7) == b"sieben!!"
    assert [len(spans) for spans in file.requests] == [2]


def test_a_large_collection_takes_a_second_round() -> None:
    large = {1: b"x" * 5000, 2: b"behind"}
    file = FakeFile({0x1000: collection(large, nbytes=8192), 0x4000: collection({1: b"small"})})
    heap = read(file, [0x1000, 0x4000])
    assert heap.object(0x1000, 1) == b"x" * 5000
    assert heap.object(0x1000, 2) == b"behind"
    assert heap.object(0x4000, 1) == b"small"
    assert [len(spans) for spans in file.requests] == [2, 1]


def test_a_collection_is_read_once() -> None:
    file = FakeFile({0x1000: collection({1: b"one"})})
    heap = read(file, [0x1000, 0x1000])
    read(file, [0x1000], heap)
    read(file, [], heap)
    assert file.rounds == 1
    assert len(file.requests[0]) == 1


@pytest.mark.parametrize("length_nbytes", [2, 4, 8])
def test_the_heads_of_objects_are_aligned_at_every_width_of_lengths(length_nbytes: int) -> None:
    objects = {1: b"one", 2: b"12345678", 3: b"three"}
    file = FakeFile(
        {0x1000: collection(objects, length_nbytes=length_nbytes)}, sizes=Sizes(length_nbytes=length_nbytes)
    )
    heap = read(file, [0x1000])
    assert {index: heap.object(0x1000, index) for index in objects} == objects


def test_objects_may_fill_a_collection_to_its_end() -> None:
    file = FakeFile({0x1000: collection({1: b"x" * (4096 - 16 - 16)})})
    assert heap_object(file, 1) == b"x" * (4096 - 32)


def test_free_space_is_passed_over_with_its_own_header() -> None:
    free = uint(0, 2) + bytes(6) + uint(40) + b"\x01" * 24
    whole = collection({1: b"one", 2: b"two"})
    block = whole[:40] + free + whole[40:-40]
    file = FakeFile({0x1000: block})
    assert (heap_object(file, 1), heap_object(file, 2)) == (b"one", b"two")
    with pytest.raises(MalformedFile, match="no object 257"):
        heap_object(file, 257)


@pytest.mark.parametrize("nbytes", [0, 15])
def test_free_space_without_room_for_its_header_ends_the_objects(nbytes: int) -> None:
    free = uint(0, 2) + bytes(6) + uint(nbytes)
    whole = collection({1: b"one", 2: b"two"})
    with pytest.raises(MalformedFile, match="no object 2"):
        heap_object(FakeFile({0x1000: whole[:40] + free + whole[40:-16]}), 2)


def test_collections_that_were_not_read_are_missing_and_broken_ones_are_not() -> None:
    file = FakeFile({0x1000: collection({1: b"one"})})
    heap = read(file, [0x1000, 0x9000_0000])
    heap.require([0x1000, 0x9000_0000])
    with pytest.raises(CollectionsMissing) as caught:
        heap.require([0x1000, 0x3000, 0x4000])
    assert caught.value.addresses == {0x3000, 0x4000}


def test_an_object_may_be_asked_for_in_part() -> None:
    heap = read(FakeFile({0x1000: collection({1: b"object"})}), [0x1000])
    assert heap.object(0x1000, 1, 3) == b"obj"
    assert heap.object(0x1000, 1, 6) == b"object"
    with pytest.raises(MalformedFile, match="global heap object 1 has 6 bytes, but 7 are needed"):
        heap.object(0x1000, 1, 7)


def heap_object(file: FakeFile, index: int) -> bytes:
    return read(file, [0x1000]).object(0x1000, index)


def test_a_missing_object_is_reported_with_its_collection() -> None:
    with pytest.raises(MalformedFile, match="global heap collection has no object 2") as caught:
        heap_object(FakeFile({0x1000: collection({1: b"one"})}), 2)
    assert caught.value.address == 0x1000


def test_an_object_past_the_end_of_its_collection_is_malformed() -> None:
    block = bytearray(collection({1: b"one", 2: b"two"}))
    block[40 + 8 : 40 + 16] = uint(4096)
    with pytest.raises(MalformedFile, match=r"global heap object 2 extends beyond its collection \(byte 0x1028\)"):
        heap_object(FakeFile({0x1000: bytes(block)}), 1)


@pytest.mark.parametrize(
    "broken",
    [
        b"GCOX" + collection({1: b"one"})[4:],
        b"GCOL\x02" + collection({1: b"one"})[5:],
        b"GCOL\x01\0\0\0" + uint(1 << 50) + bytes(4080),
        b"GCOL\x01\0\0\0" + uint(1 << 63) + bytes(4080),
    ],
)
def test_a_broken_collection_is_reported_on_use_and_does_not_affect_others(broken: bytes) -> None:
    file = FakeFile({0x1000: broken, 0x3000: collection({1: b"whole"})})
    heap = read(file, [0x1000, 0x3000, 0x9000_0000])
    assert heap.object(0x3000, 1) == b"whole"
    with pytest.raises(MalformedFile):
        heap.object(0x1000, 1)
    with pytest.raises(MalformedFile, match="outside the file"):
        heap.object(0x9000_0000, 1)


def test_the_last_collection_of_a_file_may_be_shorter_than_what_is_asked_for_at_once() -> None:
    block = padded(b"GCOL\x01\0\0\0" + uint(48)) + uint(1, 2) + bytes(6) + uint(3) + b"abc" + bytes(5)
    assert heap_object(FakeFile({0x1000: block + bytes(8)}), 1) == b"abc"
