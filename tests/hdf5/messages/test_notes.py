"""Times, comments, reference counts and the constants of groups."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.notes import (
    GroupConstants,
    decode_comment,
    decode_group_info,
    decode_modification_time,
    decode_old_modification_time,
    decode_reference_count,
)


def test_a_modification_time_is_seconds_since_1970() -> None:
    assert decode_modification_time(struct.pack("<B3xI", 1, 1_600_000_000)) == 1_600_000_000


def test_an_old_modification_time_is_digits_in_utc() -> None:
    expected = int(datetime(1998, 7, 14, 21, 5, 9, tzinfo=UTC).timestamp())
    assert decode_old_modification_time(b"19980714210509\0\0") == expected


def test_an_old_modification_time_of_other_letters_is_refused() -> None:
    with pytest.raises(MalformedFile, match="is not a time"):
        decode_old_modification_time(b"yesterday noon\0\0")


def test_a_comment_ends_with_its_null() -> None:
    assert decode_comment(b"twice checked\0\0\0") == "twice checked"


def test_a_reference_count_is_a_number() -> None:
    assert decode_reference_count(struct.pack("<BI", 0, 7)) == 7


def test_group_constants_are_there_when_the_flags_say_so() -> None:
    assert decode_group_info(b"\0\0") == GroupConstants()
    assert decode_group_info(struct.pack("<BBHH", 0, 1, 8, 6)) == GroupConstants(max_compact_links=8, min_dense_links=6)
    both = decode_group_info(struct.pack("<BBHHHH", 0, 3, 8, 6, 4, 12))
    assert both == GroupConstants(max_compact_links=8, min_dense_links=6, expected_links=4, expected_name_nbytes=12)


@pytest.mark.parametrize("decode", [decode_modification_time, decode_reference_count, decode_group_info])
def test_unknown_versions_and_cut_messages_are_refused(decode) -> None:
    with pytest.raises(MalformedFile, match="unknown version 9"):
        decode(b"\x09" + bytes(8))
    with pytest.raises(MalformedFile, match="inside a field"):
        decode(b"")
