"""A file that a test writes byte by byte, and the structures to write into it.

    file = FakeFile({0x100: local_heap(segment=0x200, nbytes=8), 0x200: b"temp\0\0\0\0"})
    heap = run(read_local_heap(0x100, file.sizes), file.read_many)
    assert file.rounds == 2

Everything is built for addresses and lengths of eight bytes unless a builder takes a width.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from h5zarr.hdf5.checksum import lookup3
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span

UNDEFINED = (1 << 64) - 1
_BETWEEN = b"\xee"  # filler between the parts: no structure begins like this


class FakeFile:
    """Parts of a file by address. Counts rounds, and refuses to read bytes that a real file would not have."""

    def __init__(self, parts: Mapping[int, bytes], nbytes: int | None = None, sizes: Sizes | None = None) -> None:
        self.nbytes = max(address + len(part) for address, part in parts.items()) if nbytes is None else nbytes
        self.sizes = replace(sizes or Sizes(), end=self.nbytes)
        self.requests: list[list[Span]] = []
        self._content = bytearray(_BETWEEN * self.nbytes)
        for address, part in parts.items():
            assert address + len(part) <= self.nbytes
            self._content[address : address + len(part)] = part

    @property
    def rounds(self) -> int:
        return len(self.requests)

    def read_many(self, spans: Sequence[Span]) -> list[memoryview]:
        """Return the bytes of each span, and note the round."""
        assert all(span.address >= 0 and span.nbytes >= 0 and span.end <= self.nbytes for span in spans)
        self.requests.append(list(spans))
        return [memoryview(bytes(self._content[span.address : span.end])) for span in spans]


def with_checksum(block: bytes) -> bytes:
    """Return the block followed by its checksum."""
    return block + struct.pack("<I", lookup3(block))


def uint(value: int, nbytes: int = 8) -> bytes:
    return value.to_bytes(nbytes, "little")


def padded(content: bytes, nbytes: int = 8) -> bytes:
    """Return `content` with nulls up to a multiple of `nbytes`."""
    return content + bytes(-len(content) % nbytes)


# --- object headers


def message_v1(kind: int, content: bytes, flags: int = 0) -> bytes:
    return struct.pack("<HHBxxx", kind, len(content), flags) + content


def message_v2(kind: int, content: bytes, flags: int = 0, order: int | None = None) -> bytes:
    prefix = struct.pack("<BHB", kind, len(content), flags)
    return prefix + (b"" if order is None else uint(order, 2)) + content


def header_v1(*messages: bytes, nbytes: int | None = None) -> bytes:
    """Return an object header of version 1. `nbytes` replaces its stated size."""
    block = b"".join(messages)
    return struct.pack("<BxHIIxxxx", 1, len(messages), 1, len(block) if nbytes is None else nbytes) + block


def header_v2(*messages: bytes, flags: int = 0, gap: bytes = b"") -> bytes:
    """Return an object header of version 2. The size field is as wide as the lowest two bits of `flags` say."""
    block = b"".join(messages) + gap
    times = bytes(16) if flags & 0x20 else b""
    phase_change = bytes(4) if flags & 0x10 else b""
    prefix = b"OHDR\x02" + bytes((flags,)) + times + phase_change + uint(len(block), 1 << (flags & 3))
    return with_checksum(prefix + block)


def continuation(address: int, nbytes: int) -> bytes:
    """Return the content of a continuation message."""
    return uint(address) + uint(nbytes)


def continuation_block_v2(*messages: bytes, gap: bytes = b"") -> bytes:
    return with_checksum(b"OCHK" + b"".join(messages) + gap)


# --- superblocks


def superblock_v0(
    *,
    version: int = 0,
    offset_nbytes: int = 8,
    length_nbytes: int = 8,
    ranks: tuple[int, int, int] = (4, 16, 32),
    base: int = 0,
    end: int = 4096,
    driver: int | None = None,
    root: int | None = 96,
) -> bytes:
    """Return a superblock of version 0 or 1. `ranks` are those of group leaves, group nodes and (version 1) chunks."""

    def address(value: int | None) -> bytes:
        return b"\xff" * offset_nbytes if value is None else uint(value, offset_nbytes)

    fixed = b"\x89HDF\r\n\x1a\n" + bytes((version, 0, 0, 0, 0, offset_nbytes, length_nbytes, 0))
    fixed += struct.pack("<HHI", ranks[0], ranks[1], 0)
    if version == 1:
        fixed += struct.pack("<HH", ranks[2], 0)
    addresses = address(base) + address(None) + address(end) + address(driver)
    return fixed + addresses + uint(0, length_nbytes) + address(root) + bytes(24)


def superblock_v2(
    *,
    version: int = 2,
    offset_nbytes: int = 8,
    length_nbytes: int = 8,
    base: int = 0,
    extension: int | None = None,
    end: int = 4096,
    root: int | None = 48,
) -> bytes:
    """Return a superblock of version 2 or 3."""

    def address(value: int | None) -> bytes:
        return b"\xff" * offset_nbytes if value is None else uint(value, offset_nbytes)

    fixed = b"\x89HDF\r\n\x1a\n" + bytes((version, offset_nbytes, length_nbytes, 0))
    return with_checksum(fixed + address(base) + address(extension) + address(end) + address(root))


# --- heaps


def local_heap(*, segment: int, nbytes: int, version: int = 0) -> bytes:
    """Return the header of a local heap."""
    return b"HEAP" + bytes((version, 0, 0, 0)) + uint(nbytes) + uint(1) + uint(segment)


def collection(objects: Mapping[int, bytes], nbytes: int = 4096, length_nbytes: int = 8) -> bytes:
    """Return a global heap collection of `nbytes` bytes, free space included."""
    block = padded(b"GCOL\x01\0\0\0" + uint(nbytes, length_nbytes))
    for index, content in objects.items():
        block += padded(struct.pack("<HHI", index, 1, 0) + uint(len(content), length_nbytes)) + padded(content)
    return block + bytes(nbytes - len(block))


def element_of_heap(length: int, address: int, index: int, offset_nbytes: int = 8) -> bytes:
    """Return an element of a variable-length type."""
    return uint(length, 4) + uint(address, offset_nbytes) + uint(index, 4)


# --- trees


def btree1_node(
    *, node_type: int, level: int, entries: Sequence[tuple[bytes, int]], capacity: int, last_key: bytes
) -> bytes:
    """Return a node of a version 1 B-tree, with room for `capacity` entries of a key and a child."""
    block = b"TREE" + bytes((node_type, level)) + uint(len(entries), 2) + 2 * uint(UNDEFINED)
    block += b"".join(key + uint(child) for key, child in entries) + last_key
    return block + bytes((capacity - len(entries)) * (len(last_key) + 8))


def btree2_header(
    *,
    kind: int,
    root: int | None,
    root_count: int,
    total_count: int,
    record_nbytes: int,
    node_nbytes: int = 512,
    depth: int = 0,
) -> bytes:
    block = b"BTHD" + struct.pack("<BBIHHBB", 0, kind, node_nbytes, record_nbytes, depth, 100, 40)
    address = UNDEFINED if root is None else root
    return with_checksum(block + uint(address) + uint(root_count, 2) + uint(total_count))


def btree2_leaf(kind: int, records: Sequence[bytes], node_nbytes: int = 512) -> bytes:
    block = with_checksum(b"BTLF" + bytes((0, kind)) + b"".join(records))
    return block + bytes(node_nbytes - len(block))


def btree2_node(kind: int, records: Sequence[bytes], pointers: Sequence[bytes], node_nbytes: int = 512) -> bytes:
    """Return an internal node; each pointer is a child's address and counts."""
    block = with_checksum(b"BTIN" + bytes((0, kind)) + b"".join(records) + b"".join(pointers))
    return block + bytes(node_nbytes - len(block))
