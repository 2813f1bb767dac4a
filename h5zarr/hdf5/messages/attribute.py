"""The attribute message, and the one that says where else attributes are. Spec: IV.A.2.m and IV.A.2.v."""

from __future__ import annotations

import struct
from typing import NamedTuple

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.sizes import Sizes

_FIELDS = struct.Struct("<BBHHH")
_SHARED_DATATYPE, _SHARED_DATASPACE = 1, 2


class AttributeMessage(NamedTuple):
    """An attribute taken apart: its parts are still bytes, and two of them may be references to shared messages."""

    name: str
    datatype: bytes
    dataspace: bytes
    content: bytes
    datatype_is_shared: bool
    dataspace_is_shared: bool

    @property
    def is_shared_in_parts(self) -> bool:
        return self.datatype_is_shared or self.dataspace_is_shared


def decode_attribute(message: bytes) -> AttributeMessage:
    """Return the parts of a message of version 1, 2 or 3.

    The busiest decoder of a scan: it slices, and leaves type and extent to decoders that remember.
    """
    if len(message) < _FIELDS.size:
        raise MalformedFile("attribute message is cut short")
    version, flags, name_nbytes, datatype_nbytes, dataspace_nbytes = _FIELDS.unpack_from(message)
    start = _FIELDS.size
    if version == 1:
        flags = 0
        steps = (
            name_nbytes + -name_nbytes % 8,
            datatype_nbytes + -datatype_nbytes % 8,
            dataspace_nbytes + -dataspace_nbytes % 8,
        )
    elif version in (2, 3):
        start += version == 3  # the name's character set: names are UTF-8 in either
        steps = (name_nbytes, datatype_nbytes, dataspace_nbytes)
    else:
        raise MalformedFile(f"attribute message has unknown version {version}")
    datatype_at = start + steps[0]
    dataspace_at = datatype_at + steps[1]
    content_at = dataspace_at + steps[2]
    if content_at > len(message):
        raise MalformedFile("attribute message is shorter than its parts")
    return AttributeMessage(
        text(message[start : start + name_nbytes].partition(b"\0")[0]),
        message[datatype_at : datatype_at + datatype_nbytes],
        message[dataspace_at : dataspace_at + dataspace_nbytes],
        message[content_at:],
        bool(flags & _SHARED_DATATYPE),
        bool(flags & _SHARED_DATASPACE),
    )


class AttributeInfo(NamedTuple):
    """Where an object keeps its attributes when they are not in its header."""

    tracks_order: bool
    heap: int | None
    name_index: int | None


def decode_attribute_info(content: bytes, sizes: Sizes) -> AttributeInfo:
    cursor = Cursor(content, "attribute info message", sizes)
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"attribute info message has unknown version {version}")
    tracks_order = bool(cursor.u8() & 1)
    if tracks_order:
        cursor.skip(2)  # the largest creation order so far
    return AttributeInfo(tracks_order, cursor.address(), cursor.address())
