"""The filter pipeline message. Spec: IV.A.2.l."""

from __future__ import annotations

import struct
from functools import lru_cache

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.model import Filter

MAX_FILTERS = 32
_FIRST_REGISTERED = 256  # lower numbers are filters of the HDF5 library, which have no name in version 2
_OPTIONAL = 0x0001


@lru_cache(maxsize=1024)
def decode_filters(content: bytes) -> tuple[Filter, ...]:
    """Return the filters of a message of version 1 or 2, in the order in which they were applied on writing."""
    cursor = Cursor(content, "filter pipeline message")
    version, count = cursor.u8(), cursor.u8()
    if version not in (1, 2):
        raise MalformedFile(f"filter pipeline message has unknown version {version}")
    if count > MAX_FILTERS:
        raise MalformedFile(f"filter pipeline message has {count} filters, but at most {MAX_FILTERS} are allowed")
    if version == 1:
        cursor.skip(6)
    return tuple(_filter(cursor, version) for _ in range(count))


def _filter(cursor: Cursor, version: int) -> Filter:
    number = cursor.u16()
    name_nbytes = cursor.u16() if version == 1 or number >= _FIRST_REGISTERED else 0
    flags, value_count = cursor.u16(), cursor.u16()
    if version == 1:
        name_nbytes += -name_nbytes % 8
    name = text(cursor.take(name_nbytes).partition(b"\0")[0])
    values = struct.unpack(f"<{value_count}I", cursor.take(4 * value_count))
    if version == 1 and value_count % 2 and cursor.left >= 4:
        cursor.skip(4)
    return Filter(number=number, name=name, optional=bool(flags & _OPTIONAL), values=values)
