from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.btree2 import read_btree2
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid
from h5zarr.hdf5.model import ChunkTable, IndexKind
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, btree2_header, btree2_leaf, uint
from tests.hdf5.chunks.writing import check, grid, write

UNFILTERED, FILTERED = 10, 11
BTREE2 = IndexKind.BTREE_V2


def read(kind: int, *records: bytes) -> ChunkTable:
    header = btree2_header(
        kind=kind, root=0x400, root_count=len(records), total_count=len(records), record_nbytes=len(records[0])
    )
    file = FakeFile({0x100: header, 0x400: btree2_leaf(kind, records)})
    chunks = ChunkGrid(shape=(6, 8), max_shape=(None, None), chunk_shape=(3, 4), chunk_nbytes=24, filter_count=1)
    return run(read_btree2(0x100, chunks, file.sizes), file.read_many)


def test_records_of_unfiltered_chunks_have_an_address_and_an_index() -> None:
    table = read(UNFILTERED, uint(0x800) + uint(0) + uint(1), uint(0x900) + uint(1) + uint(0))
    assert table.index.tolist() == [[0, 1], [1, 0]]
    assert (table.address.tolist(), table.nbytes.tolist()) == ([0x800, 0x900], [24, 24])
    assert table.filter_mask.tolist() == [0, 0]


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_records_of_filtered_chunks_have_a_size_and_a_mask_too(width: int) -> None:
    record = uint(0x800) + uint(200, width) + uint(5, 4) + uint(1) + uint(0)
    table = read(FILTERED, record)
    assert table.index.tolist() == [[1, 0]]
    assert (table.nbytes.tolist(), table.filter_mask.tolist()) == ([200], [5])


@pytest.mark.parametrize(
    ("kind", "nbytes"), [(UNFILTERED, 23), (UNFILTERED, 25), (UNFILTERED, 8), (FILTERED, 28), (FILTERED, 37)]
)
def test_records_of_another_size_are_malformed(kind: int, nbytes: int) -> None:
    with pytest.raises(MalformedFile, match=f"chunk B-tree has records of {nbytes} bytes"):
        read(kind, bytes(nbytes))


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize(("shape", "depth"), [((1, 1), 0), ((7, 7), 0), ((32, 32), 1), ((41, 25), 1), ((80, 80), 2)])
def test_trees_of_any_depth(tmp_path: Path, shape: tuple[int, int], depth: int, compression: str | None) -> None:
    path = tmp_path / "btree2.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=shape, chunks=(1, 1), dtype="u1", maxshape=(None, None), compression=compression)
    count = shape[0] * shape[1]
    check(path, chunks=count if count <= 5000 else count // 2, kind=BTREE2)
    content = path.read_bytes()
    at = content.index(b"BTHD\0" + bytes((FILTERED if compression else UNFILTERED,)))
    assert struct.unpack_from("<H", content, at + 12)[0] == depth


@pytest.mark.parametrize("names", [["one"], ["one", "two"]])
def test_chunks_written_in_any_order_fill_leaves_unevenly(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "btree2.h5"
    order = np.random.default_rng(4).permutation(5000).tolist()
    with h5py.File(path, "w", libver="latest") as file:
        for name in names:
            values = file.create_dataset(name, (50, 100), "u1", chunks=(1, 1), maxshape=(None, None))
            for number in order:
                values.id.write_direct_chunk((number // 100, number % 100), bytes((number % 251,)))
    check(path, chunks=5000 * len(names), kind=BTREE2)


@pytest.mark.parametrize("maxshape", [(None, None, 10), (None, 9, None), (8, None, None), (None, None, None)])
@pytest.mark.parametrize("libver", ["v110", "latest"])
def test_any_two_axes_may_be_unlimited(tmp_path: Path, maxshape: tuple[int | None, ...], libver: str) -> None:
    shape, chunks = (8, 9, 10), (3, 4, 5)
    path = tmp_path / "btree2.h5"
    with h5py.File(path, "w", libver=libver) as file:
        write(file, shape=shape, chunks=chunks, maxshape=maxshape)
        write(file, "sparse", shape=shape, chunks=chunks, maxshape=maxshape, written=grid(shape, chunks)[1::4])
        write(file, "nothing", shape=shape, chunks=chunks, maxshape=maxshape, written=[])
    check(path, chunks=18 + 5, kind=BTREE2)
