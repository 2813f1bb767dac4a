"""Messages about an object as a whole: modification time, comment, reference count and group constants.

Spec: IV.A.2.k, IV.A.2.n, IV.A.2.o, IV.A.2.s and IV.A.2.w.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """Header messages that do not affect the content of an object. Times are in seconds since 1970."""

    reference_count: int = 1
    modification_time: int | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConstants:
    """Thresholds between compact and dense links, and expected sizes. None means the library's default."""

    max_compact_links: int | None = None
    min_dense_links: int | None = None
    expected_links: int | None = None
    expected_name_nbytes: int | None = None


NO_NOTES, NO_CONSTANTS = Notes(), GroupConstants()


def decode_modification_time(content: bytes) -> int:
    """Return the time of the last modification, in seconds since 1970."""
    cursor = Cursor(content, "modification time message")
    if (version := cursor.u8()) != 1:
        raise MalformedFile(f"modification time message has unknown version {version}")
    cursor.skip(3)
    return cursor.u32()


def decode_old_modification_time(content: bytes) -> int:
    """Return the modification time from the message used before HDF5 1.6: date and time as digits, in UTC."""
    digits = Cursor(content, "old modification time message").take(14)
    try:
        return int(datetime.strptime(digits.decode("ascii"), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp())
    except ValueError as error:
        raise MalformedFile(f"old modification time message is not a time: {digits!r}") from error


def decode_comment(content: bytes) -> str:
    """Return the comment on the object."""
    return text(content.partition(b"\0")[0])


def decode_reference_count(content: bytes) -> int:
    """Return the number of hard links to the object. Without this message it is 1."""
    cursor = Cursor(content, "reference count message")
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"reference count message has unknown version {version}")
    return cursor.u32()


def decode_group_info(content: bytes) -> GroupConstants:
    """Return the constants of a new-style group. None means the library's default."""
    cursor = Cursor(content, "group info message")
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"group info message has unknown version {version}")
    flags = cursor.u8()
    compact, dense = (cursor.u16(), cursor.u16()) if flags & 1 else (None, None)
    count, name_nbytes = (cursor.u16(), cursor.u16()) if flags & 2 else (None, None)
    return GroupConstants(
        max_compact_links=compact, min_dense_links=dense, expected_links=count, expected_name_nbytes=name_nbytes
    )
