"""Messages for damage that only bytes made by hand have: what is wrong, with numbers, and where."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5 import file as file_module
from h5zarr.hdf5.chunks.chunk_index import find_grid
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.messages.layout import ChunkIndexMessage
from h5zarr.hdf5.model import Dataspace, IndexKind, SpaceKind
from h5zarr.hdf5.nodes import node_spans
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, header_v2, message_v2, superblock_v2, uint
from tests.hdf5.chunks.test_btree1 import key, node, read

FIRST, SECOND = (key(24, 0, 0, 0), 0x800), (key(24, 0, 3, 0), 0x800)


def test_a_file_without_a_root_group_says_why(tmp_path: Path) -> None:
    root = header_v2(message_v2(13, b"a comment"))
    (tmp_path / "a.h5").write_bytes(superblock_v2(end=48 + len(root)) + root)
    with pytest.raises(MalformedFile) as caught:
        h5zarr.scan(tmp_path / "a.h5")
    why = "object is neither a group nor a dataset nor a datatype (byte 0x30)"
    assert str(caught.value) == f"{tmp_path / 'a.h5'}: the root group cannot be read: {why}"


def test_paths_that_take_too_much_memory_are_malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["group/name"] = 3
    monkeypatch.setattr(file_module, "_PATHS_NBYTES", 10)
    with pytest.raises(MalformedFile, match="the paths of the file's objects take more than 10 bytes"):
        h5zarr.scan(tmp_path / "a.h5")


def test_chunks_that_no_file_could_hold_are_malformed() -> None:
    message = ChunkIndexMessage(chunk_shape=(1 << 62,), element_nbytes=4, kind=IndexKind.BTREE_V1, address=None)
    dataspace = Dataspace(SpaceKind.SIMPLE, (1 << 62,), (1 << 62,))
    with pytest.raises(MalformedFile, match=r"^a dataset has chunks of 18446744073709551616 bytes \(byte 0x40\)"):
        find_grid(message, dataspace, 0, Sizes(), 0x40)


def test_more_nodes_than_the_file_has_room_for_are_malformed() -> None:
    with pytest.raises(MalformedFile, match="3 B-tree nodes of 60 bytes exceed the size of the file"):
        node_spans(np.array([0, 10, 20]), 60, Sizes(end=100), "B-tree node")


def test_a_shared_message_in_an_unreadable_object_is_malformed() -> None:
    file = FakeFile({0x400: b"OHDR"}, nbytes=0x500)
    with pytest.raises(MalformedFile, match=r"^the object with the shared message cannot be read: "):
        run(SharedMessages(file.sizes).read(Kind.DATATYPE, b"\x03\x02" + uint(0x400)), file.read_many)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({0x100: node(1, (FIRST[0], 0x200), (SECOND[0], 0x200))}, "B-tree node is reached twice (byte 0x100)"),
        (
            {0x100: node(1, (FIRST[0], 0x200)), 0x200: node(1, FIRST)},
            r"B-tree node begins with b'TREE\x01\x01', expected b'TREE\x01\x00' (byte 0x200)",
        ),
        (
            {0x100: node(0, FIRST, SECOND)[:6] + uint(3, 2) + node(0, FIRST, SECOND)[8:]},
            "B-tree node has more than 2 entries (byte 0x100)",
        ),
        (
            {0x100: node(0, (key(24, 0, 1, 0), 0x800))},
            "B-tree has a chunk outside the grid of (3, 4) chunks (byte 0x100)",
        ),
    ],
)
def test_a_broken_tree_of_chunks_says_where(parts: dict[int, bytes], message: str) -> None:
    with pytest.raises(MalformedFile) as caught:
        read(parts)
    assert str(caught.value) == message
