from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.link import LinkInfo, SymbolTable, decode_link, decode_link_info, decode_symbol_table
from h5zarr.hdf5.model import ExternalLink, HardLink, SoftLink, UserLink
from h5zarr.hdf5.sizes import Sizes
from tests.fake_file import UNDEFINED, uint


def link(
    name: bytes = b"lat", *, link_class: int | None = None, order: int | None = None, width: int = 1, tail: bytes = b""
) -> bytes:
    """Return a link message whose name's length is stored in `width` bytes."""
    flags = {1: 0, 2: 1, 4: 2, 8: 3}[width] | (order is not None) << 2 | (link_class is not None) << 3 | 0x10
    message = bytes((1, flags))
    if link_class is not None:
        message += bytes((link_class,))
    if order is not None:
        message += uint(order)
    return message + b"\x01" + uint(len(name), width) + name + tail


def value(content: bytes) -> bytes:
    return uint(len(content), 2) + content


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("link_class", [None, 0])
def test_hard_links(width: int, link_class: int | None) -> None:
    message = link("Länge".encode(), link_class=link_class, width=width, tail=uint(0x800))
    assert decode_link(message, Sizes(base=512)) == HardLink("Länge", 512 + 0x800)


def test_links_may_have_an_order() -> None:
    assert decode_link(link(order=7, tail=uint(0x800)), Sizes()) == HardLink("lat", 0x800, 7)
    assert decode_link(link(link_class=1, order=8, tail=value(b"/x")), Sizes()) == SoftLink("lat", "/x", 8)


def test_a_link_may_have_no_character_set() -> None:
    assert decode_link(b"\x01\x00\x03lat" + uint(0x800), Sizes()) == HardLink("lat", 0x800)


def test_external_links_name_a_file_and_an_object() -> None:
    message = link(link_class=64, tail=value(b"\0other.h5\0/group/x\0"))
    assert decode_link(message, Sizes()) == ExternalLink("lat", "other.h5", "/group/x")


@pytest.mark.parametrize("link_class", [65, 255])
def test_user_defined_links_keep_their_bytes(link_class: int) -> None:
    assert decode_link(link(link_class=link_class, tail=value(b"any")), Sizes()) == UserLink("lat", link_class, b"any")


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"\0" + link(tail=uint(0x800))[1:], "unknown version 0"),
        (b"\2" + link(tail=uint(0x800))[1:], "unknown version 2"),
        (link(b"", tail=uint(0x800)), "invalid name: ''"),
        (link(b"a/b", tail=uint(0x800)), "invalid name: 'a/b'"),
        (link(tail=uint(UNDEFINED)), "has no address"),
        (link(link_class=2, tail=value(b"")), "unknown type 2"),
        (link(link_class=63, tail=value(b"")), "unknown type 63"),
        (link(link_class=64, tail=value(b"\x10a\0b\0")), "unknown version 1"),
        (link(link_class=64, tail=value(b"\0other.h5\0/group/x")), "unterminated name"),
        (link(link_class=64, tail=value(b"")), "inside a field"),
    ],
)
def test_an_impossible_link_is_malformed(message: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        decode_link(message, Sizes())


@pytest.mark.parametrize("message", [link(order=7, tail=uint(0x800)), link(link_class=1, tail=value(b"/x"))])
def test_a_link_cut_short_anywhere_is_malformed(message: bytes) -> None:
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_link(message[:nbytes], Sizes())


def test_where_other_links_are() -> None:
    addresses = uint(0x100) + uint(0x200)
    assert decode_link_info(b"\0\0" + addresses, Sizes()) == LinkInfo(False, 0x100, 0x200)
    ordered = b"\0\3" + uint(9) + addresses + uint(0x300)
    assert decode_link_info(ordered, Sizes(base=512)) == LinkInfo(True, 0x300, 0x400)
    assert decode_link_info(b"\0\0" + 2 * uint(UNDEFINED), Sizes()) == LinkInfo(False, None, None)
    with pytest.raises(MalformedFile, match="link info message has unknown version 1"):
        decode_link_info(b"\1\0" + addresses, Sizes())
    with pytest.raises(MalformedFile):
        decode_link_info(b"\0\1" + addresses, Sizes())


def test_a_symbol_table_has_a_tree_and_a_heap() -> None:
    assert decode_symbol_table(uint(0x100) + uint(0x200), Sizes(base=512)) == SymbolTable(0x300, 0x400)
    for message in (uint(UNDEFINED) + uint(0x200), uint(0x100) + uint(UNDEFINED)):
        with pytest.raises(MalformedFile, match="lacks a B-tree or a heap"):
            decode_symbol_table(message, Sizes())
    with pytest.raises(MalformedFile):
        decode_symbol_table(uint(0x100) + uint(0x200)[:-1], Sizes())
