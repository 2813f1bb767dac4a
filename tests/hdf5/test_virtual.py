from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.messages.layout import VirtualMessage
from h5zarr.hdf5.model import Dataset, VirtualLayout
from h5zarr.hdf5.selection import AllSelection, NoneSelection, RegularSelection
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.virtual import read_virtual
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, collection, uint, with_checksum
from tests.truth.scan_against_h5py import compare

HEAP = 0x1000
ALL, NONE = struct.pack("<IIII", 3, 1, 0, 0), struct.pack("<IIII", 0, 1, 0, 0)
FILE_SHARED, DATASET_SHARED, SAME_FILE = 1, 2, 4


def block(version: int, *mappings: bytes, count: int | None = None) -> bytes:
    return with_checksum(bytes((version,)) + uint(len(mappings) if count is None else count) + b"".join(mappings))


def read(content: bytes) -> VirtualLayout:
    file = FakeFile({HEAP: collection({3: content})})
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    found = run(read_virtual(VirtualMessage(HEAP, 3), context), file.read_many)
    assert file.rounds == 1
    return found


def names(layout: VirtualLayout) -> list[tuple[str, str]]:
    return [(one.source_file, one.source_dataset) for one in layout.mappings]


def test_a_virtual_dataset_may_have_no_mappings() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    assert run(read_virtual(VirtualMessage(None, 0), context), file.read_many) == VirtualLayout(())
    assert read(block(0)) == VirtualLayout(())


def test_mappings_have_a_file_a_dataset_and_two_selections() -> None:
    found = read(block(0, b"a.h5\0/x\0" + ALL + NONE, "ä.h5\0/y\0".encode() + NONE + ALL))
    assert names(found) == [("a.h5", "/x"), ("ä.h5", "/y")]
    assert [one.source_selection for one in found.mappings] == [AllSelection(), NoneSelection()]
    assert [one.virtual_selection for one in found.mappings] == [NoneSelection(), AllSelection()]


def test_mappings_of_version_1_may_share_their_names() -> None:
    found = read(
        block(
            1,
            b"\0a.h5\0/x\0" + ALL + ALL,
            bytes((FILE_SHARED,)) + uint(0) + b"/y\0" + ALL + ALL,
            bytes((DATASET_SHARED,)) + b"b.h5\0" + uint(1) + ALL + ALL,
            bytes((FILE_SHARED | DATASET_SHARED,)) + uint(2) + uint(0) + ALL + ALL,
            bytes((SAME_FILE,)) + b"/z\0" + ALL + ALL,
        )
    )
    assert names(found) == [("a.h5", "/x"), ("a.h5", "/y"), ("b.h5", "/y"), ("b.h5", "/x"), (".", "/z")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (block(2), "unknown version 2"),
        (block(0, count=1 << 40), "too small for 1099511627776 mappings"),
        (block(0, b"a.h5\0/x\0" + ALL), "inside a field"),
        (block(0, b"a.h5\0/x"), "unterminated name"),
        (block(1, bytes((FILE_SHARED,)) + uint(0) + b"/y\0" + ALL + ALL), "does not precede it"),
        (block(0)[:-1] + b"\0", "fails its checksum"),
    ],
)
def test_a_broken_block_of_mappings_is_malformed(content: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        read(content)


@pytest.mark.parametrize("libver", ["v110", "latest"])
@pytest.mark.parametrize("unlimited", [False, True])
def test_mappings_that_h5py_writes(tmp_path: Path, libver: str, unlimited: bool) -> None:
    path = tmp_path / "virtual.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["source"] = np.arange(20)
        layout = h5py.VirtualLayout((6, 20), "i8", maxshape=(None, 20) if unlimited else None)
        for row in range(3):
            layout[2 * row] = h5py.VirtualSource(file["source"]) if row else h5py.VirtualSource("a.h5", "/x", (20,))
        layout[1, 3:17:2] = h5py.VirtualSource("b.h5", "/y", (50,))[1:50:7]
        file.create_virtual_dataset("virtual", layout, fillvalue=-5)
    found = compare(path)
    assert not found.differences
    dataset = dict(h5zarr.scan(str(path)).walk())["/virtual"]
    assert isinstance(dataset, Dataset)
    assert isinstance(dataset.layout, VirtualLayout)
    assert names(dataset.layout) == [("a.h5", "/x"), (".", "/source"), (".", "/source"), ("b.h5", "/y")]
    last = dataset.layout.mappings[-1]
    assert last.source_selection == RegularSelection(start=(1,), stride=(7,), count=(7,), block=(1,))
    assert last.virtual_selection == RegularSelection(start=(1, 3), stride=(1, 2), count=(1, 7), block=(1, 1))
