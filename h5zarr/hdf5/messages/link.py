"""The link message, and the two messages that locate links stored elsewhere. Spec: IV.A.2.g, IV.A.2.c, IV.A.2.r."""

from __future__ import annotations

from typing import NamedTuple

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.model import ExternalLink, HardLink, Link, SoftLink, UserLink
from h5zarr.hdf5.sizes import Sizes

_HARD, _SOFT, _EXTERNAL = 0, 1, 64
_FIRST_USER_DEFINED = 65


def decode_link(content: bytes, sizes: Sizes) -> Link:
    """Return one link of a group that stores its links in the header or in a fractal heap."""
    cursor = Cursor(content, "link message", sizes)
    if (version := cursor.u8()) != 1:
        raise MalformedFile(f"link message has unknown version {version}")
    flags = cursor.u8()
    link_class = cursor.u8() if flags & 0x08 else _HARD
    order = cursor.uint(8) if flags & 0x04 else None
    if flags & 0x10:
        cursor.skip(1)  # the character set; names are decoded as UTF-8 either way
    name = text(cursor.take(cursor.uint(1 << (flags & 3))))
    if not name or "/" in name:
        raise MalformedFile(f"link message has an invalid name: {name!r}")
    if link_class == _HARD:
        if (address := cursor.address()) is None:
            raise MalformedFile(f"link {name!r} has no address")
        return HardLink(name, address, order)
    content = cursor.take(cursor.u16())
    if link_class == _SOFT:
        return SoftLink(name, text(content), order)
    if link_class == _EXTERNAL:
        return _external(name, content, order)
    if link_class < _FIRST_USER_DEFINED:
        raise MalformedFile(f"link {name!r} has unknown type {link_class}")
    return UserLink(name, link_class, content, order)


def _external(name: str, content: bytes, order: int | None) -> ExternalLink:
    cursor = Cursor(content, f"external link {name!r}")
    if (version := cursor.u8() >> 4) != 0:
        raise MalformedFile(f"external link {name!r} has unknown version {version}")
    return ExternalLink(name, text(cursor.terminated()), text(cursor.terminated()), order)


class LinkInfo(NamedTuple):
    """The location of links that are not stored in the group's header."""

    tracks_order: bool
    heap: int | None
    name_index: int | None


def decode_link_info(content: bytes, sizes: Sizes) -> LinkInfo:
    cursor = Cursor(content, "link info message", sizes)
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"link info message has unknown version {version}")
    flags = cursor.u8()
    if flags & 1:
        cursor.skip(8)  # the highest creation order so far
    return LinkInfo(bool(flags & 1), cursor.address(), cursor.address())


class SymbolTable(NamedTuple):
    """The location of the links of an old-style group."""

    btree: int
    heap: int


def decode_symbol_table(content: bytes, sizes: Sizes) -> SymbolTable:
    cursor = Cursor(content, "symbol table message", sizes)
    btree, heap = cursor.address(), cursor.address()
    if btree is None or heap is None:
        raise MalformedFile("symbol table message lacks a B-tree or a heap")
    return SymbolTable(btree, heap)
