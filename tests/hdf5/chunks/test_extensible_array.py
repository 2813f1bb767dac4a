from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid
from h5zarr.hdf5.chunks.extensible_array import read_extensible_array
from h5zarr.hdf5.model import ChunkTable, IndexKind
from h5zarr.io.steps import run
from tests.fake_file import UNDEFINED, FakeFile, uint, with_checksum
from tests.fuzz.mutating import correct_checksums
from tests.fuzz.seeds import map_hdf5
from tests.hdf5.chunks.writing import check, grid, write

EXTENSIBLE = IndexKind.EXTENSIBLE_ARRAY
AT = 0x100


# --- bytes: two entries in the index block, data blocks of one and more entries, super blocks of two and more pointers


def header(**changes: int) -> bytes:
    fields = {
        "version": 0,
        "client": 0,
        "entry_nbytes": 8,
        "max_count_bits": 5,
        "index_block_count": 2,
        "data_block_min_count": 1,
        "super_block_min_pointers": 2,
        "page_bits": 1,
    } | changes
    index_block = fields.pop("index_block", 0x400)
    return with_checksum(b"EAHD" + bytes(fields.values()) + bytes(4 * 8) + uint(1 << 20) + bytes(8) + uint(index_block))


def block(signature: bytes, *numbers: int, place: int | None = None, extra: bytes = b"", owner: int = AT) -> bytes:
    """Return an index, super or data block; the last two say where in the array they begin."""
    stated = b"" if place is None else uint(place, 1)
    return with_checksum(signature + bytes((0, 0)) + uint(owner) + stated + extra + b"".join(map(uint, numbers)))


# The super blocks hold 1x1, 1x2, 2x2, 2x4, 4x4 and 4x8 entries, from numbers 2, 3, 5, 9, 17 and 33 on. The data blocks
# of the first two are named by the index block, the others by super blocks. Those of 4 and 8 entries have pages of 2.
INDEX = block(b"EAIB", 0x800, UNDEFINED, 0x1000, 0x1100, 0x2000, 0x2100, UNDEFINED, UNDEFINED)
PARTS = {
    AT: header(),
    0x400: INDEX,
    0x1000: block(b"EADB", 0x810, place=0),
    0x1100: block(b"EADB", 0x820, 0x830, place=1),
    0x2000: block(b"EASB", 0x3000, UNDEFINED, place=3),
    0x2100: block(b"EASB", UNDEFINED, 0x3100, place=7, extra=b"\x30\x00"),  # bits 2 and 3: both pages of block 1
    0x3000: block(b"EADB", UNDEFINED, 0x840, place=3),
    0x3100: block(b"EADB", place=11)
    + with_checksum(uint(0x850) + uint(UNDEFINED))
    + with_checksum(uint(0x860) + uint(0x870)),
}


def read(parts: dict[int, bytes]) -> tuple[ChunkTable, FakeFile]:
    file = FakeFile(parts, nbytes=0x4000)
    chunks = ChunkGrid(shape=(64,), max_shape=(None,), chunk_shape=(1,), chunk_nbytes=2, filter_count=0)
    return run(read_extensible_array(AT, chunks, file.sizes), file.read_many), file


def test_every_part_of_an_array_in_four_rounds() -> None:
    table, file = read(PARTS)
    found = dict(zip(table.index[:, 0].tolist(), table.address.tolist(), strict=True))
    assert found == {0: 0x800, 2: 0x810, 3: 0x820, 4: 0x830, 6: 0x840, 13: 0x850, 15: 0x860, 16: 0x870}
    assert [len(spans) for spans in file.requests] == [1, 1, 4, 2]


def test_pages_that_were_never_written_are_passed_over() -> None:
    parts = {**PARTS, 0x2100: block(b"EASB", UNDEFINED, 0x3100, place=7, extra=b"\x10\x00")}
    parts[0x3100] = block(b"EADB", place=11) + b"\xaa" * 20 + with_checksum(uint(0x860) + uint(0x870))
    table, _ = read(parts)
    assert sorted(table.index[:, 0].tolist()) == [0, 2, 3, 4, 6, 15, 16]


def test_an_array_without_an_index_block_is_empty() -> None:
    table, file = read({AT: header(index_block=UNDEFINED)})
    assert len(table) == 0
    assert file.rounds == 1


def damaged(content: bytes, position: int) -> bytes:
    return content[:position] + bytes((content[position] ^ 1,)) + content[position + 1 :]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ({AT: header(data_block_min_count=3)}, "block size of 3, not a power of two"),
        ({AT: header(super_block_min_pointers=0)}, "block size of 0, not a power of two"),
        ({AT: header(max_count_bits=65)}, "extensible array has counts of 65 bits"),
        ({AT: header(data_block_min_count=64)}, "counts of 5 bits, blocks of at least 64 entries"),
        ({AT: header(page_bits=33)}, r"at least 1 entries, and pages of 2\*\*33"),
        ({AT: header(client=3)}, "client 3"),
        ({AT: header(entry_nbytes=7)}, "entries of 7 bytes"),
        ({AT: header(index_block=0x3FF0)}, "outside the file"),
        ({AT: damaged(header(), 20)}, "header fails its checksum"),
        ({0x400: damaged(INDEX, 20)}, "index block fails its checksum"),
        ({0x400: with_checksum(b"EAIX" + INDEX[4:-4])}, "signature"),
        ({0x400: with_checksum(INDEX[:6] + uint(0x108) + INDEX[14:-4])}, "belongs to another array"),
        ({0x1000: block(b"EADB", 0x810, place=0, owner=0x108)}, "belongs to another array"),
        ({0x1000: damaged(PARTS[0x1000], 16)}, "data block fails its checksum"),
        ({0x2000: damaged(PARTS[0x2000], 16)}, "super block fails its checksum"),
        ({0x3100: damaged(PARTS[0x3100], 14)}, "data block fails its checksum"),
        ({0x3100: damaged(PARTS[0x3100], 20)}, "chunk index page fails its checksum"),
        ({0x2000: block(b"EASB", 0x3FF8, UNDEFINED, place=3)}, "outside the file"),
    ],
)
def test_a_broken_array_is_malformed(parts: dict[int, bytes], complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        read({**PARTS, **parts})


# --- files


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("count", [1, 4, 5, 20, 21, 1023, 1024, 1025, 3000])
def test_arrays_of_any_length(tmp_path: Path, count: int, compression: str | None) -> None:
    """The index block holds 4 entries; data blocks of 16 and more follow, then super blocks."""
    path = tmp_path / "extensible.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(2 * count - 1,), chunks=(2,), dtype="u1", maxshape=(None,), compression=compression)
    check(path, chunks=count, kind=EXTENSIBLE)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_sparse_arrays(tmp_path: Path, compression: str | None) -> None:
    written = [(0,), (3,), (4,), (19,), (100,), (1500,), (2999,)]
    path = tmp_path / "extensible.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(3000,), chunks=(1,), maxshape=(None,), written=written, compression=compression, dtype="u1")
        write(file, "nothing", shape=(3000,), chunks=(1,), maxshape=(None,), written=[], dtype="u1")
        write(file, "no elements", shape=(0,), chunks=(1,), maxshape=(None,), dtype="u1")
    check(path, chunks=len(written), kind=EXTENSIBLE)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_paged_data_blocks_in_several_super_blocks(tmp_path: Path, compression: str | None) -> None:
    """From entry 131,060 on, data blocks have 2048 entries in two pages; from entry 524,276 on, 4096 in four."""
    first, second = 131_060, 262_132
    written = [0, 5, first - 1, first, first + 1023, first + 1024, first + 2048, first + 5 * 2048 + 1500]
    written += [second - 1, second, second + 3000, second + 3 * 2048, 524_276, 524_276 + 4095, 529_999]
    path = tmp_path / "extensible.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = write(
            file,
            shape=(4 * 530_000,),
            chunks=(4,),
            maxshape=(None,),
            written=[(number,) for number in written],
            compression=compression,
            dtype="u1",
        )
        assert dataset.id.get_num_chunks() == len(written)
    check(path, chunks=len(written), kind=EXTENSIBLE)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("limits", [(8, 9, 10), (13, 9, 10), (8, 20, 10), (8, 9, 31)])
@pytest.mark.parametrize("libver", ["v110", "latest"])
def test_the_unlimited_axis_may_be_any(tmp_path: Path, axis: int, limits: tuple[int, ...], libver: str) -> None:
    shape, chunks = (8, 9, 10), (3, 4, 5)
    maxshape = tuple(None if number == axis else limit for number, limit in enumerate(limits))
    path = tmp_path / "extensible.h5"
    with h5py.File(path, "w", libver=libver) as file:
        write(file, shape=shape, chunks=chunks, maxshape=maxshape)
        write(file, "sparse", shape=shape, chunks=chunks, maxshape=maxshape, written=grid(shape, chunks)[1::4])
    check(path, chunks=18 + 5, kind=EXTENSIBLE)


def test_an_array_may_grow_along_its_unlimited_axis(tmp_path: Path) -> None:
    path = tmp_path / "extensible.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = write(file, shape=(4, 5), chunks=(2, 2), maxshape=(9, None))
        dataset.resize((4, 50))
        dataset[:, 40:] = 11
        dataset.resize((7, 50))
        dataset[6] = 12
    check(path, chunks=6 + 10 + 25, kind=EXTENSIBLE)


def test_entries_from_the_highest_number_on_are_not_looked_at_as_in_the_library(tmp_path: Path) -> None:
    path = tmp_path / "array.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=np.arange(20), chunks=(2,), maxshape=(None,), fillvalue=-1)
    seed = map_hdf5("array.h5", path.read_bytes())
    content = bytearray(seed.content)
    place = content.find(b"EAHD") + 44  # behind eight numbers of one byte and four of eight
    assert content[place] == 10
    content[place] = 7
    correct_checksums(content, seed)
    path.write_bytes(content)
    with h5py.File(path) as file:
        shown = file["x"][...]
    assert shown.tolist() == [*range(14), *[-1] * 6]
    ((_, dataset),) = h5zarr.scan(str(path)).datasets()
    assert dataset.layout.chunks.index[:, 0].tolist() == list(range(7))
