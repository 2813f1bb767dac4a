"""The old and the new fill value message. Spec: IV.A.2.e and IV.A.2.f."""

from __future__ import annotations

from functools import lru_cache

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.model import FillKind, FillValue

DEFAULT_FILL = FillValue(kind=FillKind.LIBRARY_DEFAULT)
_UNDEFINED = 0x10
_DEFINED = 0x20


def decode_old_fill(content: bytes) -> FillValue:
    """Return the fill value of message 0x0004, the only one in files before HDF5 1.6."""
    cursor = Cursor(content, "old fill value message")
    return _fill(cursor.take(cursor.u32()))


@lru_cache(maxsize=1024)
def decode_fill(content: bytes) -> FillValue:
    """Return the fill value of message 0x0005, versions 1 to 3."""
    cursor = Cursor(content, "fill value message")
    version = cursor.u8()
    if version == 3:
        flags = cursor.u8()
        if flags & 0xC0 or (flags & _UNDEFINED and flags & _DEFINED):
            raise MalformedFile(f"fill value message has impossible flags {flags:#x}")
        times = flags & 3, flags >> 2 & 3
        if flags & _UNDEFINED:
            return _fill(None, *times)
        return _fill(cursor.take(cursor.u32()) if flags & _DEFINED else b"", *times)
    if version not in (1, 2):
        raise MalformedFile(f"fill value message has unknown version {version}")
    allocation_time, write_time, defined = cursor.u8(), cursor.u8(), cursor.u8()
    if version == 2 and not defined:
        return _fill(None, allocation_time, write_time)
    nbytes = int.from_bytes(cursor.take(4), "little", signed=True)
    if nbytes < 0:  # in version 1, a negative size means "undefined"
        return _fill(None, allocation_time, write_time)
    return _fill(cursor.take(nbytes) if defined else None, allocation_time, write_time)


def _fill(element: bytes | None, allocation_time: int | None = None, write_time: int | None = None) -> FillValue:
    """Return a fill value. None means undefined; empty bytes mean the library's default, which is zero."""
    chosen = FillKind.USER_DEFINED if element else FillKind.LIBRARY_DEFAULT
    kind = FillKind.UNDEFINED if element is None else chosen
    return FillValue(kind=kind, element=element or None, allocation_time=allocation_time, write_time=write_time)
