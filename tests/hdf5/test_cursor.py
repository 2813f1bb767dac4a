from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.sizes import Sizes


def test_fields_are_little_endian_and_follow_one_another() -> None:
    cursor = Cursor(bytes(range(1, 16)), "message")
    assert cursor.u8() == 0x01
    assert cursor.u16() == 0x0302
    assert cursor.u32() == 0x07060504
    assert cursor.uint(3) == 0x0A0908
    assert cursor.take(2) == b"\x0b\x0c"
    cursor.skip(1)
    assert cursor.left == 2
    assert cursor.position == 13


def test_lengths_and_addresses_have_the_file_s_widths() -> None:
    cursor = Cursor(b"\x10\x00\x20\x00\x00\x00\xff\xff", "message", Sizes(offset_nbytes=2, length_nbytes=4, base=512))
    assert cursor.address() == 512 + 16
    assert cursor.length() == 32
    assert cursor.address() is None


def test_the_last_byte_can_be_taken_and_the_one_behind_it_not() -> None:
    cursor = Cursor(b"abcd", "fill value message")
    assert cursor.u32() == int.from_bytes(b"abcd", "little")
    with pytest.raises(MalformedFile, match="fill value message ends after 4 bytes, inside a field"):
        cursor.u8()


def test_a_field_that_does_not_fit_moves_nothing() -> None:
    cursor = Cursor(b"abc", "message")
    with pytest.raises(MalformedFile, match="inside a field"):
        cursor.take(4)
    assert cursor.take(3) == b"abc"


def test_a_negative_size_is_refused() -> None:
    cursor = Cursor(b"abcd", "message")
    cursor.skip(2)
    with pytest.raises(MalformedFile, match="inside a field"):
        cursor.take(-1)


def test_a_name_ends_at_its_null_which_is_passed_over() -> None:
    cursor = Cursor(b"lat\0\0lon", "message")
    assert cursor.terminated() == b"lat"
    assert cursor.terminated() == b""
    with pytest.raises(MalformedFile, match="message has an unterminated name"):
        cursor.terminated()


@pytest.mark.parametrize(("taken", "start", "position"), [(0, 0, 0), (1, 0, 8), (8, 0, 8), (9, 0, 16), (5, 3, 11)])
def test_align_moves_to_the_next_multiple_after_the_start(taken: int, start: int, position: int) -> None:
    cursor = Cursor(bytes(16), "message")
    cursor.skip(taken)
    cursor.align(8, start)
    assert cursor.position == position


def test_align_does_not_leave_the_message() -> None:
    cursor = Cursor(bytes(10), "message")
    cursor.skip(9)
    with pytest.raises(MalformedFile, match="inside a field"):
        cursor.align(8)


def test_text_is_utf_8_and_latin_1_where_it_cannot_be() -> None:
    assert text("Höhe".encode()) == "Höhe"
    assert text("Höhe".encode("latin-1")) == "Höhe"
    assert text(bytes(range(128, 256))) == bytes(range(128, 256)).decode("latin-1")
