"""Chunks indexed by a fixed array. Spec: VII.C."""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid, empty_table
from h5zarr.hdf5.chunks.entries import EntryColumns, EntryRun, add_runs, page_runs
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.on_disk import U8, U32, Address, Length, OnDisk, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_MAX_PAGE_BITS = 32


@on_disk(b"FAHD")
class FixedArrayHeader(OnDisk):
    """Header of a fixed array. Spec: VII.C."""

    version: U8
    client: U8  # 0: chunks without filters, 1: chunks with filters
    entry_nbytes: U8
    page_bits: U8  # the block is paged if entry_count > 2**page_bits (not >=)
    entry_count: Length
    data_block: Address
    checksum: U32


@on_disk(b"FADB")
class FixedArrayDataBlock(OnDisk):
    """Prefix of the data block. A page bitmap or the entries follow. Spec: VII.C."""

    version: U8
    client: U8
    header: Address


def read_fixed_array(address: int, grid: ChunkGrid, sizes: Sizes) -> Step[ChunkTable]:
    """Return the chunks in two rounds: the header, then the data block with its pages, which follow it."""
    (head,) = yield [FixedArrayHeader.span(address, sizes)]
    header = FixedArrayHeader.decode(head, sizes, at=address)
    if header.data_block is None:
        return empty_table(grid.rank)
    if header.page_bits > _MAX_PAGE_BITS or header.entry_count * header.entry_nbytes > sizes.end:
        raise MalformedFile(f"fixed array of {header.entry_count} entries does not fit into the file", at=address)
    columns = EntryColumns(header.client, header.entry_nbytes, grid, sizes, at=address)
    prefix_nbytes = FixedArrayDataBlock.nbytes(sizes)
    page_count = -(-header.entry_count >> header.page_bits) if header.entry_count > 1 << header.page_bits else 0
    bitmap_nbytes = (page_count + 7) // 8
    nbytes = prefix_nbytes + bitmap_nbytes + header.entry_count * header.entry_nbytes + 4 + 4 * page_count
    (block,) = yield [sizes.span(header.data_block, nbytes, "fixed array data block")]
    prefix = FixedArrayDataBlock.decode(block, sizes, at=header.data_block)
    if prefix.header != address or prefix.client != header.client:
        raise MalformedFile("fixed array data block belongs to another array", at=header.data_block)
    if not page_count:
        check_checksum(block, "fixed array data block", header.data_block)
        add_runs(columns, [EntryRun(block[prefix_nbytes:-4], 0)])
        return columns.table()
    pages_at = prefix_nbytes + bitmap_nbytes + 4
    check_checksum(block[:pages_at], "fixed array data block", header.data_block)
    bits = np.unpackbits(np.frombuffer(block, np.uint8, bitmap_nbytes, prefix_nbytes))
    runs = page_runs(
        columns,
        block[pages_at:],
        at=header.data_block + pages_at,
        written=bits[:page_count].astype(np.bool_),
        page_count=1 << header.page_bits,
        entry_count=header.entry_count,
    )
    add_runs(columns, runs)
    return columns.table()
