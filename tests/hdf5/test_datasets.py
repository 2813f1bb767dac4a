from __future__ import annotations

import pytest

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datasets import read_dataset
from h5zarr.hdf5.header import Message, ObjectHeader
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import (
    CompactLayout,
    ContiguousLayout,
    Dataset,
    ExternalLayout,
    ExternalSegment,
    FillKind,
    Layout,
)
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, local_heap, uint

I4 = (Kind.DATATYPE, b"\x10\x08\0\0" + uint(4, 4) + uint(0, 2) + uint(32, 2))
SPACE = (Kind.DATASPACE, b"\x02\x01\0\x01" + uint(3))
NEW_FILL = (Kind.FILL_VALUE, b"\x02\x02\x02\x01" + uint(4, 4) + b"new!")
OLD_FILL = (Kind.FILL_VALUE_OLD, uint(4, 4) + b"old!")


def contiguous(address: int, nbytes: int) -> tuple[int, bytes]:
    return Kind.LAYOUT, b"\x03\x01" + uint(address) + uint(nbytes)


def chunked(*extents: int, address: int = UNDEFINED) -> tuple[int, bytes]:
    shape = b"".join(uint(extent, 4) for extent in extents)
    return Kind.LAYOUT, b"\x03\x02" + uint(len(extents), 1) + uint(address) + shape


def read(*messages: tuple[int, bytes], parts: dict[int, bytes] | None = None) -> Dataset:
    file = FakeFile(parts or {0: b""}, nbytes=0x1000)
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    found = tuple(Message(kind, 0, content, 0x50, None) for kind, content in messages)
    return run(read_dataset(ObjectHeader(0x40, found), context), file.read_many)(attributes={})


def layout(*messages: tuple[int, bytes]) -> Layout:
    return read(I4, SPACE, *messages).layout


@pytest.mark.parametrize(
    ("messages", "element"),
    [((OLD_FILL,), b"old!"), ((NEW_FILL,), b"new!"), ((OLD_FILL, NEW_FILL), b"new!"), ((), None)],
)
def test_the_new_fill_value_counts_where_there_are_both(
    messages: tuple[tuple[int, bytes], ...], element: bytes | None
) -> None:
    found = read(I4, SPACE, contiguous(0x800, 12), *messages)
    assert found.fill.element == element
    assert found.fill.kind is (FillKind.LIBRARY_DEFAULT if element is None else FillKind.USER_DEFINED)


@pytest.mark.parametrize(
    "message", [(Kind.FILL_VALUE_OLD, uint(2, 4) + b"ab"), (Kind.FILL_VALUE, NEW_FILL[1][:4] + uint(5, 4) + b"abcde")]
)
def test_a_fill_value_of_another_size_is_malformed(message: tuple[int, bytes]) -> None:
    with pytest.raises(MalformedFile, match="fill value has"):
        read(I4, SPACE, contiguous(0x800, 12), message)


def test_contiguous_data_has_the_size_of_its_extent() -> None:
    assert layout(contiguous(0x800, 12)) == ContiguousLayout(0x800, 12)
    assert layout(contiguous(0x800, 99)) == ContiguousLayout(0x800, 12)
    assert layout(contiguous(UNDEFINED, 0)) == ContiguousLayout(None, 12)
    old = (Kind.LAYOUT, b"\x01\x01\x01" + bytes(5) + uint(0x800) + uint(3, 4))
    assert layout(old) == ContiguousLayout(0x800, 12)


def test_compact_data_has_the_size_of_its_extent() -> None:
    assert layout((Kind.LAYOUT, b"\x03\0" + uint(12, 2) + bytes(12))) == CompactLayout(bytes(12))
    with pytest.raises(MalformedFile, match="compact data has 11 bytes, expected 12"):
        layout((Kind.LAYOUT, b"\x03\0" + uint(11, 2) + bytes(11)))


def test_external_segments_name_their_files_in_a_local_heap() -> None:
    external = (
        Kind.EXTERNAL_FILES,
        b"\x01\0\0\0" + uint(1, 2) + uint(1, 2) + uint(0x100) + uint(8) + uint(4) + uint(12),
    )
    parts = {0x100: local_heap(segment=0x200, nbytes=16), 0x200: bytes(8) + b"a.raw\0\0\0"}
    found = read(I4, SPACE, contiguous(UNDEFINED, 0), external, parts=parts)
    assert found.layout == ExternalLayout((ExternalSegment(file="a.raw", address=4, nbytes=12),))


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ((SPACE, contiguous(0x800, 12)), "object has no datatype message"),
        ((I4, contiguous(0x800, 12)), "object has no dataspace message"),
        ((I4, SPACE), "object has no layout message"),
        ((I4, SPACE, contiguous(0x800, 11)), "contiguous data has 11 bytes, expected 12"),
        ((I4, SPACE, contiguous(0xFF8, 12)), "outside the file"),
        ((I4, SPACE, chunked(2, 2, 4)), "a dataset of rank 1 has chunks"),
        ((I4, SPACE, chunked(2, 8)), "elements have 8 bytes, but the datatype has 4"),
        ((I4, SPACE, (Kind.LAYOUT, b"\x09")), r"unknown version 9 \(byte 0x50\)"),
        (((Kind.DATATYPE, b"\x10"), SPACE), r"datatype message ends .* \(byte 0x50\)"),
    ],
)
def test_a_dataset_whose_messages_do_not_fit_together_is_malformed(
    messages: tuple[tuple[int, bytes], ...], complaint: str
) -> None:
    with pytest.raises(H5ZarrError, match=complaint):
        read(*messages)
