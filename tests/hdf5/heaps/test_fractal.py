from __future__ import annotations

import struct
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.checksum import lookup3
from h5zarr.hdf5.heaps.fractal import HeapBlocks, read_heap
from h5zarr.hdf5.model import Group
from h5zarr.io.steps import run
from tests.collections_of_files import SAMPLES
from tests.fake_file import UNDEFINED, FakeFile, btree2_header, btree2_leaf, uint, with_checksum
from tests.truth.scan_against_h5py import compare

AT = 0x100
BLOCK_NBYTES = 512  # of the smallest direct block
PREFIX_NBYTES = 5 + 8 + 2  # signature, version, header, place in a heap of 16 bits
DEFLATE = b"\x02\x01" + uint(1, 2) + uint(0, 2) + uint(1, 2) + uint(6, 4)


def heap_header(**changes: int | bytes | None) -> bytes:
    """Return the header of a heap of 16 bits with rows of two blocks, the first of 512 bytes, direct up to 1024."""
    fields: dict[str, int | bytes | None] = {
        "version": 0,
        "id_nbytes": 7,
        "filters": b"",
        "flags": 0,
        "max_managed_nbytes": 1000,
        "huge_btree": UNDEFINED,
        "allocated": 512,
        "managed": 4096,
        "width": 2,
        "start": BLOCK_NBYTES,
        "max_direct": 1024,
        "bits": 16,
        "root": 0x400,
        "root_rows": 0,
        "root_stored": 0,
        "root_mask": 0,
    } | changes
    filters = fields["filters"]
    assert isinstance(filters, bytes)
    block = b"FRHP" + struct.pack(
        "<BHHBIQQQQQQQQQQQQHQQHHQH",
        fields["version"],
        fields["id_nbytes"],
        len(filters),
        fields["flags"],
        fields["max_managed_nbytes"],
        0,
        fields["huge_btree"],
        0,
        UNDEFINED,
        fields["managed"],
        fields["allocated"],
        *(0,) * 6,
        fields["width"],
        fields["start"],
        fields["max_direct"],
        fields["bits"],
        1,
        fields["root"],
        fields["root_rows"],
    )
    if filters:
        block += uint(fields["root_stored"]) + uint(fields["root_mask"], 4) + filters  # type: ignore[arg-type]
    return with_checksum(block)


def direct_block(place: int, objects: dict[int, bytes], nbytes: int = BLOCK_NBYTES, checksum: bool = False) -> bytes:
    """Return a direct block that begins at `place` in the heap; objects by their position in the block."""
    block = bytearray(b"FHDB\0" + uint(AT) + uint(place, 2))
    block += bytes(nbytes - len(block))
    for position, content in objects.items():
        block[position : position + len(content)] = content
    if checksum:
        block[PREFIX_NBYTES : PREFIX_NBYTES + 4] = bytes(4)
        block[PREFIX_NBYTES : PREFIX_NBYTES + 4] = uint(lookup3(bytes(block)), 4)
    return bytes(block)


def indirect_block(place: int, *children: int | None) -> bytes:
    pointers = b"".join(uint(UNDEFINED if child is None else child) for child in children)
    return with_checksum(b"FHIB\0" + uint(AT) + uint(place, 2) + pointers)


def managed(position: int, nbytes: int) -> bytes:
    """Return the ID of an object: its place in the heap (2 bytes) and its size (2 bytes), padded to 7 bytes."""
    return b"\0" + uint(position, 2) + uint(nbytes, 2) + bytes(2)


def read(file: FakeFile) -> HeapBlocks:
    return run(read_heap(AT, file.sizes), file.read_many)


def objects(file: FakeFile, *ids: bytes) -> list[bytes]:
    return run(read(file).read(ids), file.read_many)


# --- managed objects


def test_a_heap_of_one_direct_block_takes_two_rounds() -> None:
    file = FakeFile({AT: heap_header(), 0x400: direct_block(0, {20: b"alpha", 100: b"beta"})})
    assert objects(file, managed(100, 4), managed(20, 5)) == [b"beta", b"alpha"]
    assert file.rounds == 2


def test_an_empty_heap_has_no_objects() -> None:
    file = FakeFile({AT: heap_header(root=UNDEFINED)})
    with pytest.raises(MalformedFile, match="fractal heap has no object of 5 bytes at 20"):
        objects(file, managed(20, 5))
    assert file.rounds == 1


def test_rows_of_direct_blocks_double_after_the_second() -> None:
    """Rows of two blocks: 0 and 512, 1024 and 1536, then of 1024 bytes at 2048 and 3072."""
    file = FakeFile(
        {
            AT: heap_header(root_rows=3),
            0x400: indirect_block(0, 0x1000, None, 0x2000, 0x3000, None, 0x4000),
            0x1000: direct_block(0, {20: b"first"}),
            0x2000: direct_block(1024, {30: b"third"}),
            0x3000: direct_block(1536, {30: b"fourth"}),
            0x4000: direct_block(3072, {1000: b"sixth"}, nbytes=1024),
        }
    )
    ids = [managed(20, 5), managed(1024 + 30, 5), managed(1536 + 30, 6), managed(3072 + 1000, 5)]
    assert objects(file, *ids) == [b"first", b"third", b"fourth", b"sixth"]
    assert [len(spans) for spans in file.requests] == [1, 1, 4]


def test_rows_beyond_the_largest_direct_block_are_indirect() -> None:
    """The fourth row, of 2048 bytes at 4096, has indirect blocks of as many rows as fit: two."""
    file = FakeFile(
        {
            AT: heap_header(root_rows=4, managed=8192),
            0x400: indirect_block(0, None, None, None, None, None, None, None, 0x800),
            0x800: indirect_block(6144, None, 0x1000, 0x2000, None),
            0x1000: direct_block(6144 + 512, {20: b"below"}),
            0x2000: direct_block(6144 + 1024, {20: b"lower"}),
        }
    )
    assert objects(file, managed(6144 + 512 + 20, 5), managed(6144 + 1024 + 20, 5)) == [b"below", b"lower"]
    assert [len(spans) for spans in file.requests] == [1, 1, 1, 2]


@pytest.mark.parametrize("heap_id", [managed(510, 3), managed(512, 1), managed(0, 600), managed(60_000, 1)])
def test_an_object_outside_the_blocks_is_malformed(heap_id: bytes) -> None:
    file = FakeFile({AT: heap_header(), 0x400: direct_block(0, {})})
    with pytest.raises(MalformedFile, match="fractal heap has no object"):
        objects(file, heap_id)


@pytest.mark.parametrize(
    ("heap_id", "complaint"),
    [(b"\x40" + bytes(6), "unknown version"), (b"", "unknown version"), (b"\x30" + bytes(6), "unknown type 3")],
)
def test_an_unknown_id_is_malformed(heap_id: bytes, complaint: str) -> None:
    file = FakeFile({AT: heap_header(), 0x400: direct_block(0, {})})
    with pytest.raises(MalformedFile, match=complaint):
        objects(file, heap_id)


# --- checks


def test_checksums_of_direct_blocks_are_verified_where_the_header_says_that_there_are_any() -> None:
    block = direct_block(0, {20: b"alpha"}, checksum=True)
    file = FakeFile({AT: heap_header(flags=2), 0x400: block})
    assert objects(file, managed(20, 5)) == [b"alpha"]
    damaged = block[:200] + b"!" + block[201:]
    assert objects(FakeFile({AT: heap_header(), 0x400: damaged}), managed(20, 5)) == [b"alpha"]
    with pytest.raises(MalformedFile, match="fractal heap direct block fails its checksum") as caught:
        read(FakeFile({AT: heap_header(flags=2), 0x400: damaged}))
    assert caught.value.address == 0x400


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"width": 3}, "table_width 3, not a power of two"),
        ({"width": 0}, "table_width 0"),
        ({"start": 500}, "starting_block_nbytes 500"),
        ({"max_direct": 1000}, "max_direct_nbytes 1000"),
        ({"max_direct": 256}, "impossible block sizes"),
        ({"bits": 65}, "impossible block sizes"),
        ({"allocated": 5000}, "more allocated than managed"),
        ({"version": 1}, "unknown version 1"),
        ({"root": 0x70000}, "outside the file"),
        ({"root_rows": 60_000}, "more bytes than the file has"),
    ],
)
def test_an_impossible_header_is_malformed(changes: dict[str, int], complaint: str) -> None:
    file = FakeFile({AT: heap_header(**changes), 0x400: direct_block(0, {})})
    with pytest.raises(MalformedFile, match=complaint):
        read(file)


def test_a_damaged_header_is_malformed() -> None:
    block = bytearray(heap_header())
    block[30] ^= 1
    with pytest.raises(MalformedFile, match="fractal heap header fails its checksum"):
        read(FakeFile({AT: bytes(block)}))


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (b"FHDX" + direct_block(0, {})[4:], "signature"),
        (b"FHDB\x01" + direct_block(0, {})[5:], "signature|version"),
        (direct_block(512, {}), "wrong heap address or block offset"),
        (b"FHDB\0" + uint(AT + 8) + direct_block(0, {})[13:], "wrong heap address or block offset"),
    ],
)
def test_a_broken_direct_block_is_malformed(block: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint) as caught:
        read(FakeFile({AT: heap_header(), 0x400: block}))
    assert caught.value.address == 0x400


def test_a_damaged_indirect_block_is_malformed() -> None:
    block = bytearray(indirect_block(0, None, None))
    block[15] ^= 1
    with pytest.raises(MalformedFile, match="fractal heap indirect block fails its checksum"):
        read(FakeFile({AT: heap_header(root_rows=1), 0x400: bytes(block)}))


@pytest.mark.parametrize("children", [(0x1000, 0x1000), (0x400, None)])
def test_a_block_that_is_reached_twice_is_malformed(children: tuple[int | None, ...]) -> None:
    file = FakeFile({AT: heap_header(root_rows=1), 0x400: indirect_block(0, *children), 0x1000: direct_block(0, {})})
    with pytest.raises(MalformedFile, match="same node twice"):
        read(file)


# --- filters


@pytest.mark.parametrize("mask", [0, 1])
def test_a_filtered_root_block_is_unfiltered_unless_its_mask_says_that_it_was_not(mask: int) -> None:
    block = direct_block(0, {20: b"alpha"})
    stored = block if mask else zlib.compress(block)
    file = FakeFile(
        {AT: heap_header(filters=DEFLATE, root_stored=len(stored), root_mask=mask), 0x400: stored}, nbytes=0x1000
    )
    assert objects(file, managed(20, 5)) == [b"alpha"]


def test_filtered_blocks_have_their_sizes_and_masks_in_the_indirect_block() -> None:
    first, second = zlib.compress(direct_block(0, {20: b"alpha"})), direct_block(512, {20: b"beta"})
    pointers = uint(0x1000) + uint(len(first)) + uint(0, 4) + uint(0x2000) + uint(len(second)) + uint(1, 4)
    root = with_checksum(b"FHIB\0" + uint(AT) + uint(0, 2) + pointers)
    header = heap_header(filters=DEFLATE, root_rows=1)
    file = FakeFile({AT: header, 0x400: root, 0x1000: first, 0x2000: second})
    assert objects(file, managed(20, 5), managed(532, 4)) == [b"alpha", b"beta"]


@pytest.mark.parametrize("nbytes", [BLOCK_NBYTES - 1, BLOCK_NBYTES + 1, 100_000])
def test_a_filtered_block_of_another_size_is_malformed(nbytes: int) -> None:
    stored = zlib.compress((direct_block(0, {}) + bytes(nbytes))[:nbytes])
    file = FakeFile({AT: heap_header(filters=DEFLATE, root_stored=len(stored)), 0x400: stored}, nbytes=0x1000)
    with pytest.raises(MalformedFile, match=r"direct block has \d+ bytes, expected 512|expected size"):
        read(file)


def test_a_block_that_does_not_decompress_is_malformed() -> None:
    file = FakeFile({AT: heap_header(filters=DEFLATE, root_stored=50), 0x400: bytes(50)})
    with pytest.raises(MalformedFile, match="does not decompress"):
        read(file)


def test_a_block_with_a_foreign_filter_is_unsupported() -> None:
    foreign = b"\x02\x01" + uint(31_999, 2) + uint(4, 2) + uint(0, 2) + uint(0, 2) + b"mine"
    file = FakeFile({AT: heap_header(filters=foreign, root_stored=50), 0x400: bytes(50)})
    with pytest.raises(Unsupported, match=r"filter 31999 \(mine\)"):
        read(file)


# --- tiny and huge objects


def test_a_tiny_object_is_in_its_id() -> None:
    file = FakeFile({AT: heap_header(root=UNDEFINED)})
    assert objects(file, b"\x24alpha\0", b"\x20a" + bytes(5)) == [b"alpha", b"a"]
    with pytest.raises(MalformedFile, match="fractal heap ID ends after 3 bytes"):
        objects(file, b"\x24al")


@pytest.mark.parametrize(
    ("id_nbytes", "heap_id"), [(18, b"\x2fabcdefghijklmnop\0"), (19, b"\x20\x11abcdefghijklmnopqr")]
)
def test_the_length_of_a_tiny_object_has_12_bits_in_ids_of_more_than_18_bytes(id_nbytes: int, heap_id: bytes) -> None:
    file = FakeFile({AT: heap_header(root=UNDEFINED, id_nbytes=id_nbytes)})
    assert objects(file, heap_id) == [heap_id[1:17] if id_nbytes == 18 else heap_id[2:20]]


def huge_records(*rows: bytes, kind: int = 1) -> dict[int, bytes]:
    header = btree2_header(
        kind=kind, root=0x2000, root_count=len(rows), total_count=len(rows), record_nbytes=len(rows[0])
    )
    return {0x1000: header, 0x2000: btree2_leaf(kind, rows)}


def test_a_huge_object_is_found_by_its_key() -> None:
    rows = [uint(0x3000) + uint(6) + uint(1), uint(0x4000) + uint(4) + uint(770)]
    parts = {AT: heap_header(root=UNDEFINED, huge_btree=0x1000), 0x3000: b"object", 0x4000: b"more"}
    file = FakeFile({**parts, **huge_records(*rows)})
    assert objects(file, b"\x10" + uint(770, 6), b"\x10" + uint(1, 6)) == [b"more", b"object"]
    assert file.rounds == 1 + 2 + 1
    with pytest.raises(MalformedFile, match="fractal heap has no huge object 2"):
        objects(file, b"\x10" + uint(2, 6))


def test_a_filtered_huge_object_is_unfiltered() -> None:
    stored = zlib.compress(b"object" * 100)
    row = uint(0x3000) + uint(len(stored)) + uint(0, 4) + uint(600) + uint(1)
    header = heap_header(root=UNDEFINED, huge_btree=0x1000, filters=DEFLATE)
    file = FakeFile({AT: header, 0x3000: stored, **huge_records(row, kind=2)})
    assert objects(file, b"\x10" + uint(1, 6)) == [b"object" * 100]


def test_a_long_id_says_itself_where_its_huge_object_is() -> None:
    file = FakeFile({AT: heap_header(root=UNDEFINED, id_nbytes=17), 0x3000: b"object"})
    assert objects(file, b"\x10" + uint(0x3000) + uint(6)) == [b"object"]
    assert file.rounds == 2
    with pytest.raises(MalformedFile, match="huge object has no address"):
        objects(file, b"\x10" + uint(UNDEFINED) + uint(6))


def test_a_filtered_huge_object_of_another_size_is_malformed() -> None:
    stored = zlib.compress(b"object" * 100)
    row = uint(0x3000) + uint(len(stored)) + uint(0, 4) + uint(601) + uint(1)
    header = heap_header(root=UNDEFINED, huge_btree=0x1000, filters=DEFLATE)
    file = FakeFile({AT: header, 0x3000: stored, **huge_records(row, kind=2)})
    with pytest.raises(MalformedFile, match="wrong size"):
        objects(file, b"\x10" + uint(1, 6))


def test_an_object_that_is_named_twice_is_malformed() -> None:
    file = FakeFile({AT: heap_header(), 0x400: direct_block(0, {20: b"alpha"})})
    with pytest.raises(MalformedFile, match="same fractal heap object twice"):
        objects(file, managed(20, 5), managed(20, 5))


def test_a_huge_object_without_an_index_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="no index for them"):
        objects(FakeFile({AT: heap_header(root=UNDEFINED)}), b"\x10" + uint(1, 6))


def test_huge_objects_in_an_index_without_keys_are_unsupported() -> None:
    row = uint(0x3000) + uint(6)
    parts = {AT: heap_header(root=UNDEFINED, huge_btree=0x1000), **huge_records(row, kind=3)}
    with pytest.raises(Unsupported, match="huge objects with indirect IDs are indexed by a B-tree of type 3, expected"):
        objects(FakeFile(parts), b"\x10" + uint(1, 6))


# --- files


@pytest.mark.parametrize("count", [1, 9, 200, 3000])
def test_dense_attributes_are_what_h5py_says(tmp_path: Path, count: int) -> None:
    path = tmp_path / "dense.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(count):
            file.attrs[f"attribute {number}"] = np.arange(number % 50)
    found = compare(path)
    assert not found.differences
    assert found.counts["attributes"] == count


def test_a_large_attribute_is_a_huge_object(tmp_path: Path) -> None:
    path = tmp_path / "huge.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.attrs["large"] = np.arange(100_000)
        file.attrs["larger"] = np.arange(200_000)
    found = compare(path)
    assert not found.differences
    assert found.counts["attributes"] == 2


@pytest.mark.parametrize(
    "name",
    ["links_dense_deflated.h5", "links_huge_heap_objects.h5", "links_dense_huge_direct.h5", "links_dense_indirect.h5"],
)
def test_heaps_that_h5py_does_not_write_are_read_from_samples(name: str) -> None:
    path = SAMPLES / name
    found = compare(path)
    assert not found.differences
    assert not found.problems
    groups = [group for _, group in h5zarr.scan(str(path)).walk() if isinstance(group, Group)]
    assert max(len(group.links) for group in groups) > 1
