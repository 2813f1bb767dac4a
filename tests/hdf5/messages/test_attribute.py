from __future__ import annotations

import struct

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.attribute import AttributeInfo, AttributeMessage, decode_attribute, decode_attribute_info
from h5zarr.hdf5.sizes import Sizes
from tests.fake_file import UNDEFINED, padded, uint

DATATYPE, DATASPACE, CONTENT = b"type" * 3, b"spac", b"\x2a\0\0\0"


def message(version: int, name: bytes = b"units\0", flags: int = 0, charset: bytes = b"\x01") -> bytes:
    """Return an attribute; parts of version 1 are padded, version 3 has a character set."""
    head = struct.pack("<BBHHH", version, flags, len(name), len(DATATYPE), len(DATASPACE))
    parts = [name, DATATYPE, DATASPACE]
    if version == 1:
        parts = [padded(part) for part in parts]
    return head + (charset if version == 3 else b"") + b"".join(parts) + CONTENT


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", ["units", "Höhe", "exactly", "longer than eight bytes"])
def test_the_parts_of_every_version(version: int, name: str) -> None:
    found = decode_attribute(message(version, name.encode() + b"\0"))
    assert found == AttributeMessage(name, DATATYPE, DATASPACE, CONTENT, False, False)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_types_and_extents_may_be_shared_since_version_2(version: int, flags: int) -> None:
    found = decode_attribute(message(version, flags=flags))
    assert (found.datatype_is_shared, found.dataspace_is_shared) == (bool(flags & 1), bool(flags & 2))


def test_the_reserved_byte_of_version_1_means_nothing() -> None:
    found = decode_attribute(message(1, flags=3))
    assert (found.datatype_is_shared, found.dataspace_is_shared) == (False, False)


def test_a_name_that_is_not_utf_8_is_latin_1() -> None:
    assert decode_attribute(message(2, "Höhe".encode("latin-1") + b"\0")).name == "Höhe"


@pytest.mark.parametrize("version", [0, 4])
def test_an_unknown_version_is_malformed(version: int) -> None:
    with pytest.raises(MalformedFile, match=f"attribute message has unknown version {version}"):
        decode_attribute(bytes((version,)) + message(2)[1:])


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_message_cut_short_before_its_content_is_malformed(version: int) -> None:
    whole = message(version)
    assert decode_attribute(whole[: -len(CONTENT)]).content == b""
    for nbytes in range(len(whole) - len(CONTENT)):
        complaint = "attribute message is truncated" if nbytes < 8 else "attribute message is shorter than its parts"
        with pytest.raises(MalformedFile, match=complaint):
            decode_attribute(whole[:nbytes])


def test_where_other_attributes_are() -> None:
    addresses = uint(0x100) + uint(0x200)
    assert decode_attribute_info(b"\0\0" + addresses, Sizes()) == AttributeInfo(False, 0x100, 0x200)
    assert decode_attribute_info(b"\0\1" + uint(9, 2) + addresses, Sizes()) == AttributeInfo(True, 0x100, 0x200)
    ordered = b"\0\3" + uint(9, 2) + addresses + uint(0x300)
    assert decode_attribute_info(ordered, Sizes(base=512)) == AttributeInfo(True, 0x300, 0x400)
    nowhere = b"\0\0" + 2 * uint(UNDEFINED)
    assert decode_attribute_info(nowhere, Sizes()) == AttributeInfo(False, None, None)


def test_attribute_info_cut_short_or_of_another_version_is_malformed() -> None:
    whole = b"\0\1" + uint(9, 2) + uint(0x100) + uint(0x200)
    for nbytes in range(len(whole)):
        with pytest.raises(MalformedFile):
            decode_attribute_info(whole[:nbytes], Sizes())
    with pytest.raises(MalformedFile, match="attribute info message has unknown version 1"):
        decode_attribute_info(b"\1" + whole[1:], Sizes())
