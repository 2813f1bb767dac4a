from __future__ import annotations

import struct
from pathlib import Path

import h5py
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid
from h5zarr.hdf5.chunks.fixed_array import read_fixed_array
from h5zarr.hdf5.model import ChunkTable, IndexKind
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, uint, with_checksum
from tests.hdf5.chunks.writing import check, grid, write

FIXED = IndexKind.FIXED_ARRAY


# --- bytes


def header(*, client: int = 0, entry_nbytes: int = 8, page_bits: int = 10, count: int = 4, block: int = 0x400) -> bytes:
    head = b"FAHD" + bytes((0, client, entry_nbytes, page_bits)) + uint(count) + uint(block)
    return with_checksum(head)


def data_block(*entries: bytes, client: int = 0, owner: int = 0x100) -> bytes:
    return with_checksum(b"FADB" + bytes((0, client)) + uint(owner) + b"".join(entries))


def paged_block(bitmap: bytes, *pages: bytes) -> bytes:
    return with_checksum(b"FADB" + bytes((0, 0)) + uint(0x100) + bitmap) + b"".join(pages)


def read(file: FakeFile, extent: int = 8) -> ChunkTable:
    chunks = ChunkGrid(shape=(extent,), max_shape=(extent,), chunk_shape=(2,), chunk_nbytes=2, filter_count=0)
    return run(read_fixed_array(0x100, chunks, file.sizes), file.read_many)


def test_entries_without_an_address_are_left_out() -> None:
    file = FakeFile({0x100: header(), 0x400: data_block(uint(0x800), uint(UNDEFINED), uint(0x900), uint(UNDEFINED))})
    table = read(file)
    assert table.index.tolist() == [[0], [2]]
    assert table.address.tolist() == [0x800, 0x900]
    assert table.nbytes.tolist() == [2, 2]
    assert file.rounds == 2


def test_entries_of_filtered_chunks_have_sizes_and_masks() -> None:
    entries = [uint(0x800) + uint(300, 2) + uint(0, 4), uint(0x900) + uint(17, 2) + uint(5, 4)]
    parts = {0x100: header(client=1, entry_nbytes=14, count=2), 0x400: data_block(*entries, client=1)}
    table = read(FakeFile(parts), extent=4)
    assert (table.nbytes.tolist(), table.filter_mask.tolist()) == ([300, 17], [0, 5])


def test_an_array_without_a_block_is_empty() -> None:
    file = FakeFile({0x100: header(block=UNDEFINED)})
    assert len(read(file)) == 0
    assert file.rounds == 1


def test_only_pages_of_the_bitmap_are_read_and_the_last_may_be_short() -> None:
    """Five entries in pages of two; the bit of the first page is the highest."""
    unwritten = b"\xaa" * 20
    pages = [with_checksum(uint(0x800) + uint(UNDEFINED)), unwritten, with_checksum(uint(0x900))]
    file = FakeFile({0x100: header(page_bits=1, count=5), 0x400: paged_block(b"\xa0", *pages)})
    table = read(file, extent=10)
    assert (table.index.tolist(), table.address.tolist()) == ([[0], [4]], [0x800, 0x900])
    assert file.rounds == 2


@pytest.mark.parametrize(("page", "at"), [(0, 0), (2, 40)])
def test_a_damaged_page_is_malformed(page: int, at: int) -> None:
    pages = [bytearray(with_checksum(uint(0x800) * 2)), bytearray(20), bytearray(with_checksum(uint(0x900)))]
    pages[page][0] ^= 1
    file = FakeFile({0x100: header(page_bits=1, count=5), 0x400: paged_block(b"\xa0", *map(bytes, pages))})
    with pytest.raises(MalformedFile, match="chunk index page fails its checksum") as caught:
        read(file, extent=10)
    assert caught.value.address == 0x400 + 14 + 1 + 4 + at


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({0x100: header(client=2)}, "client 2"),
        ({0x100: header(entry_nbytes=9)}, "entries of 9 bytes"),
        ({0x100: header(client=1, entry_nbytes=12)}, "entries of 12 bytes"),
        ({0x100: header(client=1, entry_nbytes=21)}, "entries of 21 bytes"),
        ({0x100: header(count=1 << 50)}, "array of 1125899906842624 entries"),
        ({0x100: header(page_bits=33)}, "does not fit into the file"),
        ({0x100: header(count=140)}, "outside the file"),
        ({0x100: header()[:-1] + b"\0"}, "header fails its checksum"),
        ({0x400: data_block(*[uint(0x800)] * 4, owner=0x108)}, "belongs to another array"),
        ({0x400: data_block(*[uint(0x800)] * 4, client=1)}, "belongs to another array"),
        ({0x400: data_block(*[uint(0x800)] * 4)[:-1] + b"\0"}, "data block fails its checksum"),
        ({0x400: b"FADX" + bytes(50)}, "signature"),
    ],
)
def test_a_broken_array_is_malformed(parts: dict[int, bytes], complaint: str) -> None:
    whole = {0x100: header(), 0x400: data_block(*[uint(0x800)] * 4)}
    assert len(read(FakeFile(whole, nbytes=0x480))) == 4
    with pytest.raises(MalformedFile, match=complaint):
        read(FakeFile({**whole, **parts}, nbytes=0x480))


# --- files


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("count", [2, 1023, 1024, 1025, 2048, 2049])
def test_arrays_around_the_size_of_a_page(tmp_path: Path, count: int, compression: str | None) -> None:
    path = tmp_path / "fixed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(2 * count - 1,), chunks=(2,), dtype="u1", compression=compression)
    check(path, chunks=count, kind=FIXED)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_sparse_pages(tmp_path: Path, compression: str | None) -> None:
    written = [(0,), (1023,), (2048,), (2049,), (5000,)]  # pages 0, 2 and the last, which is short
    path = tmp_path / "fixed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = write(file, shape=(5001,), chunks=(1,), written=written, compression=compression, dtype="u1")
        assert dataset.id.get_num_chunks() == 5
    check(path, chunks=5, kind=FIXED)
    assert b"FADB" in path.read_bytes()


def test_no_chunk_at_all(tmp_path: Path) -> None:
    path = tmp_path / "fixed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(50, 50), chunks=(5, 5), written=[], fillvalue=7)
        write(file, "no elements", shape=(0, 50), chunks=(5, 5), maxshape=(20, 50))
    assert check(path, chunks=0, kind=FIXED).counts["values"] == 2


@pytest.mark.parametrize(
    ("shape", "maxshape", "chunks"),
    [
        ((6, 7), (6, 20), (2, 3)),
        ((6, 7), (20, 7), (2, 3)),
        ((6, 7), (13, 22), (4, 5)),
        ((3, 4, 5), (9, 4, 11), (2, 2, 2)),
        ((3, 4, 5), (4, 9, 6), (1, 3, 2)),
    ],
)
def test_arrays_that_may_grow_are_numbered_by_their_limits(
    tmp_path: Path, shape: tuple[int, ...], maxshape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    path = tmp_path / "fixed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=shape, chunks=chunks, maxshape=maxshape)
        write(file, "sparse", shape=shape, chunks=chunks, maxshape=maxshape, written=grid(shape, chunks)[1::3])
    expected = len(grid(shape, chunks)) + len(grid(shape, chunks)[1::3])
    check(path, chunks=expected, kind=FIXED)


def test_the_fields_of_the_header_are_where_this_test_expects_them(tmp_path: Path) -> None:
    path = tmp_path / "fixed.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(8,), chunks=(2,))
    content = path.read_bytes()
    at = content.index(b"FAHD")
    block = struct.unpack_from("<Q", content, at + 16)[0]
    assert content[at : at + 28] == header(count=4, block=block)
