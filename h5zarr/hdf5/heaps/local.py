"""Local heaps: the link names of an old-style group. Spec: III.D."""

from __future__ import annotations

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import text
from h5zarr.hdf5.on_disk import U8, Address, Length, OnDisk, Reserved3, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step


@on_disk(b"HEAP")
class LocalHeapHeader(OnDisk):
    """Header of a local heap. Spec: III.D."""

    version: U8
    reserved: Reserved3
    segment_nbytes: Length
    free_list: Length
    segment: Address


class LocalHeap:
    """A segment of NUL-terminated names."""

    def __init__(self, segment: bytes, address: int) -> None:
        self._segment = segment
        self._address = address

    def name(self, position: int) -> str:
        """Return the name that starts `position` bytes into the segment."""
        end = self._segment.find(b"\0", position)
        if position >= len(self._segment) or end < 0:
            raise MalformedFile(f"local heap of {len(self._segment)} bytes has no name at {position}", at=self._address)
        return text(self._segment[position:end])


def read_local_heap(address: int, sizes: Sizes) -> Step[LocalHeap]:
    """Return the heap at `address` in two rounds."""
    (head,) = yield [LocalHeapHeader.span(address, sizes)]
    header = LocalHeapHeader.decode(head, sizes, at=address)
    if header.segment is None:
        raise MalformedFile("local heap has no data segment", at=address)
    (segment,) = yield [sizes.span(header.segment, header.segment_nbytes, "local heap data segment")]
    return LocalHeap(bytes(segment), header.segment)
