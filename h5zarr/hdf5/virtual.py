"""The mappings of a virtual dataset. Spec: III.F. Version 1 of the mapping block is new in HDF5 2.0."""

from __future__ import annotations

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.messages.layout import VirtualMessage
from h5zarr.hdf5.model import VirtualLayout, VirtualMapping
from h5zarr.hdf5.selection import decode_selection
from h5zarr.io.steps import Step

_FILE_SHARED, _DATASET_SHARED, _SAME_FILE = 1, 2, 4


def read_virtual(message: VirtualMessage, context: Context) -> Step[VirtualLayout]:
    """Return the mappings, which are stored in one object of the global heap."""
    if message.heap is None:
        return VirtualLayout(())
    yield from context.heap.read([message.heap])
    block = context.heap.object(message.heap, message.index)
    check_checksum(block, "block of virtual mappings", message.heap)
    cursor = Cursor(block[:-4], "block of virtual mappings", context.sizes)
    version, count = cursor.u8(), cursor.length()
    if version > 1:
        raise MalformedFile(f"block of virtual mappings has unknown version {version}", at=message.heap)
    if count > len(block):
        raise MalformedFile(f"block of virtual mappings is too small for {count} mappings", at=message.heap)
    mappings: list[VirtualMapping] = []
    for _ in range(count):
        flags = cursor.u8() if version == 1 else 0
        mappings.append(_mapping(cursor, flags, mappings))
    return VirtualLayout(tuple(mappings))


def _mapping(cursor: Cursor, flags: int, earlier: list[VirtualMapping]) -> VirtualMapping:
    """Return one mapping. In version 1, it may share names with an earlier one."""
    if flags & _SAME_FILE:
        file = "."
    elif flags & _FILE_SHARED:
        file = _shared(cursor, earlier).source_file
    else:
        file = text(cursor.terminated())
    dataset = _shared(cursor, earlier).source_dataset if flags & _DATASET_SHARED else text(cursor.terminated())
    return VirtualMapping(
        source_file=file,
        source_dataset=dataset,
        source_selection=decode_selection(cursor),
        virtual_selection=decode_selection(cursor),
    )


def _shared(cursor: Cursor, earlier: list[VirtualMapping]) -> VirtualMapping:
    number = cursor.length()
    if number >= len(earlier):
        raise MalformedFile(f"virtual mapping shares a name with mapping {number}, which does not precede it")
    return earlier[number]
