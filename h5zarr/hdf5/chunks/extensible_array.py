"""Chunks indexed by an extensible array. Spec: VII.D.

The array consists of super blocks of doubling size, which consist of data blocks of entries. The index block holds the
first entries, and points to the data blocks of the first super blocks. The remaining super blocks ("secondary blocks"
in the specification) point to their own data blocks. Large data blocks are paged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, empty_table
from h5zarr.hdf5.chunks.entries import EntryColumns, EntryRun, add_runs, page_runs
from h5zarr.hdf5.columns import UNDEFINED, address_column
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.on_disk import U8, U32, Address, Length, OnDisk, check_signature, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from h5zarr.io.steps import Step

_CHECKSUM_NBYTES = 4


@on_disk(b"EAHD")
class ExtensibleArrayHeader(OnDisk):
    """Header of an extensible array. Spec: VII.D."""

    version: U8
    client: U8
    entry_nbytes: U8
    max_count_bits: U8
    index_block_count: U8  # entries in the index block
    data_block_min_count: U8  # entries in the smallest data block
    super_block_min_pointers: U8
    page_bits: U8
    super_block_count: Length
    super_block_nbytes: Length
    data_block_count: Length
    data_block_nbytes: Length
    max_index: Length
    realized_count: Length
    index_block: Address
    checksum: U32


class _SuperBlock(NamedTuple):
    """A super block: its number of data blocks, the number of entries in each, and the number of its first entry."""

    data_block_count: int
    entry_count: int
    first_number: int


class _DataBlock(NamedTuple):
    """An allocated data block. `pages` marks the pages that were written; None if the block is not paged."""

    address: int
    entry_count: int
    first_number: int
    pages: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Array:
    """The header and values derived from it."""

    address: int
    header: ExtensibleArrayHeader
    sizes: Sizes
    super_blocks: tuple[_SuperBlock, ...]

    @property
    def prefix_nbytes(self) -> int:
        """Size of signature, version, client and header address."""
        return 6 + self.sizes.offset_nbytes

    @property
    def number_width(self) -> int:
        return (self.header.max_count_bits + 7) // 8

    @property
    def page_count(self) -> int:
        """Number of entries in a page."""
        return 1 << self.header.page_bits

    @property
    def direct_super_blocks(self) -> tuple[_SuperBlock, ...]:
        """The super blocks whose data blocks are listed in the index block."""
        return self.super_blocks[: 2 * (self.header.super_block_min_pointers.bit_length() - 1)]

    def page_number(self, entry_count: int) -> int:
        """Return the number of pages in a data block; 0 if it is not paged."""
        return entry_count >> self.header.page_bits if entry_count > self.page_count else 0

    def data_block_span(self, block: _DataBlock) -> Span:
        nbytes = self.prefix_nbytes + self.number_width + _CHECKSUM_NBYTES
        nbytes += block.entry_count * self.header.entry_nbytes + _CHECKSUM_NBYTES * self.page_number(block.entry_count)
        return self.sizes.span(block.address, nbytes, "extensible array data block")

    def check_prefix(self, block: memoryview, signature: bytes, at: int) -> None:
        """Raise MalformedFile unless `block` starts like a block of this array."""
        check_signature(block, signature, "extensible array block", at)
        header_at = self.sizes.address(int.from_bytes(block[6 : self.prefix_nbytes], "little"))
        if block[4] != 0 or block[5] != self.header.client or header_at != self.address:
            raise MalformedFile("extensible array block belongs to another array", at=at)


def read_extensible_array(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks in at most four rounds: header, index block, super blocks, data blocks."""
    (head,) = yield [ExtensibleArrayHeader.span(address, sizes)]
    header = ExtensibleArrayHeader.decode(head, sizes, at=address)
    if header.index_block is None:
        return empty_table(grid.rank)
    array = _Array(address=address, header=header, sizes=sizes, super_blocks=_find_super_blocks(header, address))
    columns = EntryColumns(header.client, header.entry_nbytes, grid, sizes, at=address, most=header.max_index)
    own, data_blocks, super_blocks = yield from _read_index_block(array, header.index_block)
    near = _data_block_spans(array, data_blocks)
    spans = [_super_block_span(array, at, block) for at, block in super_blocks]
    buffers = yield [*near, *spans]
    runs = [own, *_runs(array, data_blocks, buffers[: len(near)], columns)]
    far: list[_DataBlock] = []
    for (at, block), buffer in zip(super_blocks, buffers[len(near) :], strict=True):
        far += _decode_super_block(array, buffer, block, at)
    if far:
        buffers = yield _data_block_spans(array, far)
        runs += _runs(array, far, buffers, columns)
    add_runs(columns, runs)
    return columns.table()


def _find_super_blocks(header: ExtensibleArrayHeader, address: int) -> tuple[_SuperBlock, ...]:
    """Return all super blocks that the array can have."""
    for value in (header.data_block_min_count, header.super_block_min_pointers):
        if value == 0 or value & (value - 1):
            raise MalformedFile(f"extensible array has a block size of {value}, not a power of two", at=address)
    least_bits = header.data_block_min_count.bit_length() - 1
    if header.max_count_bits > 64 or header.max_count_bits < least_bits or header.page_bits > 32:
        raise MalformedFile(
            f"extensible array has counts of {header.max_count_bits} bits, blocks of at least "
            f"{header.data_block_min_count} entries, and pages of 2**{header.page_bits}",
            at=address,
        )
    return _super_blocks(header.index_block_count, header.data_block_min_count, 1 + header.max_count_bits - least_bits)


@cache
def _super_blocks(first_number: int, least_count: int, count: int) -> tuple[_SuperBlock, ...]:
    """Return `count` super blocks. Each pair holds twice as many entries as the pair before.

    Cached, because most arrays have the same super blocks.
    """
    blocks = []
    for number in range(count):
        block = _SuperBlock(1 << number // 2, least_count << (number + 1) // 2, first_number)
        first_number += block.data_block_count * block.entry_count
        blocks.append(block)
    return tuple(blocks)


def _read_index_block(array: _Array, at: int) -> Step[tuple[EntryRun, list[_DataBlock], list[tuple[int, _SuperBlock]]]]:
    """Return the entries in the index block, and the data blocks and super blocks that it points to. Spec: VII.D."""
    header, sizes = array.header, array.sizes
    direct, indirect = array.direct_super_blocks, array.super_blocks[len(array.direct_super_blocks) :]
    data_block_count = sum(block.data_block_count for block in direct)
    entries_nbytes = header.index_block_count * header.entry_nbytes
    pointer_count = data_block_count + len(indirect)
    nbytes = array.prefix_nbytes + entries_nbytes + pointer_count * sizes.offset_nbytes + _CHECKSUM_NBYTES
    (block,) = yield [sizes.span(at, nbytes, "extensible array index block")]
    check_checksum(block, "extensible array index block", at)
    array.check_prefix(block, b"EAIB", at)
    entries_end = array.prefix_nbytes + entries_nbytes
    own = EntryRun(block[array.prefix_nbytes : entries_end], 0)
    pointers = np.frombuffer(block, np.uint8, pointer_count * sizes.offset_nbytes, entries_end)
    addresses = address_column(pointers.reshape(pointer_count, sizes.offset_nbytes), 0, sizes).tolist()
    data_blocks: list[_DataBlock] = []
    for super_block in direct:
        data_blocks += _existing(addresses[: super_block.data_block_count], super_block)
        del addresses[: super_block.data_block_count]
    super_blocks = [(at, block) for at, block in zip(addresses, indirect, strict=True) if at != UNDEFINED]
    return own, data_blocks, super_blocks


def _existing(addresses: list[int], super_block: _SuperBlock) -> list[_DataBlock]:
    """Return the data blocks of a super block that are allocated."""
    count = super_block.entry_count
    return [
        _DataBlock(address, count, super_block.first_number + number * count, None)
        for number, address in enumerate(addresses)
        if address != UNDEFINED
    ]


def _bitmap_nbytes(array: _Array, super_block: _SuperBlock) -> int:
    """Return the size of the page bitmap of one data block."""
    return (array.page_number(super_block.entry_count) + 7) // 8


def _super_block_span(array: _Array, at: int, super_block: _SuperBlock) -> Span:
    per_block = _bitmap_nbytes(array, super_block) + array.sizes.offset_nbytes
    nbytes = array.prefix_nbytes + array.number_width + super_block.data_block_count * per_block + _CHECKSUM_NBYTES
    return array.sizes.span(at, nbytes, "extensible array super block")


def _decode_super_block(array: _Array, block: memoryview, super_block: _SuperBlock, at: int) -> list[_DataBlock]:
    check_checksum(block, "extensible array super block", at)
    array.check_prefix(block, b"EASB", at)
    count, width = super_block.data_block_count, _bitmap_nbytes(array, super_block)
    start = array.prefix_nbytes + array.number_width
    bitmaps = np.frombuffer(block, np.uint8, count * width, start)
    pointers = np.frombuffer(block, np.uint8, count * array.sizes.offset_nbytes, start + count * width)
    addresses = address_column(pointers.reshape(count, -1), 0, array.sizes).tolist()
    if not width:
        return _existing(addresses, super_block)
    # Space is reserved for whole bytes per data block, but the bits of all data blocks follow each other without gaps.
    page_number = array.page_number(super_block.entry_count)
    pages = np.unpackbits(bitmaps)[: count * page_number].reshape(count, page_number).astype(np.bool_)
    return [
        _DataBlock(
            address, super_block.entry_count, super_block.first_number + number * super_block.entry_count, pages[number]
        )
        for number, address in enumerate(addresses)
        if address != UNDEFINED
    ]


def _data_block_spans(array: _Array, blocks: list[_DataBlock]) -> list[Span]:
    """Return the spans of data blocks. Raises MalformedFile if they exceed the file, because they overlap."""
    spans = [array.data_block_span(block) for block in blocks]
    if sum(span.nbytes for span in spans) > array.sizes.end:
        raise MalformedFile("data blocks of an extensible array exceed the size of the file", at=array.address)
    return spans


def _runs(
    array: _Array, blocks: list[_DataBlock], buffers: Sequence[memoryview], columns: EntryColumns
) -> Iterator[EntryRun]:
    """Yield the entries of data blocks, page by page if they are paged."""
    start = array.prefix_nbytes + array.number_width
    for block, buffer in zip(blocks, buffers, strict=True):
        array.check_prefix(buffer, b"EADB", block.address)
        if array.page_number(block.entry_count):
            yield from _pages(array, block, buffer, columns)
        else:
            check_checksum(buffer, "extensible array data block", block.address)
            yield EntryRun(buffer[start:-_CHECKSUM_NBYTES], block.first_number)


def _pages(array: _Array, block: _DataBlock, buffer: memoryview, columns: EntryColumns) -> list[EntryRun]:
    pages_at = array.prefix_nbytes + array.number_width + _CHECKSUM_NBYTES
    check_checksum(buffer[:pages_at], "extensible array data block", block.address)
    every = np.ones(array.page_number(block.entry_count), np.bool_)
    return page_runs(
        columns,
        buffer[pages_at:],
        at=block.address + pages_at,
        written=every if block.pages is None else block.pages,
        page_count=array.page_count,
        entry_count=block.entry_count,
        first_number=block.first_number,
    )
