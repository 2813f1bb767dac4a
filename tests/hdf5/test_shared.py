from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.header import Message
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import CommittedDatatype
from h5zarr.hdf5.shared import SharedMessages, read_shared_messages
from h5zarr.io.steps import run
from tests.collections_of_files import SAMPLES
from tests.fake_file import UNDEFINED, FakeFile, header_v1, header_v2, message_v1, message_v2, uint, with_checksum
from tests.truth.scan_against_h5py import compare

COMMITTED = header_v2(message_v2(13, b"a comment"), message_v2(Kind.DATATYPE, b"datatype"))


def read(file: FakeFile, content: bytes, kind: Kind = Kind.DATATYPE, shared: SharedMessages | None = None) -> bytes:
    return run((shared or SharedMessages(file.sizes)).read(kind, content), file.read_many)


@pytest.mark.parametrize(
    "pointer",
    [
        b"\x02\x00" + uint(0x400),
        b"\x02\x02" + uint(0x400),
        b"\x03\x02" + uint(0x400),
    ],
)
def test_a_message_of_another_header_is_found_there(pointer: bytes) -> None:
    assert read(FakeFile({0x400: COMMITTED}), pointer) == b"datatype"


def test_the_first_version_points_with_a_symbol_table_entry() -> None:
    """Reserved bytes, then an entry: the place of a name in a heap, the address of the header, and its cache."""
    pointer = b"\x01\x00" + bytes(6) + uint(0) + uint(0x400) + bytes(24)
    assert read(FakeFile({0x400: COMMITTED}), pointer) == b"datatype"


def test_a_header_is_read_once_for_all_who_share_it() -> None:
    file = FakeFile({0x400: COMMITTED})
    shared = SharedMessages(file.sizes)
    for _ in range(3):
        assert read(file, b"\x03\x02" + uint(0x400), shared=shared) == b"datatype"
    assert file.rounds == 1


def test_other_kinds_are_looked_up_by_themselves() -> None:
    file = FakeFile({0x400: header_v1(message_v1(3, b"datatype"), message_v1(1, b"extents."))})
    shared = SharedMessages(file.sizes)
    assert read(file, b"\x02\x00" + uint(0x400), Kind.DATATYPE, shared) == b"datatype"
    assert read(file, b"\x02\x00" + uint(0x400), Kind.DATASPACE, shared) == b"extents."


@pytest.mark.parametrize(
    ("pointer", "complaint"),
    [
        (b"\x00\x00" + uint(0x400), "unknown version 0"),
        (b"\x04\x02" + uint(0x400), "unknown version 4"),
        (b"\x03\x00" + uint(0x400), "version 3 or type 0"),
        (b"\x03\x03" + uint(0x400), "version 3 or type 3"),
        (b"\x02\x00" + uint(UNDEFINED), "has no address"),
        (b"\x02\x00" + uint(0x400)[:-1], "inside a field"),
        (b"\x03\x01" + bytes(8), "no heap of shared datatype messages"),
        (b"\x02\x00" + uint(0x800), "datatype message does not have it"),
        (b"\x02\x00" + uint(0xC00), "datatype message does not have it"),
    ],
)
def test_a_pointer_to_nothing_is_malformed(pointer: bytes, complaint: str) -> None:
    file = FakeFile(
        {
            0x400: COMMITTED,
            0x800: header_v2(message_v2(13, b"a comment")),
            0xC00: header_v2(message_v2(Kind.DATATYPE, b"\x02\x00" + uint(0xC00), flags=2)),  # points on
        },
        nbytes=0x1000,
    )
    with pytest.raises(MalformedFile, match=complaint):
        read(file, pointer)


# --- the table of shared messages


def extension(content: bytes) -> tuple[Message, ...]:
    return (Message(Kind.SHARED_TABLE, 0, content, 0x50, None),)


def index(kinds: int, heap: int) -> bytes:
    return (
        bytes((0, 0)) + uint(kinds, 2) + uint(50, 4) + uint(50, 2) + uint(40, 2) + uint(0, 2) + uint(0x900) + uint(heap)
    )


def test_a_file_without_a_table_needs_no_round_for_it() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    run(read_shared_messages((), file.sizes), file.read_many)
    assert file.rounds == 0


def empty_heap() -> bytes:
    """Return the header of a fractal heap in which nothing is stored but what IDs hold themselves."""
    fields = struct.pack("<BHHBI", 0, 8, 0, 0, 1000) + 10 * uint(0) + uint(0) + uint(0)
    return with_checksum(
        b"FRHP" + fields + uint(4, 2) + uint(512) + uint(1024) + 2 * uint(16, 2) + uint(UNDEFINED) + uint(0, 2)
    )


def test_the_table_says_which_heap_has_which_kind() -> None:
    table = with_checksum(b"SMTB" + index(1 << Kind.DATASPACE, 0x800) + index(1 << Kind.DATATYPE, UNDEFINED))
    file = FakeFile({0x400: table, 0x800: empty_heap()}, nbytes=0x1000)
    shared = run(read_shared_messages(extension(b"\0" + uint(0x400) + b"\x02"), file.sizes), file.read_many)
    assert file.rounds == 2
    tiny = b"\x26extents"
    assert read(file, b"\x03\x01" + tiny, Kind.DATASPACE, shared) == b"extents"
    with pytest.raises(MalformedFile, match="no heap of shared datatype messages"):
        read(file, b"\x03\x01" + tiny, Kind.DATATYPE, shared)
    with pytest.raises(MalformedFile, match="no heap of shared attribute messages"):
        read(file, b"\x03\x01" + tiny, Kind.ATTRIBUTE, shared)


def test_an_old_fill_value_is_in_the_heap_of_fill_values() -> None:
    table = with_checksum(b"SMTB" + index(1 << Kind.FILL_VALUE, 0x800))
    file = FakeFile({0x400: table, 0x800: empty_heap()}, nbytes=0x1000)
    shared = run(read_shared_messages(extension(b"\0" + uint(0x400) + b"\x01"), file.sizes), file.read_many)
    for kind in (Kind.FILL_VALUE, Kind.FILL_VALUE_OLD):
        assert read(file, b"\x03\x01" + b"\x26a value", kind, shared) == b"a value"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\x01" + uint(0x400) + b"\x01", "shared message table message has version 1, the address 0x400"),
        (b"\x00" + uint(UNDEFINED) + b"\x01", "version 0, no address and 1 indexes"),
        (b"\x00" + uint(0x400) + b"\x09", "version 0, the address 0x400 and 9 indexes"),
        (b"\x00" + uint(0x400), "inside a field"),
        (b"\x00" + uint(0xFF0) + b"\x01", "outside the file"),
        (b"\x00" + uint(0x408) + b"\x01", "signature"),
        (b"\x00" + uint(0x400) + b"\x02", "fails its checksum"),
    ],
)
def test_a_broken_table_is_malformed(content: bytes, complaint: str) -> None:
    file = FakeFile({0x400: with_checksum(b"SMTB" + index(2, 0x800))}, nbytes=0x1000)
    with pytest.raises(MalformedFile, match=complaint):
        run(read_shared_messages(extension(content), file.sizes), file.read_many)


# --- files


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_committed_datatypes_of_datasets_and_attributes(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "committed.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["type"] = np.dtype([("a", "<i4"), ("b", "S5")])
        file["type"].attrs["of a type"] = 1
        file.create_dataset("data", data=np.array([(1, b"x")], file["type"].dtype), dtype=file["type"])
        file.attrs.create("attribute", np.array([(2, b"y")], file["type"].dtype), dtype=file["type"])
    found = compare(path)
    assert not found.differences
    assert (found.counts["values"], found.counts["attributes"]) == (1, 2)
    objects = dict(h5zarr.scan(str(path)).walk())
    committed = objects["/type"]
    assert isinstance(committed, CommittedDatatype)
    assert objects["/data"].datatype == committed.datatype  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["shared_messages_list.h5", "shared_messages_btree.h5", "shared_messages_dense_attributes.h5"]
)
def test_tables_that_h5py_does_not_write_are_read_from_samples(name: str) -> None:
    found = compare(SAMPLES / name)
    assert not found.differences
    assert not found.problems
    assert found.compared or found.counts["attributes"]
