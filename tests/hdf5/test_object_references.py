from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.datatype import Reference, ReferenceKind
from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.numpy_values import ValueReader
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference, RegionReference
from h5zarr.hdf5.selection import AllSelection, RegularSelection
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, collection, padded, uint
from tests.truth.scan_against_h5py import compare

HEAP = 0x1000
ALL = struct.pack("<IIII", 3, 1, 0, 0)
OBJECT, REGION, OBJECT2, REGION2, ATTRIBUTE = ReferenceKind
EXTERNAL = 1


def read(
    kind: ReferenceKind, *elements: bytes, heap: dict[int, bytes] | None = None, sizes: Sizes | None = None
) -> Any:
    file = FakeFile({HEAP: collection(heap or {})}, sizes=sizes)
    datatype = Reference(nbytes=len(elements[0]), kind=kind)
    reader = ValueReader(file.sizes, GlobalHeap(file.sizes))
    found = run(reader.read(datatype, b"".join(elements), len(elements)), file.read_many)
    assert file.rounds == (heap is not None)
    return found.tolist()


def token(address: int) -> bytes:
    return b"\x08" + uint(address)


def inline(address: int) -> bytes:
    return padded(bytes((OBJECT2, 0)) + token(address), 18)


def in_heap(kind: int, flags: int, index: int, address: int = HEAP) -> bytes:
    """Return an element whose block is in the global heap: type, flags, size, heap ID."""
    return bytes((kind, flags)) + uint(0, 4) + uint(address) + uint(index, 4)


# --- as before HDF5 1.12


def test_an_object_reference_is_an_address() -> None:
    assert read(OBJECT, uint(0x800), uint(0), uint(UNDEFINED)) == [
        ObjectReference(0x800),
        ObjectReference(None),
        ObjectReference(None),
    ]


@pytest.mark.parametrize("width", [2, 4, 8])
def test_an_object_reference_has_the_file_s_width_and_base(width: int) -> None:
    found = read(OBJECT, uint(0x100, width), b"\xff" * width, sizes=Sizes(offset_nbytes=width, base=512))
    assert found == [ObjectReference(512 + 0x100), ObjectReference(None)]


def test_a_region_reference_is_in_the_heap() -> None:
    elements = [uint(HEAP) + uint(1, 4), bytes(12)]
    assert read(REGION, *elements, heap={1: uint(0x800) + ALL}) == [
        RegionReference(ObjectReference(0x800), AllSelection()),
        RegionReference(ObjectReference(None), None),
    ]


def test_a_region_that_the_heap_does_not_have_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="no object 2"):
        read(REGION, uint(HEAP) + uint(2, 4), heap={1: b""})


# --- since HDF5 1.12


def test_a_revised_object_reference_holds_its_token() -> None:
    assert read(OBJECT2, inline(0x800), bytes(18)) == [ObjectReference(0x800), ObjectReference(None)]


def test_a_revised_reference_to_another_file_names_it() -> None:
    block = token(0x800) + uint(8, 2) + b"other.h5"
    assert read(OBJECT2, in_heap(OBJECT2, EXTERNAL, 1), heap={1: block}) == [ObjectReference(0x800, "other.h5")]


def test_a_revised_region_reference_has_a_selection_of_stated_size_and_rank() -> None:
    block = token(0x800) + uint(len(ALL), 4) + uint(1, 4) + ALL
    found = read(REGION2, in_heap(REGION2, 0, 1), bytes(18), heap={1: block})
    assert found == [RegionReference(ObjectReference(0x800), AllSelection()), ObjectReference(None)]


def test_a_reference_to_an_attribute_has_its_name() -> None:
    block = token(0x800) + uint(5, 2) + b"units"
    assert read(ATTRIBUTE, in_heap(ATTRIBUTE, 0, 1), heap={1: block}) == [
        AttributeReference(ObjectReference(0x800), "units")
    ]
    block = token(0x800) + uint(8, 2) + b"other.h5" + uint(5, 2) + b"units"
    assert read(ATTRIBUTE, in_heap(ATTRIBUTE, EXTERNAL, 1), heap={1: block}) == [
        AttributeReference(ObjectReference(0x800, "other.h5"), "units")
    ]


def test_an_unknown_revised_type_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="reference has unknown type 9"):
        read(OBJECT2, in_heap(9, 0, 1), heap={1: token(0x800)})


@pytest.mark.parametrize("block", [b"", b"\x08\0\0", token(0x800), token(0x800) + uint(9, 2) + b"units"])
def test_a_revised_reference_cut_short_is_malformed(block: bytes) -> None:
    with pytest.raises(MalformedFile, match="inside a field"):
        read(ATTRIBUTE, in_heap(ATTRIBUTE, 0, 1), heap={1: block})


# --- a file


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_references_that_h5py_writes(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "references.h5"
    with h5py.File(path, "w", libver=libver) as file:
        target = file.create_dataset("group/target", data=np.arange(100).reshape(10, 10))
        objects = file.create_dataset("objects", (3,), h5py.ref_dtype)
        objects[0] = target.ref
        objects[2] = file["group"].ref
        regions = file.create_dataset("regions", (2,), h5py.regionref_dtype)
        regions[1] = target.regionref[2:8:3, 1:9]
        file.attrs["target"] = target.ref
        file.attrs["region"] = target.regionref[2:8:3, 1:9]
    found = compare(path)
    assert not found.differences
    assert found.counts["values"] == 3
    scanned = h5zarr.scan(str(path))
    reference = scanned.root.attributes["target"].value
    assert reference is not None
    assert scanned.path_of(reference[()]) == "/group/target"
    value = scanned.root.attributes["region"].value
    assert value is not None
    region = value[()]
    assert scanned.path_of(region.target) == "/group/target"
    selection = region.selection
    if isinstance(selection, RegularSelection):
        assert (selection.start, selection.stride, selection.count, selection.block) == ((2, 1), (3, 1), (2, 1), (1, 8))
    else:
        assert selection.first.tolist() == [[2, 1], [5, 1]]
        assert selection.last.tolist() == [[2, 8], [5, 8]]
