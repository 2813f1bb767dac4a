"""Decode references to objects, regions and attributes. Spec: VIII.B and VIII.C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.datatype import Reference, ReferenceKind
from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.selection import Selection, decode_selection
from h5zarr.hdf5.sizes import Sizes


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to an object in this file or in `file`. `address` is None for a null reference.

    `H5File.path_of` returns the path.
    """

    address: int | None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class RegionReference:
    """A reference to a selection of a dataset."""

    target: ObjectReference
    selection: Selection | None


@dataclass(frozen=True, slots=True)
class AttributeReference:
    """A reference to an attribute of an object."""

    target: ObjectReference
    name: str


_EXTERNAL = 0x01
_NOWHERE = ObjectReference(None)


def decode_references(datatype: Reference, raw: bytes, count: int, sizes: Sizes, heap: GlobalHeap) -> npt.NDArray[Any]:
    """Return references as objects. Only references to regions, attributes and other files need the global heap."""
    elements = [raw[start : start + datatype.nbytes] for start in range(0, count * datatype.nbytes, datatype.nbytes)]
    values = np.empty(count, object)
    if datatype.kind is ReferenceKind.OBJECT:
        values[:] = [_object(element, sizes) for element in elements]
        return values
    if datatype.kind is ReferenceKind.REGION:
        blocks = _blocks([_heap_id(element, sizes) for element in elements], heap)
        values[:] = [_old_region(block, sizes) for block in blocks]
        return values
    is_inline = [_is_inline(element) for element in elements]
    ids = [
        None if inline else _heap_id(element[6:], sizes) for element, inline in zip(elements, is_inline, strict=True)
    ]
    for number, (element, block) in enumerate(zip(elements, _blocks(ids, heap), strict=True)):
        values[number] = _revised(element, element[2:] if is_inline[number] else block, sizes)
    return values


def _object(element: bytes, sizes: Sizes) -> ObjectReference:
    """Return an object reference. Zero (the superblock's address) and the undefined address are null references."""
    stored = int.from_bytes(element[: sizes.offset_nbytes], "little")
    return ObjectReference(sizes.address(stored)) if stored else _NOWHERE


def _heap_id(element: bytes, sizes: Sizes) -> tuple[int, int] | None:
    """Return the collection address and object index, or None for a null reference."""
    stored = int.from_bytes(element[: sizes.offset_nbytes], "little")
    address = sizes.address(stored) if stored else None
    index = int.from_bytes(element[sizes.offset_nbytes : sizes.offset_nbytes + 4], "little")
    return None if address is None else (address, index)


def _blocks(ids: list[tuple[int, int] | None], heap: GlobalHeap) -> list[bytes | None]:
    heap.require(found[0] for found in ids if found is not None)
    return [None if found is None else heap.object(*found) for found in ids]


def _old_region(block: bytes | None, sizes: Sizes) -> RegionReference:
    if block is None:
        return RegionReference(_NOWHERE, None)
    cursor = Cursor(block, "region reference", sizes)
    return RegionReference(ObjectReference(cursor.address()), decode_selection(cursor))


def _is_inline(element: bytes) -> bool:
    """Return whether this is an object reference within the file, which is stored inline."""
    return element[0] == ReferenceKind.OBJECT2 and not element[1] & _EXTERNAL


def _revised(
    element: bytes, block: bytes | None, sizes: Sizes
) -> ObjectReference | RegionReference | AttributeReference:
    """Return a reference of HDF5 1.12 or later. Its content is stored inline or in the heap. Spec: VIII.B."""
    kind, flags = element[0], element[1]
    if not any(element) or block is None:
        return _NOWHERE
    cursor = Cursor(block, "reference", sizes)
    token = cursor.take(cursor.u8())
    address = sizes.address(int.from_bytes(token[: sizes.offset_nbytes], "little"))
    file = text(cursor.take(cursor.u16())) if flags & _EXTERNAL else None
    target = ObjectReference(address, file)
    if kind == ReferenceKind.REGION2:
        cursor.skip(4 + 4)  # size and rank of the selection
        return RegionReference(target, decode_selection(cursor))
    if kind == ReferenceKind.ATTRIBUTE:
        return AttributeReference(target, text(cursor.take(cursor.u16())))
    if kind != ReferenceKind.OBJECT2:
        raise MalformedFile(f"reference has unknown type {kind}")
    return target
