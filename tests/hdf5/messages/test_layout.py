from __future__ import annotations

import struct

import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.messages.layout import ChunkIndexMessage, VirtualMessage, decode_layout
from h5zarr.hdf5.model import CompactLayout, ContiguousLayout, IndexKind
from h5zarr.hdf5.sizes import Sizes
from tests.fake_file import UNDEFINED, uint

COMPACT, CONTIGUOUS, CHUNKED, VIRTUAL = range(4)


def old(
    version: int, code: int, rank: int, *, address: int | None, extents: tuple[int, ...], tail: bytes = b""
) -> bytes:
    """Return a message of version 1 or 2."""
    stored = b"" if address is None else uint(address)
    return bytes((version, rank, code)) + bytes(5) + stored + struct.pack(f"<{len(extents)}I", *extents) + tail


def chunked(
    version: int = 4,
    *,
    code: int = 3,
    flags: int = 0,
    shape: tuple[int, ...] = (10, 20, 4),
    width: int = 1,
    parameters: bytes = b"\x0a",
    address: int = 0x1000,
) -> bytes:
    """Return a chunked layout of version 4 or 5; the last extent is the size of an element."""
    extents = b"".join(uint(extent, width) for extent in shape)
    return bytes((version, CHUNKED, flags, len(shape), width)) + extents + bytes((code,)) + parameters + uint(address)


@pytest.mark.parametrize("version", [1, 2])
def test_old_compact_data_follows_its_extents(version: int) -> None:
    message = old(version, COMPACT, 2, address=None, extents=(2, 3), tail=uint(6, 4) + b"abcdef" + b"padding")
    assert decode_layout(message, Sizes()) == CompactLayout(b"abcdef")


@pytest.mark.parametrize("version", [1, 2])
def test_old_contiguous_data_has_no_size_of_its_own(version: int) -> None:
    message = old(version, CONTIGUOUS, 2, address=0x800, extents=(2, 3))
    assert decode_layout(message, Sizes(base=512)) == ContiguousLayout(512 + 0x800, -1)


@pytest.mark.parametrize("version", [1, 2])
def test_old_chunks_are_in_a_version_1_tree(version: int) -> None:
    message = old(version, CHUNKED, 3, address=0x800, extents=(10, 20, 8))
    assert decode_layout(message, Sizes()) == ChunkIndexMessage(
        chunk_shape=(10, 20), element_nbytes=8, kind=IndexKind.BTREE_V1, address=0x800
    )


def test_old_layouts_of_other_classes_are_malformed() -> None:
    with pytest.raises(MalformedFile, match="unknown class 3"):
        decode_layout(old(1, VIRTUAL, 1, address=0x800, extents=(1,)), Sizes())


@pytest.mark.parametrize("version", [3, 4, 5])
def test_compact_and_contiguous_data_are_alike_since_version_3(version: int) -> None:
    assert decode_layout(bytes((version, COMPACT)) + uint(3, 2) + b"abc", Sizes()) == CompactLayout(b"abc")
    contiguous = bytes((version, CONTIGUOUS)) + uint(0x800) + uint(24)
    assert decode_layout(contiguous, Sizes()) == ContiguousLayout(0x800, 24)
    nowhere = bytes((version, CONTIGUOUS)) + uint(UNDEFINED) + uint(0)
    assert decode_layout(nowhere, Sizes()) == ContiguousLayout(None, 0)


def test_addresses_and_lengths_have_the_file_s_widths() -> None:
    message = bytes((3, CONTIGUOUS)) + uint(0x800, 4) + uint(24, 2)
    assert decode_layout(message, Sizes(offset_nbytes=4, length_nbytes=2)) == ContiguousLayout(0x800, 24)


def test_chunks_of_version_3_are_in_a_version_1_tree() -> None:
    message = bytes((3, CHUNKED, 3)) + uint(UNDEFINED) + struct.pack("<3I", 10, 20, 8)
    assert decode_layout(message, Sizes()) == ChunkIndexMessage(
        chunk_shape=(10, 20), element_nbytes=8, kind=IndexKind.BTREE_V1, address=None
    )


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("code", "parameters", "kind"),
    [
        (1, b"", IndexKind.SINGLE),
        (2, b"", IndexKind.IMPLICIT),
        (3, b"\x0a", IndexKind.FIXED_ARRAY),
        (4, b"\x20\x04\x04\x10\x0a", IndexKind.EXTENSIBLE_ARRAY),
        (5, uint(2048, 4) + b"\x64\x28", IndexKind.BTREE_V2),
    ],
)
def test_every_index_of_version_4(version: int, code: int, parameters: bytes, kind: IndexKind) -> None:
    found = decode_layout(chunked(version, code=code, parameters=parameters), Sizes(base=512))
    assert found == ChunkIndexMessage(chunk_shape=(10, 20), element_nbytes=4, kind=kind, address=512 + 0x1000)


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_extents_of_version_4_have_a_width_of_their_own(width: int) -> None:
    found = decode_layout(chunked(width=width, shape=(200, 3, 4)), Sizes())
    assert isinstance(found, ChunkIndexMessage)
    assert (found.chunk_shape, found.element_nbytes) == ((200, 3), 4)


def test_a_filtered_single_chunk_has_its_size_and_mask_in_the_message() -> None:
    found = decode_layout(chunked(code=1, flags=2, parameters=uint(123) + uint(5, 4)), Sizes())
    assert isinstance(found, ChunkIndexMessage)
    assert (found.kind, found.single_nbytes, found.single_mask) == (IndexKind.SINGLE, 123, 5)
    assert found.address == 0x1000


def test_edges_may_be_left_unfiltered() -> None:
    found = decode_layout(chunked(flags=1), Sizes())
    assert isinstance(found, ChunkIndexMessage)
    assert found.edge_chunks_unfiltered


def test_virtual_datasets_point_to_the_global_heap() -> None:
    assert decode_layout(bytes((4, VIRTUAL)) + uint(0x1000) + uint(7, 4), Sizes()) == VirtualMessage(0x1000, 7)
    assert decode_layout(bytes((4, VIRTUAL)) + uint(UNDEFINED) + uint(0, 4), Sizes()) == VirtualMessage(None, 0)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (bytes((3, VIRTUAL)) + bytes(20), "layout class 3 in a layout message of version 3"),
        (bytes((4, 4)) + bytes(20), "layout class 4 in a layout message of version 4"),
        (chunked(code=6), "chunk index type 6 does not exist in HDF5 2.0"),
        (chunked(code=0), "chunk index type 0 does not exist in HDF5 2.0"),
        (chunked(flags=4), "chunked layout has unknown flags 0x4"),
    ],
)
def test_what_is_not_known_is_unsupported(message: bytes, complaint: str) -> None:
    with pytest.raises(Unsupported, match=complaint):
        decode_layout(message, Sizes())


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (bytes((0,)) + bytes(20), "unknown version 0"),
        (bytes((6,)) + bytes(20), "unknown version 6"),
        (chunked(shape=(4,)), "chunks of shape"),
        (chunked(shape=(10, 0, 4)), "chunks of shape"),
        (chunked(shape=(10, 20, 0)), "chunks of shape"),
        (chunked(shape=(1,) * 34), "layout message has rank 34, but at most 33 is allowed"),
        (bytes((4, CHUNKED, 0, 1, 0, 3)) + bytes(20), "chunked layout has extents of 0 bytes"),
        (bytes((4, CHUNKED, 0, 1, 9, 3)) + bytes(20), "chunked layout has extents of 9 bytes, expected 1 to 8"),
    ],
)
def test_an_impossible_layout_is_malformed(message: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        decode_layout(message, Sizes())


@pytest.mark.parametrize(
    "message",
    [
        old(1, COMPACT, 2, address=None, extents=(2, 3), tail=uint(6, 4) + b"abcdef"),
        old(2, CHUNKED, 3, address=0x800, extents=(10, 20, 8)),
        bytes((3, COMPACT)) + uint(3, 2) + b"abc",
        bytes((3, CONTIGUOUS)) + uint(0x800) + uint(24),
        bytes((3, CHUNKED, 3)) + uint(0x800) + struct.pack("<3I", 10, 20, 8),
        chunked(),
        chunked(code=1, flags=2, parameters=uint(123) + uint(5, 4)),
        bytes((4, VIRTUAL)) + uint(0x1000) + uint(7, 4),
    ],
)
def test_a_message_cut_short_anywhere_is_malformed(message: bytes) -> None:
    decode_layout(message, Sizes())
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_layout(message[:nbytes], Sizes())
