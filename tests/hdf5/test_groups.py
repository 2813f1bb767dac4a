from __future__ import annotations

from pathlib import Path

import h5py
import pytest

import h5zarr
from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.groups import read_links
from h5zarr.hdf5.header import Message, ObjectHeader
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import ExternalLink, Group, HardLink, Link, SoftLink
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import (
    UNDEFINED,
    FakeFile,
    btree1_node,
    btree2_header,
    header_v2,
    local_heap,
    message_v2,
    superblock_v2,
    uint,
)
from tests.truth.scan_against_h5py import compare

NAMES = b"\0" * 8 + b"alpha\0\0\0" + b"beta\0\0\0\0" + b"/alpha\0\0"
CAPACITY = 32  # twice the default rank of group nodes


def entry(name_at: int, address: int, cache: int = 0, target_at: int = 0, offset_nbytes: int = 8) -> bytes:
    scratch = uint(target_at, 4) + bytes(12)
    return uint(name_at) + uint(address, offset_nbytes) + uint(cache, 4) + bytes(4) + scratch


def symbol_node(*entries: bytes, count: int | None = None) -> bytes:
    count = len(entries) if count is None else count
    return b"SNOD\x01\0" + uint(count, 2) + b"".join(entries)


def tree(*children: int) -> bytes:
    pairs = [(uint(0), child) for child in children]
    return btree1_node(node_type=0, level=0, entries=pairs, capacity=CAPACITY, last_key=uint(0))


def group(parts: dict[int, bytes], sizes: Sizes | None = None) -> FakeFile:
    heap = {0x100: local_heap(segment=0x200, nbytes=len(NAMES)), 0x200: NAMES}
    return FakeFile({**heap, **parts}, nbytes=0x4000, sizes=sizes)


def header(*messages: tuple[int, bytes]) -> ObjectHeader:
    return ObjectHeader(0x40, tuple(Message(kind, 0, content, 0x50, None) for kind, content in messages))


def read(file: FakeFile, *messages: tuple[int, bytes]) -> tuple[list[Link], list[H5ZarrError]]:
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    return run(read_links(header(*messages), context), file.read_many)


SYMBOL_TABLE = (Kind.SYMBOL_TABLE, uint(0x400) + uint(0x100))


def test_a_symbol_table_gives_hard_and_soft_links() -> None:
    node = symbol_node(entry(8, 0x1234), entry(16, UNDEFINED, cache=2, target_at=24))
    file = group({0x400: tree(0x1000), 0x1000: node})
    assert read(file, SYMBOL_TABLE) == ([HardLink("alpha", 0x1234), SoftLink("beta", "/alpha")], [])
    assert file.rounds == 2  # heap and tree, then the heap's segment and the tree's nodes


def test_the_cached_type_of_a_group_entry_does_not_matter() -> None:
    file = group({0x400: tree(0x1000), 0x1000: symbol_node(entry(8, 0x1234, cache=1, target_at=0x600))})
    assert read(file, SYMBOL_TABLE)[0] == [HardLink("alpha", 0x1234)]


def test_the_entries_of_several_nodes_follow_one_another() -> None:
    nodes = {0x1000: symbol_node(entry(8, 0x1234)), 0x2000: symbol_node(entry(16, 0x5678))}
    file = group({0x400: tree(0x1000, 0x2000), **nodes})
    assert [link.name for link in read(file, SYMBOL_TABLE)[0]] == ["alpha", "beta"]


def test_an_empty_symbol_table_has_no_links() -> None:
    assert read(group({0x400: tree()}), SYMBOL_TABLE) == ([], [])


def test_the_last_node_of_a_file_may_be_stored_without_its_unused_entries() -> None:
    parts = {
        0x100: local_heap(segment=0x200, nbytes=len(NAMES)),
        0x200: NAMES,
        0x400: tree(0x1000),
        0x1000: symbol_node(entry(8, 0x1234)),
    }
    file = FakeFile(parts)
    assert read(file, SYMBOL_TABLE)[0] == [HardLink("alpha", 0x1234)]


@pytest.mark.parametrize(
    ("node", "complaint"),
    [
        (b"SNOX\x01\0\1\0", "symbol table node begins with"),
        (b"SNOD\x02\0\1\0", "symbol table node begins with"),
        (symbol_node(entry(8, 0x1234), count=9), "more entries than it can hold"),
    ],
)
def test_a_broken_symbol_table_node_is_malformed(node: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint) as caught:
        read(group({0x400: tree(0x1000), 0x1000: node}), SYMBOL_TABLE)
    assert caught.value.address == 0x1000


def test_a_node_that_is_reached_twice_is_malformed() -> None:
    file = group({0x400: tree(0x1000, 0x1000), 0x1000: symbol_node(entry(8, 0x1234))})
    with pytest.raises(MalformedFile, match="symbol table node is reached twice"):
        read(file, SYMBOL_TABLE)


def test_a_symbol_table_belongs_to_one_group() -> None:
    file = group({0x400: tree(0x1000), 0x1000: symbol_node(entry(8, 0x1234))})
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    assert len(run(read_links(header(SYMBOL_TABLE), context), file.read_many)[0]) == 1
    other = ObjectHeader(0x999, header(SYMBOL_TABLE).messages)
    with pytest.raises(MalformedFile, match="symbol table belongs to more than one object"):
        run(read_links(other, context), file.read_many)


def test_a_broken_entry_leaves_the_others_whole() -> None:
    node = symbol_node(entry(8, UNDEFINED), entry(999, 0x1), entry(16, 0x5678))
    links, errors = read(group({0x400: tree(0x1000), 0x1000: node}), SYMBOL_TABLE)
    assert links == [HardLink("beta", 0x5678)]
    assert [str(error) for error in errors] == [
        "symbol table entry 'alpha' has no address",
        "local heap of 32 bytes has no name at 999 (byte 0x200)",
    ]


def link_message(name: bytes, address: int) -> tuple[int, bytes]:
    return Kind.LINK, b"\x01\x00" + uint(len(name), 1) + name + uint(address)


def test_links_of_a_header_need_no_round() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    assert read(file, link_message(b"a", 0x10), link_message(b"b", 0x20)) == (
        [HardLink("a", 0x10), HardLink("b", 0x20)],
        [],
    )
    assert file.rounds == 0


def test_a_broken_link_message_leaves_the_others_whole() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    links, errors = read(file, (Kind.LINK, b"\x09\x00"), link_message(b"b", 0x20))
    assert links == [HardLink("b", 0x20)]
    assert [str(error) for error in errors] == ["link message has unknown version 9"]


def test_link_info_without_a_heap_means_that_all_links_are_in_the_header() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    info = (Kind.LINK_INFO, b"\0\0" + uint(UNDEFINED) + uint(UNDEFINED))
    assert read(file, info, link_message(b"b", 0x20))[0] == [HardLink("b", 0x20)]


def test_an_index_of_another_type_is_malformed() -> None:
    index = btree2_header(kind=8, root=None, root_count=0, total_count=0, record_nbytes=11)
    file = FakeFile({0x100: index}, nbytes=0x1000)
    with pytest.raises(MalformedFile):
        read(file, (Kind.LINK_INFO, b"\0\0" + uint(0x100) + uint(0x100)))


# --- whole groups


def write_links(path: Path, count: int, libver: str, track_order: bool) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        group = file.create_group("g", track_order=track_order)
        for number in range(count):
            group[f"soft {number:04}"] = h5py.SoftLink(f"/target {number}")
        group["external"] = h5py.ExternalLink("other.h5", "/there")
        group["hard"] = group


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("track_order", [False, True])
@pytest.mark.parametrize("count", [0, 5, 30, 400])
def test_links_of_every_storage_are_what_h5py_says(tmp_path: Path, libver: str, track_order: bool, count: int) -> None:
    """Header, symbol tables of one and two levels, and heaps with direct and indirect roots."""
    path = tmp_path / "links.h5"
    write_links(path, count, libver=libver, track_order=track_order)
    found = compare(path)
    assert not found.differences
    assert not found.problems
    group = dict(h5zarr.scan(str(path)).walk())["/g"]
    assert isinstance(group, Group)
    assert len(group.links) == count + 2
    assert group.links["external"] == ExternalLink(
        "external", "other.h5", "/there", group.links["external"].creation_order
    )
    assert isinstance(group.links["hard"], HardLink)
    assert group.links["hard"].address == group.address
    if count:
        assert isinstance(group.links["soft 0000"], SoftLink)
        assert group.links["soft 0000"].target == "/target 0"
    assert group.tracks_order == track_order
    orders = [link.creation_order for link in group.links.values()]
    if track_order:
        assert sorted(orders) == list(range(count + 2))
    else:
        assert set(orders) == {None}


@pytest.mark.parametrize(("count", "listed"), [(20, 20), (21, 20)])
def test_only_the_first_broken_links_of_a_group_are_listed(tmp_path: Path, count: int, listed: int) -> None:
    info = message_v2(Kind.LINK_INFO, b"\0\0" + 2 * uint(UNDEFINED))
    root = header_v2(info, *(message_v2(Kind.LINK, b"\x09") for _ in range(count)), flags=1)
    path = tmp_path / "links.h5"
    path.write_bytes(superblock_v2(end=48 + len(root)) + root)
    problems = [problem.message for problem in h5zarr.scan(path).problems]
    assert problems[:listed] == ["link message has unknown version 9"] * listed
    more = ["21 links in this group are broken; only the first 20 are listed"]
    assert problems[listed:] == (more if count > listed else [])
