"""Fractal heaps: storage for links, attributes and shared messages in newer files. Spec: III.G."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.pipeline import undo_filters
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.checksum import check_checksum, lookup3
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.messages.filters import decode_filters
from h5zarr.hdf5.model import Filter
from h5zarr.hdf5.on_disk import U8, U16, U32, Address, Length, OnDisk, check_signature, on_disk
from h5zarr.hdf5.sizes import Sizes, Visits
from h5zarr.io.span import Span
from h5zarr.io.steps import Step

_MANAGED, _HUGE, _TINY = range(3)
_HUGE_FILTERED_TYPES = (2, 4)
_CHECKSUMMED_BLOCKS = 0x02


@on_disk(b"FRHP")
class FractalHeapHeader(OnDisk):
    """Header of a fractal heap, up to the optional filter information. Spec: III.G."""

    version: U8
    id_nbytes: U16
    filters_nbytes: U16
    flags: U8
    max_managed_nbytes: U32
    next_huge_id: Length
    huge_btree: Address
    free_nbytes: Length
    free_space_manager: Address
    managed_nbytes: Length
    allocated_nbytes: Length
    iterator_offset: Length
    managed_count: Length
    huge_nbytes: Length
    huge_count: Length
    tiny_nbytes: Length
    tiny_count: Length
    table_width: U16
    starting_block_nbytes: Length
    max_direct_nbytes: Length
    max_heap_bits: U16
    starting_row_count: U16
    root: Address
    root_row_count: U16


class _Block(NamedTuple):
    """A direct block: its address in the heap's address space, its address in the file, its sizes and filter mask."""

    heap_address: int
    address: int
    nbytes: int
    stored_nbytes: int
    filter_mask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heap:
    """The header and values derived from it."""

    address: int
    header: FractalHeapHeader
    filters: tuple[Filter, ...]
    root_stored_nbytes: int
    root_filter_mask: int
    sizes: Sizes

    @property
    def offset_width(self) -> int:
        return (self.header.max_heap_bits + 7) // 8

    @property
    def length_width(self) -> int:
        """Width of the length in a managed object's ID: that of a direct block or of the largest object, if smaller."""
        header = self.header
        return min((header.max_direct_nbytes.bit_length() + 6) // 8, (header.max_managed_nbytes.bit_length() + 7) // 8)

    @property
    def prefix_nbytes(self) -> int:
        """Size of a block's prefix: signature, version, back-pointer and block offset."""
        return 5 + self.sizes.offset_nbytes + self.offset_width

    @property
    def direct_row_count(self) -> int:
        """Number of rows in an indirect block that hold direct blocks."""
        header = self.header
        return header.max_direct_nbytes.bit_length() - header.starting_block_nbytes.bit_length() + 2

    def row_block_nbytes(self, row: int) -> int:
        """Return the size of the blocks in a row: the starting size in the first two rows, then doubling."""
        return self.header.starting_block_nbytes << max(0, row - 1)


def read_heap(address: int, sizes: Sizes) -> Step[HeapBlocks]:
    """Return the heap at `address`, ready to return objects.

    The header takes one round, and so does each level of blocks. All managed blocks are read, because callers want
    nearly all objects. The blocks can then be read while the index of the objects is still being read.
    """
    heap = yield from _read_header(address, sizes)
    blocks = yield from _read_blocks(heap)
    return HeapBlocks(heap, blocks)


class HeapBlocks:
    """The managed blocks of a heap, fully read. Returns objects by ID."""

    def __init__(self, heap: _Heap, blocks: list[tuple[_Block, bytes]]) -> None:
        self._heap = heap
        self._blocks = blocks
        self._starts = [block.heap_address for block, _ in blocks]
        self._id_end = 1 + heap.offset_width + heap.length_width
        self._offset_nbits = 8 * heap.offset_width
        self._offset_mask = (1 << self._offset_nbits) - 1

    def read(self, ids: Sequence[bytes]) -> Step[list[bytes]]:
        """Return the objects with these IDs. Only huge objects need further reads."""
        if len(set(ids)) != len(ids):
            raise MalformedFile("an index refers to the same fractal heap object twice", at=self._heap.address)
        huge = [heap_id for heap_id in ids if heap_id and heap_id[0] >> 4 & 3 == _HUGE]
        if not huge:
            return [self._object(heap_id) for heap_id in ids]
        found = yield from _read_huge(self._heap, huge)
        return [found[heap_id] if heap_id in found else self._object(heap_id) for heap_id in ids]

    def _object(self, heap_id: bytes) -> bytes:
        if not heap_id or heap_id[0] >> 6:
            raise MalformedFile(f"fractal heap ID {heap_id!r} has an unknown version", at=self._heap.address)
        kind = heap_id[0] >> 4 & 3
        if kind == _TINY:
            return self._tiny(heap_id)
        if kind != _MANAGED:
            raise MalformedFile(f"fractal heap ID has unknown type {kind}", at=self._heap.address)
        both = int.from_bytes(heap_id[1 : self._id_end], "little")
        return self._managed(both & self._offset_mask, both >> self._offset_nbits)

    def _tiny(self, heap_id: bytes) -> bytes:
        """Return an object stored in its own ID. Long IDs have a two-byte length."""
        cursor = Cursor(heap_id, "fractal heap ID")
        nbytes = cursor.u8() & 0x0F
        if self._heap.header.id_nbytes > 18:
            nbytes = nbytes << 8 | cursor.u8()
        return cursor.take(nbytes + 1)

    def _managed(self, position: int, nbytes: int) -> bytes:
        number = bisect_right(self._starts, position) - 1
        if number >= 0:
            block, content = self._blocks[number]
            start = position - block.heap_address
            if start + nbytes <= len(content):
                return content[start : start + nbytes]
        raise MalformedFile(f"fractal heap has no object of {nbytes} bytes at {position}", at=self._heap.address)


def _read_header(address: int, sizes: Sizes) -> Step[_Heap]:
    fixed = FractalHeapHeader.nbytes(sizes)
    (head,) = yield [sizes.span_up_to(address, fixed + 4, fixed + 256, "fractal heap header")]
    header = FractalHeapHeader.decode(head, sizes, at=address)
    nbytes = fixed + 4
    if header.filters_nbytes:
        nbytes += sizes.length_nbytes + 4 + header.filters_nbytes
    if nbytes > len(head):
        (head,) = yield [sizes.span(address, nbytes, "fractal heap header")]
    check_checksum(head[:nbytes], "fractal heap header", address)
    if header.root is not None:
        _check_table(header, address)
    stored, mask = header.starting_block_nbytes, 0
    filters: tuple[Filter, ...] = ()
    if header.filters_nbytes:
        cursor = Cursor(bytes(head[fixed : nbytes - 4]), "fractal heap header", sizes)
        stored, mask = cursor.length(), cursor.u32()
        filters = decode_filters(cursor.take(header.filters_nbytes))
    return _Heap(
        address=address,
        header=header,
        filters=filters,
        root_stored_nbytes=stored,
        root_filter_mask=mask,
        sizes=sizes,
    )


def _check_table(header: FractalHeapHeader, address: int) -> None:
    """Raise MalformedFile if the doubling table is invalid."""
    for name in ("table_width", "starting_block_nbytes", "max_direct_nbytes"):
        value = getattr(header, name)
        if value == 0 or value & (value - 1):
            raise MalformedFile(f"fractal heap header has {name} {value}, not a power of two", at=address)
    if header.max_direct_nbytes < header.starting_block_nbytes or header.max_heap_bits > 64:
        raise MalformedFile("fractal heap header has impossible block sizes", at=address)
    if header.allocated_nbytes > header.managed_nbytes:
        raise MalformedFile("fractal heap header states more allocated than managed bytes", at=address)


def _read_blocks(heap: _Heap) -> Step[list[tuple[_Block, bytes]]]:
    """Return all direct blocks with their bytes, in heap order."""
    header, sizes = heap.header, heap.sizes
    if header.root is None:
        return []
    if not header.root_row_count:
        only = _Block(0, header.root, header.starting_block_nbytes, heap.root_stored_nbytes, heap.root_filter_mask)
        (buffer,) = yield [sizes.span(only.address, only.stored_nbytes, "fractal heap direct block")]
        return [(only, _direct_content(heap, only, bytes(buffer)))]
    visits = Visits(sizes, "fractal heap")
    direct: list[_Block] = []
    indirect = [(0, header.root, header.root_row_count)]  # heap address, address, rows
    while indirect:
        spans = [_indirect_span(heap, address, rows, visits) for _, address, rows in indirect]
        buffers = yield spans
        below: list[tuple[int, int, int]] = []
        for (heap_address, address, rows), buffer in zip(indirect, buffers, strict=True):
            more_direct, more_indirect = _decode_indirect(heap, bytes(buffer), heap_address, address, rows)
            direct += more_direct
            below += more_indirect
        indirect = below
    direct.sort()
    for block in direct:
        visits.claim(block.address, block.stored_nbytes)
    buffers = yield [sizes.span(block.address, block.stored_nbytes, "fractal heap direct block") for block in direct]
    return [(block, _direct_content(heap, block, bytes(buffer))) for block, buffer in zip(direct, buffers, strict=True)]


def _indirect_span(heap: _Heap, address: int, rows: int, visits: Visits) -> Span:
    direct_rows = min(rows, heap.direct_row_count)
    width, sizes = heap.header.table_width, heap.sizes
    entry_nbytes = sizes.offset_nbytes + (sizes.length_nbytes + 4 if heap.filters else 0)
    nbytes = heap.prefix_nbytes + direct_rows * width * entry_nbytes
    nbytes += (rows - direct_rows) * width * sizes.offset_nbytes + 4
    visits.claim(address, nbytes)
    return sizes.span(address, nbytes, "fractal heap indirect block")


def _decode_indirect(
    heap: _Heap, content: bytes, heap_address: int, address: int, rows: int
) -> tuple[list[_Block], list[tuple[int, int, int]]]:
    """Return the direct and indirect blocks that an indirect block points to."""
    check_checksum(content, "fractal heap indirect block", address)
    _check_prefix(heap, content, b"FHIB", heap_address, address)
    cursor = Cursor(content, "fractal heap indirect block", heap.sizes)
    cursor.skip(heap.prefix_nbytes)
    direct: list[_Block] = []
    indirect: list[tuple[int, int, int]] = []
    for row in range(rows):
        nbytes = heap.row_block_nbytes(row)
        for _ in range(heap.header.table_width):
            child = cursor.address()
            if row < heap.direct_row_count:
                stored, mask = (cursor.length(), cursor.u32()) if heap.filters else (nbytes, 0)
                if child is not None:
                    direct.append(_Block(heap_address, child, nbytes, stored, mask))
            elif child is not None:
                rows_below = (
                    nbytes.bit_length() - (heap.header.starting_block_nbytes * heap.header.table_width).bit_length() + 1
                )
                indirect.append((heap_address, child, rows_below))
            heap_address += nbytes
    return direct, indirect


def _check_prefix(heap: _Heap, content: bytes, signature: bytes, heap_address: int, address: int) -> None:
    """Raise MalformedFile unless a block has the expected signature, version, heap address and block offset."""
    check_signature(content, signature + b"\0", "fractal heap block", address)
    heap_at = (heap.address - heap.sizes.base).to_bytes(heap.sizes.offset_nbytes, "little")
    if content[5 : heap.prefix_nbytes] != heap_at + heap_address.to_bytes(heap.offset_width, "little"):
        raise MalformedFile("fractal heap block has the wrong heap address or block offset", at=address)


def _direct_content(heap: _Heap, block: _Block, content: bytes) -> bytes:
    """Return the unfiltered, verified block. Objects are addressed relative to its first byte, including the prefix."""
    if heap.filters:
        content = undo_filters(content, heap.filters, block.filter_mask, block.nbytes)
    if len(content) != block.nbytes:
        raise MalformedFile(
            f"fractal heap direct block has {len(content)} bytes, expected {block.nbytes}", at=block.address
        )
    _check_prefix(heap, content, b"FHDB", block.heap_address, block.address)
    if heap.header.flags & _CHECKSUMMED_BLOCKS:
        start = heap.prefix_nbytes
        end = start + 4  # the checksum was computed with its own field set to zero
        if lookup3(content[:start] + bytes(4) + content[end:]) != int.from_bytes(content[start:end], "little"):
            raise MalformedFile("fractal heap direct block fails its checksum", at=block.address)
    return content


class _HugeObject(NamedTuple):
    address: int
    nbytes: int
    filter_mask: int = 0
    unfiltered_nbytes: int = 0


def _read_huge(heap: _Heap, ids: list[bytes]) -> Step[dict[bytes, bytes]]:
    """Return huge objects, which are stored outside the heap's blocks, by ID."""
    sizes, filtered = heap.sizes, bool(heap.filters)
    direct_nbytes = sizes.offset_nbytes + sizes.length_nbytes + (4 + sizes.length_nbytes if filtered else 0)
    if heap.header.id_nbytes - 1 >= direct_nbytes:
        located = {
            heap_id: _decode_huge(Cursor(heap_id[1:], "huge object ID", sizes), filtered, heap.address)
            for heap_id in ids
        }
    else:
        keyed = yield from _read_huge_index(heap)
        key_nbytes = min(8, heap.header.id_nbytes - 1)
        located = {}
        for heap_id in ids:
            key = int.from_bytes(heap_id[1 : 1 + key_nbytes], "little")
            if key not in keyed:
                raise MalformedFile(f"fractal heap has no huge object {key}", at=heap.address)
            located[heap_id] = keyed[key]
    buffers = yield [sizes.span(huge.address, huge.nbytes, "huge object") for huge in located.values()]
    found = {}
    for (heap_id, huge), buffer in zip(located.items(), buffers, strict=True):
        content = bytes(buffer)
        if filtered:
            content = undo_filters(content, heap.filters, huge.filter_mask, huge.unfiltered_nbytes)
            if len(content) != huge.unfiltered_nbytes:
                raise MalformedFile("huge object has the wrong size", at=huge.address)
        found[heap_id] = content
    return found


def _read_huge_index(heap: _Heap) -> Step[dict[int, _HugeObject]]:
    """Return all indirectly accessed huge objects by key."""
    if heap.header.huge_btree is None:
        raise MalformedFile("fractal heap has huge objects but no index for them", at=heap.address)
    kind, slabs = yield from read_records(heap.header.huge_btree, heap.sizes, 1, 2, 3, 4)
    if kind not in (1, 2):
        raise Unsupported(f"huge objects with indirect IDs are indexed by a B-tree of type {kind}, expected 1 or 2")
    keyed = {}
    for record in (row for rows in slabs for row in rows):
        cursor = Cursor(record.tobytes(), "huge object record", heap.sizes)
        huge = _decode_huge(cursor, kind in _HUGE_FILTERED_TYPES, heap.address)
        keyed[cursor.length()] = huge
    return keyed


def _decode_huge(cursor: Cursor, filtered: bool, at: int) -> _HugeObject:
    address, nbytes = cursor.address(), cursor.length()
    if address is None:
        raise MalformedFile("huge object has no address", at=at)
    return _HugeObject(address, nbytes, cursor.u32(), cursor.length()) if filtered else _HugeObject(address, nbytes)
