from __future__ import annotations

import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree1 import Entries, NodeType, Shape, read_leaf_entries
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, btree1_node, uint

CAPACITY = 4
NODE_NBYTES = 24 + CAPACITY * 16 + 8


def shape(sizes: Sizes) -> Shape:
    return Shape(node_type=NodeType.GROUP, capacity=CAPACITY, key_nbytes=8, sizes=sizes)


def node(level: int, entries: dict[int, int], node_type: int = 0) -> bytes:
    pairs = [(uint(key), child) for key, child in entries.items()]
    return btree1_node(node_type=node_type, level=level, entries=pairs, capacity=CAPACITY, last_key=uint(99))


def read(file: FakeFile, root: int = 0x100) -> Entries:
    return run(read_leaf_entries(root, shape(file.sizes)), file.read_many)


def keys(entries: Entries) -> list[int]:
    rows = np.concatenate(list(entries.slabs()))
    return [int.from_bytes(row[:8].tobytes(), "little") for row in rows]


def test_a_node_has_one_key_more_than_entries() -> None:
    assert shape(Sizes()).node_nbytes == NODE_NBYTES == len(node(0, {1: 2}))
    narrow = Shape(node_type=NodeType.CHUNKS, capacity=64, key_nbytes=24, sizes=Sizes(offset_nbytes=4))
    assert narrow.node_nbytes == 8 + 2 * 4 + 64 * (24 + 4) + 24


def test_a_leaf_takes_one_round() -> None:
    file = FakeFile({0x100: node(0, {1: 0x1000, 2: 0x2000, 3: 0x3000})})
    entries = read(file)
    assert entries.count == 3
    assert keys(entries) == [1, 2, 3]
    assert entries.children().tolist() == [0x1000, 0x2000, 0x3000]
    assert [list(map(tuple, spans)) for spans in file.requests] == [[(0x100, NODE_NBYTES)]]


def test_every_level_takes_one_round() -> None:
    file = FakeFile(
        {
            0x100: node(2, {1: 0x400, 5: 0x500}),
            0x400: node(1, {1: 0x800, 3: 0x900}),
            0x500: node(1, {5: 0xA00}),
            0x800: node(0, {1: 0x10, 2: 0x20}),
            0x900: node(0, {3: 0x30}),
            0xA00: node(0, {5: 0x50, 6: 0x60, 7: 0x70, 8: 0x80}),
        }
    )
    entries = read(file)
    assert keys(entries) == [1, 2, 3, 5, 6, 7, 8]
    assert entries.children().tolist() == [0x10, 0x20, 0x30, 0x50, 0x60, 0x70, 0x80]
    assert [len(spans) for spans in file.requests] == [1, 2, 3]


def test_addresses_are_counted_from_the_base() -> None:
    parts = {0x300: node(1, {1: 0x200}), 0x400: node(0, {1: 0x10})}
    file = FakeFile(parts, sizes=Sizes(base=0x200))
    assert read(file, 0x300).children().tolist() == [0x210]


def test_an_empty_leaf_has_no_entries() -> None:
    entries = read(FakeFile({0x100: node(0, {})}))
    assert entries.count == 0
    assert entries.children().tolist() == []


@pytest.mark.parametrize(
    ("children", "complaint"),
    [
        ({1: 0x100}, "begins with"),
        ({1: 0x800, 2: 0x800}, "reached twice"),
        ({1: 0x7000}, "outside the file"),
        ({1: 0xFFFFFFFFFFFFFFFF}, "outside the file"),
        ({1: 0x900}, "begins with"),
        ({1: 0xA00}, "begins with"),
        ({1: 0xB00}, "begins with"),
        ({}, "B-tree has an internal level without children"),
    ],
)
def test_a_broken_inner_node_is_malformed(children: dict[int, int], complaint: str) -> None:
    file = FakeFile(
        {
            0x100: node(1, children),
            0x800: node(0, {1: 2}),
            0x900: node(1, {1: 2}),
            0xA00: node(0, {1: 2}, node_type=1),
            0xB00: b"TREX" + node(0, {1: 2})[4:],
        },
        nbytes=0x2000,
    )
    with pytest.raises(MalformedFile, match=complaint):
        list(read(file).slabs())


def test_a_tree_that_never_ends_is_malformed() -> None:
    file = FakeFile({0x100: node(255, {1: 0x100})})
    with pytest.raises(MalformedFile, match="B-tree has 255 levels"):
        read(file)
    assert file.rounds == 1


def test_more_entries_than_fit_are_malformed() -> None:
    block = bytearray(node(0, {1: 2}))
    block[6] = CAPACITY + 1
    with pytest.raises(MalformedFile, match="B-tree node has more than 4 entries") as caught:
        read(FakeFile({0x100: bytes(block)})).children()
    assert caught.value.address == 0x100


def test_a_node_that_the_file_cuts_short_is_malformed() -> None:
    file = FakeFile({0x100: node(0, {1: 2})[:-1]})
    with pytest.raises(MalformedFile, match="outside the file"):
        read(file)
