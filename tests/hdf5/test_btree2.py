from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree2 import read_records
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, btree2_header, btree2_leaf, btree2_node, uint

KIND = 10
NODE_NBYTES = 64  # a leaf holds (64 - 10) // 8 = 6 records


def records(*numbers: int) -> list[bytes]:
    return [uint(number) for number in numbers]


def header(
    *, root: int | None, count: int, total: int, depth: int = 0, record_nbytes: int = 8, node_nbytes: int = NODE_NBYTES
) -> bytes:
    return btree2_header(
        kind=KIND,
        root=root,
        root_count=count,
        total_count=total,
        record_nbytes=record_nbytes,
        node_nbytes=node_nbytes,
        depth=depth,
    )


def leaf(*numbers: int) -> bytes:
    return btree2_leaf(KIND, records(*numbers), NODE_NBYTES)


def node(numbers: tuple[int, ...], *pointers: bytes) -> bytes:
    return btree2_node(KIND, records(*numbers), pointers, NODE_NBYTES)


def pointer(address: int, count: int, total: int | None = None) -> bytes:
    return uint(address) + uint(count, 1) + (b"" if total is None else uint(total, 1))


def read(file: FakeFile, *types: int) -> list[int]:
    kind, slabs = run(read_records(0x100, file.sizes, *(types or (KIND,))), file.read_many)
    assert kind == KIND
    return sorted(int.from_bytes(row.tobytes(), "little") for slab in slabs for row in slab)


def test_an_empty_tree_takes_one_round() -> None:
    file = FakeFile({0x100: header(root=None, count=0, total=0)})
    assert read(file) == []
    assert file.rounds == 1


def test_a_single_leaf_is_read_without_its_unused_space() -> None:
    file = FakeFile({0x100: header(root=0x200, count=2, total=2), 0x200: leaf(5, 6)[: 6 + 16 + 4]})
    assert read(file) == [5, 6]
    assert file.rounds == 2


def test_one_of_several_types_is_accepted() -> None:
    file = FakeFile({0x100: header(root=0x200, count=2, total=2), 0x200: leaf(5, 6)})
    assert read(file, 11, KIND) == [5, 6]
    with pytest.raises(MalformedFile, match="B-tree has type 10, expected 5 or 8"):
        read(file, 5, 8)


def test_records_of_inner_nodes_count_too() -> None:
    file = FakeFile(
        {
            0x100: header(root=0x200, count=2, total=9, depth=1),
            0x200: node((3, 7), pointer(0x300, 3), pointer(0x400, 1), pointer(0x500, 3)),
            0x300: leaf(0, 1, 2),
            0x400: leaf(5),
            0x500: leaf(8, 9, 10),
        }
    )
    assert read(file) == [0, 1, 2, 3, 5, 7, 8, 9, 10]
    assert [len(spans) for spans in file.requests] == [1, 1, 3]


def test_pointers_above_the_second_level_have_totals() -> None:
    file = FakeFile(
        {
            0x100: header(root=0x200, count=1, total=7, depth=2),
            0x200: node((3,), pointer(0x300, 1, 3), pointer(0x400, 1, 3)),
            0x300: node((1,), pointer(0x500, 1), pointer(0x600, 1)),
            0x400: node((5,), pointer(0x700, 1), pointer(0x800, 1)),
            0x500: leaf(0),
            0x600: leaf(2),
            0x700: leaf(4),
            0x800: leaf(6),
        }
    )
    assert read(file) == [0, 1, 2, 3, 4, 5, 6]
    assert [len(spans) for spans in file.requests] == [1, 1, 2, 4]


def test_the_records_keep_their_bytes() -> None:
    rows = [bytes((number, 1, 2)) for number in range(5)]
    file = FakeFile(
        {0x100: header(root=0x200, count=5, total=5, record_nbytes=3), 0x200: btree2_leaf(KIND, rows, NODE_NBYTES)}
    )
    _, slabs = run(read_records(0x100, file.sizes, KIND), file.read_many)
    assert [row.tobytes() for slab in slabs for row in slab] == rows


TREE = {
    0x200: node((3,), pointer(0x300, 2), pointer(0x400, 1)),
    0x300: leaf(0, 1),
    0x400: leaf(5),
}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({0x100: header(root=0x200, count=1, total=5, depth=1)}, "has 4 records, but its header says 5"),
        ({0x100: header(root=0x200, count=1, total=3, depth=1)}, "records"),
        ({0x100: header(root=0x200, count=7, total=7, depth=1)}, "more records than it can hold"),
        ({0x100: header(root=0x200, count=1, total=4, depth=33)}, "depth 33"),
        (
            {0x100: header(root=0x200, count=1, total=1 << 40, depth=1)},
            "B-tree has an impossible size: 1099511627776 records, depth 1",
        ),
        ({0x100: header(root=0x200, count=1, total=4, depth=1, record_nbytes=60)}, "records of 60 bytes"),
        ({0x100: header(root=0x200, count=1, total=4, depth=1, record_nbytes=0)}, "records of 0 bytes"),
        ({0x100: header(root=0x200, count=1, total=4, depth=1, record_nbytes=50)}, "too small for a record"),
        ({0x100: header(root=0x300, count=2, total=3)}, "has 2 records, not 3"),
        ({0x100: header(root=0x5000, count=2, total=2)}, "outside the file"),
        ({0x100: header(root=0x400, count=1, total=4, depth=1)}, "begins with|fails its checksum"),
        ({0x200: node((3,), pointer(0x300, 2), pointer(0x300, 1))}, "reached twice"),
        ({0x200: node((3,), pointer(0x300, 2), pointer(0x5000, 1))}, "outside the file"),
        ({0x200: node((3,), pointer(0x300, 2), pointer(0x200, 1))}, "begins with|fails its checksum"),
        ({0x300: btree2_leaf(11, records(0, 1), NODE_NBYTES)}, "begins with"),
        ({0x300: leaf(0, 1)[:10] + b"\x07" + leaf(0, 1)[11:]}, "fails its checksum"),
        ({0x100: header(root=0x200, count=1, total=4, depth=1)[:-1] + b"\0"}, "header fails its checksum"),
    ],
)
def test_a_broken_tree_is_malformed(parts: dict[int, bytes], complaint: str) -> None:
    whole = {0x100: header(root=0x200, count=1, total=4, depth=1), **TREE}
    assert read(FakeFile(whole, nbytes=0x1000)) == [0, 1, 3, 5]
    with pytest.raises(MalformedFile, match=complaint):
        read(FakeFile({**whole, **parts}, nbytes=0x1000))


def test_a_damaged_single_leaf_is_malformed() -> None:
    whole = {0x100: header(root=0x200, count=2, total=2), 0x200: leaf(5, 6)}
    for damage in (0, 4, 5, 8, 22):
        block = bytearray(whole[0x200])
        block[damage] ^= 1
        with pytest.raises(MalformedFile, match=r"B-tree node (has signature|fails its checksum)") as caught:
            read(FakeFile({**whole, 0x200: bytes(block)}))
        assert caught.value.address == 0x200
