"""Read the links of a group, stored in one of three ways. Spec: III.B, III.C and IV.A.2.c."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.btree1 import NodeType, Shape, read_leaf_entries
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.header import ObjectHeader
from h5zarr.hdf5.heaps.fractal import read_heap
from h5zarr.hdf5.heaps.local import LocalHeap, read_local_heap
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.messages.link import SymbolTable, decode_link, decode_link_info, decode_symbol_table
from h5zarr.hdf5.model import HardLink, Link, SoftLink
from h5zarr.hdf5.nodes import node_spans
from h5zarr.hdf5.on_disk import WIDTHS
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Rounds
from h5zarr.io.steps import Hints, Step, both

_NAME_INDEX = 5
_SOFT = 2
_CHAIN = Rounds(5)  # heap and index of the links, their blocks or nodes, headers, chunk indexes and their leaves


def read_links(header: ObjectHeader, context: Context) -> Step[tuple[list[Link], list[H5ZarrError]]]:
    """Return a group's links, and the errors for links that could not be decoded."""
    sizes = context.sizes
    stored: list[Callable[[], Link]] = [
        partial(decode_link, message.content, sizes) for message in header.of_kind(Kind.LINK)
    ]
    if message := header.first(Kind.LINK_INFO):
        info = decode_link_info(message.content, sizes)
        if info.heap is not None and info.name_index is not None:
            context.claim(info.heap, header.address, "heap of links")
            yield Hints([_CHAIN])
            contents = yield from _read_dense(info.heap, info.name_index, sizes)
            stored += [partial(decode_link, content, sizes) for content in contents]
    if message := header.first(Kind.SYMBOL_TABLE):
        table = decode_symbol_table(message.content, sizes)
        context.claim(table.btree, header.address, "symbol table")
        yield Hints([_CHAIN])
        heap, entries = yield from _read_symbol_table(table, sizes)
        stored += [partial(_link, entry, heap, sizes) for entry in entries]
    links: list[Link] = []
    errors: list[H5ZarrError] = []
    for decode in stored:
        try:
            links.append(decode())
        except H5ZarrError as error:
            errors.append(error)
    return links, errors


def _read_dense(heap: int, name_index: int, sizes: Sizes) -> Step[list[bytes]]:
    """Return the link messages of a group with dense storage. Heap and index are read together."""
    blocks, (_, slabs) = yield from both(read_heap(heap, sizes), read_records(name_index, sizes, _NAME_INDEX))
    return (yield from blocks.read([row[4:11].tobytes() for rows in slabs for row in rows]))


# Position of the name in the heap, stored header address, cache type, position of a soft link's target in the heap.
_Entry: TypeAlias = tuple[int, int, int, int]


def _read_symbol_table(table: SymbolTable, sizes: Sizes) -> Step[tuple[LocalHeap, list[_Entry]]]:
    """Return the parts of an old-style group: a heap of names, and the entries of its symbol table nodes."""
    return (yield from both(read_local_heap(table.heap, sizes), _read_entries(table.btree, sizes)))


def _read_entries(btree: int, sizes: Sizes) -> Step[list[_Entry]]:
    """Return the symbol table entries. Each tree level takes one round, and the symbol table nodes take one more."""
    shape = Shape(
        node_type=NodeType.GROUP,
        capacity=2 * sizes.group_internal_rank,
        key_nbytes=sizes.length_nbytes,
        sizes=sizes,
    )
    leaves = yield from read_leaf_entries(btree, shape)
    nodes = leaves.children()
    node_spans(nodes, 8, sizes, "symbol table node")  # raises if a node occurs twice
    return (yield from _read_symbol_nodes(nodes.tolist(), sizes))


@cache
def _entry_format(length_nbytes: int, offset_nbytes: int) -> struct.Struct:
    """Return the format of an entry: name position, header address, cache type, reserved, scratch pad. Spec: III.C.

    The name position has the size of a length. The specification says the size of an address, which is wrong for files
    in which the two sizes differ.
    """
    return struct.Struct(f"<{WIDTHS[length_nbytes]}{WIDTHS[offset_nbytes]}I4xI12x")


def _read_symbol_nodes(addresses: list[int], sizes: Sizes) -> Step[list[_Entry]]:
    entry = _entry_format(sizes.length_nbytes, sizes.offset_nbytes)
    most = 8 + 2 * sizes.group_leaf_rank * entry.size
    # The last node of a file may end before its unused entries.
    blocks = yield [sizes.span_up_to(address, 8, most, "symbol table node") for address in addresses]
    entries: list[_Entry] = []
    for address, block in zip(addresses, blocks, strict=True):
        if bytes(block[:5]) != b"SNOD\x01":
            raise MalformedFile(
                f"symbol table node begins with {bytes(block[:5])!r}, expected b'SNOD\\x01'", at=address
            )
        end = 8 + (block[6] | block[7] << 8) * entry.size
        if end > len(block):
            raise MalformedFile("symbol table node has more entries than it can hold", at=address)
        entries += entry.iter_unpack(block[8:end])
    return entries


def _link(entry: _Entry, heap: LocalHeap, sizes: Sizes) -> Link:
    name_at, stored, cache_type, target_at = entry
    name = heap.name(name_at)
    if cache_type == _SOFT:
        return SoftLink(name, heap.name(target_at))
    if (address := sizes.address(stored)) is None:
        raise MalformedFile(f"symbol table entry {name!r} has no address")
    return HardLink(name, address)
