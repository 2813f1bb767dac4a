from __future__ import annotations

import struct
from pathlib import Path

import h5py
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.btree1 import read_btree1
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid
from h5zarr.hdf5.model import ChunkTable, IndexKind
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import run
from tests.collections_of_files import SAMPLES
from tests.fake_file import FakeFile, btree1_node
from tests.hdf5.chunks.writing import check, grid, write
from tests.truth.scan_against_h5py import compare

BTREE1 = IndexKind.BTREE_V1


# --- bytes: a tree of rank 1, two entries in a node


def key(nbytes: int, mask: int, row: int, column: int) -> bytes:
    """Return the key of a chunk by its origin."""
    return struct.pack("<IIQQQ", nbytes, mask, row, column, 0)


def node(level: int, *entries: tuple[bytes, int]) -> bytes:
    return btree1_node(node_type=1, level=level, entries=entries, capacity=2, last_key=key(0, 0, 99, 99))


def read(parts: dict[int, bytes]) -> tuple[ChunkTable, FakeFile]:
    file = FakeFile(parts, nbytes=0x1000, sizes=Sizes(chunk_rank=1))
    chunks = ChunkGrid(shape=(6, 8), max_shape=(6, 8), chunk_shape=(3, 4), chunk_nbytes=24, filter_count=2)
    return run(read_btree1(0x100, chunks, file.sizes), file.read_many), file


def test_keys_hold_sizes_masks_and_origins() -> None:
    table, file = read({0x100: node(0, (key(24, 0, 0, 4), 0x800), (key(17, 3, 3, 0), 0x900))})
    assert table.index.tolist() == [[0, 1], [1, 0]]
    assert (table.address.tolist(), table.nbytes.tolist()) == ([0x800, 0x900], [24, 17])
    assert table.filter_mask.tolist() == [0, 3]
    assert file.rounds == 1


def test_a_tree_of_three_levels_takes_three_rounds() -> None:
    chunks = [(key(24, 0, 3 * row, 4 * column), 0x800 + 64 * (2 * row + column)) for row in (0, 1) for column in (0, 1)]
    table, file = read(
        {
            0x100: node(2, (chunks[0][0], 0x200), (chunks[3][0], 0x300)),
            0x200: node(1, (chunks[0][0], 0x400), (chunks[2][0], 0x500)),
            0x300: node(1, (chunks[3][0], 0x600)),
            0x400: node(0, *chunks[:2]),
            0x500: node(0, chunks[2]),
            0x600: node(0, chunks[3]),
        }
    )
    assert table.index.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert table.address.tolist() == [0x800, 0x840, 0x880, 0x8C0]
    assert [len(spans) for spans in file.requests] == [1, 2, 3]


@pytest.mark.parametrize("origin", [(1, 0), (0, 3)])
def test_a_chunk_off_the_grid_is_malformed(origin: tuple[int, int]) -> None:
    with pytest.raises(MalformedFile, match=r"outside the grid of \(3, 4\)"):
        read({0x100: node(0, (key(24, 0, *origin), 0x800))})


# --- files


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize(("count", "level"), [(1, 0), (64, 0), (65, 1), (1023, 1), (1024, 1), (1025, 1), (5000, 2)])
def test_trees_of_any_height(tmp_path: Path, count: int, level: int, compression: str | None) -> None:
    path = tmp_path / "btree1.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        write(file, shape=(2 * count,), chunks=(2,), dtype="u1", compression=compression)
    check(path, chunks=count, kind=BTREE1)
    content = path.read_bytes()
    starts = [at for at in range(0, len(content), 8) if content[at : at + 5] == b"TREE\x01"]
    assert max(content[at + 5] for at in starts) == level


def test_sparse_and_empty_trees(tmp_path: Path) -> None:
    path = tmp_path / "btree1.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        write(file, shape=(50, 60), chunks=(4, 5), written=[(0, 3), (12, 11), (5, 0)], fillvalue=9)
        write(file, "nothing", shape=(50, 60), chunks=(4, 5), written=[])
        write(file, "no elements", shape=(0, 60), chunks=(4, 5), maxshape=(None, 60))
    assert check(path, chunks=3, kind=BTREE1).counts["values"] == 3


@pytest.mark.parametrize("maxshape", [(None, 9, 10), (8, None, 10), (8, 9, None), (None, None, None), (30, 20, 10)])
def test_limits_do_not_matter(tmp_path: Path, maxshape: tuple[int | None, ...]) -> None:
    shape, chunks = (8, 9, 10), (3, 4, 5)
    path = tmp_path / "btree1.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        write(file, shape=shape, chunks=chunks, maxshape=maxshape, written=grid(shape, chunks)[::2])
    check(path, chunks=9, kind=BTREE1)


@pytest.mark.parametrize("name", ["superblock_v1_btree_ranks.h5", "superblock_v2_btree_ranks.h5"])
def test_ranks_that_h5py_cannot_choose_are_read_from_samples(name: str) -> None:
    found = compare(SAMPLES / name)
    assert not found.differences
    assert found.compared
