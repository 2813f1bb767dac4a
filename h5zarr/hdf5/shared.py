"""Shared messages: committed datatypes and the shared message table. Spec: IV.A.2 and III.I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.header import Message, ObjectHeader, read_object_header
from h5zarr.hdf5.heaps.fractal import HeapBlocks, read_heap
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.on_disk import check_signature
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step, attempt, together

_IN_HEAP, _IN_HEADER = 1, 2
_HEAP_ID_NBYTES = 8
_MAX_INDEXES = 8


class _SharedIndex(NamedTuple):
    """An index of the table. Bit n of `kinds` is set if it holds messages of type n.

    The specification numbers the bits from 0. The HDF5 library uses the message type as bit number.
    """

    kinds: int
    heap: int | None


class SharedMessages:
    """Reads the content of messages that are stored elsewhere."""

    def __init__(self, sizes: Sizes, heaps: Sequence[tuple[int, HeapBlocks]] = ()) -> None:
        """`heaps` are the file's heaps of shared messages, each with a bit mask of the message kinds in it."""
        self._sizes = sizes
        self._heaps = heaps
        self._committed: dict[int, ObjectHeader | H5ZarrError | None] = {}  # None while it is being read

    def read(self, kind: Kind, content: bytes) -> Step[bytes]:
        """Return the message of this kind that `content` refers to."""
        cursor = Cursor(content, "shared message", self._sizes)
        version, where = cursor.u8(), cursor.u8()
        if version == 3 and where == _IN_HEAP:
            return (yield from self._read_from_heap(kind, cursor.take(_HEAP_ID_NBYTES)))
        if version == 1:
            cursor.skip(6 + self._sizes.length_nbytes)  # reserved, and the position of a name in a heap
        elif version not in (2, 3) or (version == 3 and where != _IN_HEADER):
            raise MalformedFile(f"shared message has unknown version {version} or type {where}")
        if (address := cursor.address()) is None:
            raise MalformedFile("shared message has no address")
        return (yield from self._read_from_header(kind, address))

    def _read_from_header(self, kind: Kind, address: int) -> Step[bytes]:
        while (header := self._committed.get(address)) is None:
            if address in self._committed:  # another step is reading it: wait for the next round
                yield [self._sizes.span(address, 1, "object header")]
                continue
            self._committed[address] = None
            try:
                self._committed[address] = yield from attempt(read_object_header(address, self._sizes))
            finally:
                if self._committed[address] is None:  # this step was cancelled: another one must read it
                    del self._committed[address]
        if isinstance(header, H5ZarrError):
            raise MalformedFile(f"the object with the shared message cannot be read: {header}")
        message = header.first(kind)
        if message is None or message.is_shared:
            raise MalformedFile(f"the object with a shared {kind.name.lower()} message does not have it", at=address)
        return message.content

    def _read_from_heap(self, kind: Kind, heap_id: bytes) -> Step[bytes]:
        bit = Kind.FILL_VALUE if kind is Kind.FILL_VALUE_OLD else kind
        for kinds, heap in self._heaps:
            if kinds >> bit & 1:
                (found,) = yield from heap.read([heap_id])
                return found
        raise MalformedFile(f"the file has no heap of shared {kind.name.lower()} messages")


def read_shared_messages(extension: tuple[Message, ...], sizes: Sizes) -> Step[SharedMessages]:
    """Return the file's shared messages, as listed in the superblock extension. Spec: III.I."""
    message = next((message for message in extension if message.kind == Kind.SHARED_TABLE), None)
    if message is None:
        return SharedMessages(sizes)
    cursor = Cursor(message.content, "shared message table message", sizes)
    version, address, count = cursor.u8(), cursor.address(), cursor.u8()
    if version != 0 or address is None or count > _MAX_INDEXES:
        shown = "no address" if address is None else f"the address {address:#x}"
        what = f"shared message table message has version {version}, {shown} and {count} indexes"
        raise MalformedFile(what, at=message.address)
    nbytes = 4 + count * (14 + 2 * sizes.offset_nbytes) + 4
    (table,) = yield [sizes.span(address, nbytes, "shared message table")]
    check_signature(table, b"SMTB", "shared message table", address)
    check_checksum(table, "shared message table", address)
    cursor = Cursor(bytes(table), "shared message table", sizes)
    cursor.skip(4)
    indexes = [_index(cursor) for _ in range(count)]
    used = [(index.kinds, index.heap) for index in indexes if index.heap is not None]
    heaps = yield from together([read_heap(heap, sizes) for _, heap in used])
    return SharedMessages(sizes, [(kinds, heap) for (kinds, _), heap in zip(used, heaps, strict=True)])


def _index(cursor: Cursor) -> _SharedIndex:
    cursor.skip(2)  # version, and whether it is a list or a B-tree; neither is needed to find a message
    kinds = cursor.u16()
    cursor.skip(4 + 2 + 2 + 2)  # least size, cutoffs, number of messages
    cursor.address()  # the list or B-tree
    return _SharedIndex(kinds, cursor.address())
