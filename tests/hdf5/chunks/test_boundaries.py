"""What every chunk index must get right at its boundaries, whatever the file around it looks like."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.hdf5.model import IndexKind
from tests.hdf5.chunks.writing import check, early, grid, write

SHAPE, CHUNKS = (9, 10), (4, 3)
LIBVERS = ["earliest", "v108", "v110", "v112", "v114", "latest"]
MAXSHAPES: dict[str, tuple[int | None, ...] | None] = {
    "fixed": None,
    "fixed, may grow": (20, 30),
    "unlimited first": (None, 10),
    "unlimited last": (9, None),
    "unlimited both": (None, None),
}


def every_dataset(file: h5py.File, *, unlimited: bool = True, **options: object) -> int:
    """Write a dataset of each kind, whole and sparse, and return how many chunks that makes."""
    count = 0
    for name, maxshape in MAXSHAPES.items():
        if name.startswith("unlimited") and not unlimited:
            continue
        write(file, name, shape=SHAPE, chunks=CHUNKS, maxshape=maxshape, **options)
        write(file, f"{name}, filtered", shape=SHAPE, chunks=CHUNKS, maxshape=maxshape, compression="gzip", **options)
        some = grid(SHAPE, CHUNKS)[2::5]
        write(file, f"{name}, sparse", shape=SHAPE, chunks=CHUNKS, maxshape=maxshape, written=some, **options)
        count += 2 * len(grid(SHAPE, CHUNKS)) + len(some)
    write(file, "single", shape=SHAPE, chunks=SHAPE, **options)
    write(file, "implicit", shape=SHAPE, chunks=CHUNKS, dcpl=early(), **options)
    return count + 1 + len(grid(SHAPE, CHUNKS))


@pytest.mark.parametrize("libver", LIBVERS)
def test_every_version_of_the_library(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "file.h5"
    bounds = libver if libver in ("earliest", "latest") else (libver, libver)
    with h5py.File(path, "w", libver=bounds) as file:
        count = every_dataset(file)
    check(path, chunks=count)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("dtype", [">i2", ">f4", "<f8", "u1", "S5"])
def test_types_of_either_byte_order(tmp_path: Path, libver: str, dtype: str) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver) as file:
        count = every_dataset(file, dtype=dtype)
    check(path, chunks=count)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("nbytes", [512, 1024, 4096])
def test_files_behind_a_user_block(tmp_path: Path, libver: str, nbytes: int) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=nbytes) as file:
        count = every_dataset(file)
    check(path, chunks=count)


@pytest.mark.parametrize("libver", [h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST])
@pytest.mark.parametrize("offset_nbytes", [4, 8])
@pytest.mark.parametrize("length_nbytes", [4, 8])
def test_files_with_other_sizes(tmp_path: Path, libver: int, offset_nbytes: int, length_nbytes: int) -> None:
    """libhdf5 itself takes an unlimited extent of four bytes for a limit, and then does not find its own chunks."""
    path = tmp_path / "file.h5"
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_sizes(offset_nbytes, length_nbytes)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(libver, h5py.h5f.LIBVER_LATEST)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    with h5py.File(h5py.h5f.create(str(path).encode(), fcpl=creation, fapl=access)) as file:
        count = every_dataset(file, unlimited=length_nbytes == 8)
    check(path, chunks=count)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("maxshape", [None, (None,)])
def test_numbers_of_chunks_around_a_page(
    tmp_path: Path, count: int, libver: str, maxshape: tuple[int | None, ...] | None
) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver) as file:
        options = {"maxshape": maxshape or (max(3, 3 * count),)}
        write(file, shape=(3 * count,), chunks=(3,), dtype="u1", **options)
        write(file, "missing", shape=(3 * count,), chunks=(3,), dtype="u1", written=[], fillvalue=5, **options)
    check(path, chunks=count)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("maxshape", [(40, 50), (None, 50), (40, None), (None, None)])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_chunks_that_a_shrunk_extent_left_behind(
    tmp_path: Path, libver: str, maxshape: tuple[int | None, ...], compression: str | None
) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver) as file:
        dataset = write(file, shape=(20, 30), chunks=(4, 5), maxshape=maxshape, compression=compression)
        dataset.resize((9, 11))
    check(path, chunks=3 * 3)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("rank", [1, 3, 5])
def test_any_rank(tmp_path: Path, libver: str, rank: int) -> None:
    shape, chunks = (3, 4, 2, 5, 3)[:rank], (2, 3, 1, 2, 3)[:rank]
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for number, maxshape in enumerate([None, (None, *shape[1:]), (None,) * rank]):
            write(file, f"data {number}", shape=shape, chunks=chunks, maxshape=maxshape)
    check(path, chunks=3 * len(grid(shape, chunks)))


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_chunks_larger_than_the_extent(tmp_path: Path, libver: str) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=libver) as file:
        write(file, shape=(3, 4), chunks=(8, 8), maxshape=(None, None))
        write(file, "one axis", shape=(3, 4), chunks=(8, 2), maxshape=(None, 4))
        write(file, "within limits", shape=(3, 4), chunks=(8, 8), maxshape=(20, 20))
    check(path, chunks=1 + 2 + 1)


def test_the_kinds_of_index_are_those_that_the_options_are_meant_for(tmp_path: Path) -> None:
    expected = {
        "fixed": IndexKind.FIXED_ARRAY,
        "fixed, may grow": IndexKind.FIXED_ARRAY,
        "unlimited first": IndexKind.EXTENSIBLE_ARRAY,
        "unlimited last": IndexKind.EXTENSIBLE_ARRAY,
        "unlimited both": IndexKind.BTREE_V2,
    }
    for name, kind in expected.items():
        path = tmp_path / f"{kind.name} {name}.h5"
        with h5py.File(path, "w", libver="latest") as file:
            write(file, shape=SHAPE, chunks=CHUNKS, maxshape=MAXSHAPES[name])
        check(path, chunks=len(grid(SHAPE, CHUNKS)), kind=kind)


def test_what_is_written_differs_from_chunk_to_chunk(tmp_path: Path) -> None:
    """Else a table with its rows mixed up would pass."""
    with h5py.File(tmp_path / "file.h5", "w") as file:
        dataset = write(file, shape=SHAPE, chunks=CHUNKS)
        chunks = [dataset.id.read_direct_chunk(tuple(np.multiply(index, CHUNKS)))[1] for index in grid(SHAPE, CHUNKS)]
    assert len(set(chunks)) == len(chunks)
