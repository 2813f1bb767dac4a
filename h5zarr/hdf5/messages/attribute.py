"""The attribute message, and the attribute info message, which locates dense attributes. Spec: IV.A.2.m, IV.A.2.v."""

from __future__ import annotations

import struct
from typing import NamedTuple

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.sizes import Sizes

_FIELDS = struct.Struct("<BBHHH")
_SHARED_DATATYPE, _SHARED_DATASPACE = 1, 2


class AttributeMessage(NamedTuple):
    """The parts of an attribute message, still encoded. Datatype and dataspace may be references to shared messages."""

    name: str
    datatype: bytes
    dataspace: bytes
    content: bytes
    datatype_is_shared: bool
    dataspace_is_shared: bool

    @property
    def is_shared_in_parts(self) -> bool:
        return self.datatype_is_shared or self.dataspace_is_shared


def value_start(message: bytes) -> int:
    """Return where the value starts.

    The bytes before it are equal for attributes with the same name, type and shape.
    """
    return _starts(message)[3]


def _starts(message: bytes) -> tuple[int, int, int, int]:
    """Return where name, datatype, dataspace and value start in a message of version 1, 2 or 3."""
    if len(message) < _FIELDS.size:
        raise MalformedFile("attribute message is truncated")
    version, _, name_nbytes, datatype_nbytes, dataspace_nbytes = _FIELDS.unpack_from(message)
    name_at = _FIELDS.size
    if version == 1:  # each part is padded to a multiple of 8
        name_nbytes += -name_nbytes % 8
        datatype_nbytes += -datatype_nbytes % 8
        dataspace_nbytes += -dataspace_nbytes % 8
    elif version == 3:
        name_at += 1  # the name's character set; names are decoded as UTF-8 either way
    elif version != 2:
        raise MalformedFile(f"attribute message has unknown version {version}")
    datatype_at = name_at + name_nbytes
    dataspace_at = datatype_at + datatype_nbytes
    value_at = dataspace_at + dataspace_nbytes
    if value_at > len(message):
        raise MalformedFile("attribute message is shorter than its parts")
    return name_at, datatype_at, dataspace_at, value_at


def _name(stored: bytes) -> bytes:
    """Return the name without its terminator. Like the HDF5 library, it drops the last byte whatever its value."""
    return stored[:-1].partition(b"\0")[0]


def decode_attribute(message: bytes) -> AttributeMessage:
    """Return the parts of a message of version 1, 2 or 3."""
    name_at, datatype_at, dataspace_at, value_at = _starts(message)
    version, flags, name_nbytes, datatype_nbytes, dataspace_nbytes = _FIELDS.unpack_from(message)
    flags = 0 if version == 1 else flags
    return AttributeMessage(
        text(_name(message[name_at : name_at + name_nbytes])),
        message[datatype_at : datatype_at + datatype_nbytes],
        message[dataspace_at : dataspace_at + dataspace_nbytes],
        message[value_at:],
        bool(flags & _SHARED_DATATYPE),
        bool(flags & _SHARED_DATASPACE),
    )


class AttributeInfo(NamedTuple):
    """The location of attributes that are not stored in the object header."""

    tracks_order: bool
    heap: int | None
    name_index: int | None


def decode_attribute_info(content: bytes, sizes: Sizes) -> AttributeInfo:
    cursor = Cursor(content, "attribute info message", sizes)
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"attribute info message has unknown version {version}")
    tracks_order = bool(cursor.u8() & 1)
    if tracks_order:
        cursor.skip(2)  # the highest creation order so far
    return AttributeInfo(tracks_order, cursor.address(), cursor.address())
