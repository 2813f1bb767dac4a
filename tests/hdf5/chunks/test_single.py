from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.chunk_table import ChunkGrid
from h5zarr.hdf5.chunks.single import implicit_chunks, single_chunk
from h5zarr.hdf5.model import IndexKind
from h5zarr.hdf5.sizes import Sizes
from tests.hdf5.chunks.writing import check, early, write


def grid(shape: tuple[int, ...], max_shape: tuple[int | None, ...], chunk_shape: tuple[int, ...]) -> ChunkGrid:
    nbytes = 2 * int(np.prod(chunk_shape))
    return ChunkGrid(shape=shape, max_shape=max_shape, chunk_shape=chunk_shape, chunk_nbytes=nbytes, filter_count=0)


def test_a_single_chunk_has_the_size_of_a_chunk_or_the_stated_one() -> None:
    table = single_chunk(0x800, grid((3, 4), (3, 4), (3, 4)), None, 0, Sizes(end=0x1000))
    assert (table.index.tolist(), table.address.tolist(), table.nbytes.tolist()) == ([[0, 0]], [0x800], [24])
    table = single_chunk(0x800, grid((3, 4), (3, 4), (3, 4)), 11, 2, Sizes(end=0x1000))
    assert (table.nbytes.tolist(), table.filter_mask.tolist()) == ([11], [2])


@pytest.mark.parametrize("nbytes", [None, 1 << 50])
def test_a_single_chunk_outside_the_file_is_malformed(nbytes: int | None) -> None:
    with pytest.raises(MalformedFile, match="outside the file"):
        single_chunk(0x800, grid((3, 4), (3, 4), (3, 4)), nbytes, 0, Sizes(end=0x808))


def test_implicit_chunks_follow_one_another_through_the_largest_grid() -> None:
    table = implicit_chunks(0x100, grid((4, 2), (4, 6), (2, 2)), Sizes(end=0x1000))
    assert table.index.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert table.address.tolist() == [0x100 + 8 * number for number in range(6)]
    assert table.nbytes.tolist() == [8] * 6


def test_implicit_chunks_need_limits_and_room() -> None:
    with pytest.raises(MalformedFile, match="with an unlimited axis"):
        implicit_chunks(0x100, grid((4, 2), (4, None), (2, 2)), Sizes(end=0x1000))
    with pytest.raises(MalformedFile, match="implicit chunk index of 1000000 chunks reaches outside the file"):
        implicit_chunks(0x100, grid((4,), (2_000_000,), (2,)), Sizes(end=0x1000))


@pytest.mark.parametrize("libver", ["v110", "latest"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_one_chunk_for_all(tmp_path: Path, libver: str, compression: str | None) -> None:
    path = tmp_path / "single.h5"
    with h5py.File(path, "w", libver=libver) as file:
        write(file, shape=(5, 6), chunks=(5, 6), compression=compression)
        write(file, "empty", shape=(5, 6), chunks=(5, 6), compression=compression, written=[])
    check(path, chunks=1, kind=IndexKind.SINGLE)


@pytest.mark.parametrize("maxshape", [None, (7, 11), (14, 7), (30, 40)])
def test_implicit_chunks_of_arrays_that_may_grow(tmp_path: Path, maxshape: tuple[int, ...] | None) -> None:
    path = tmp_path / "implicit.h5"
    with h5py.File(path, "w", libver="latest") as file:
        write(file, shape=(7, 7), chunks=(3, 2), maxshape=maxshape, dcpl=early())
    check(path, chunks=3 * 4, kind=IndexKind.IMPLICIT)
