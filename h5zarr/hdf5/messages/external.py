"""The external data files message. Spec: IV.A.2.h."""

from __future__ import annotations

from typing import NamedTuple

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.sizes import Sizes


class ExternalSlot(NamedTuple):
    """A segment of an external file, whose name is in a local heap. `nbytes` is None if the file is used to its end."""

    name_at: int
    address: int
    nbytes: int | None


class ExternalFiles(NamedTuple):
    heap: int
    slots: tuple[ExternalSlot, ...]


def decode_external_files(content: bytes, sizes: Sizes) -> ExternalFiles:
    cursor = Cursor(content, "external files message", sizes)
    if (version := cursor.u8()) != 1:
        raise MalformedFile(f"external files message has unknown version {version}")
    cursor.skip(3 + 2)  # reserved, allocated slots
    count = cursor.u16()
    heap = cursor.address()
    if heap is None:
        raise MalformedFile("external files message has no heap for the file names")
    unlimited = (1 << 8 * sizes.length_nbytes) - 1
    slots = []
    for _ in range(count):
        name_at, address, nbytes = cursor.length(), cursor.length(), cursor.length()
        slots.append(ExternalSlot(name_at, address, None if nbytes == unlimited else nbytes))
    return ExternalFiles(heap, tuple(slots))
