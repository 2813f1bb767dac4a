"""Raw files: segments are referred to where chunks fit them; short files read as zeros, as in the library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.model import ExternalLayout, ExternalSegment
from h5zarr.netcdf4.external import RawFileMissing, find_pieces
from h5zarr.tree import ConvertedValues, StoredChunks
from tests.collections_of_files import SHARED
from tests.netcdf4.shown import find_dataset, interpret, opened, show

TO_THE_END = h5py.h5f.UNLIMITED


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: the library looks for raw files nowhere else."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(
    folder: Path, shape: tuple[int, ...], segments: list[tuple[str, int, int]], dtype: Any = "i4", **more: Any
) -> Path:
    path = folder / "made.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape, dtype, external=segments, **more)
    return path


def write_raw(folder: Path, name: str, count: int, dtype: str = "i4") -> None:
    np.arange(1, count + 1).astype(dtype).tofile(folder / name)


def compare(path: Path, kind: type) -> Any:
    """Check all values of "x" against h5py's, and that they are stored as `kind`; return where."""
    with opened(path) as related, h5py.File(path) as file:
        storage = interpret(related).storage
        np.testing.assert_array_equal(show(related), file["x"][...])
    assert isinstance(storage, kind)
    return storage


def test_one_segment_is_one_chunk_of_the_raw_file(folder: Path) -> None:
    write_raw(folder, "a.raw", 20)
    stored = compare(write(folder, (3, 4), [("a.raw", 16, 48)]), StoredChunks)
    assert (stored.chunk_shape, stored.address.tolist(), stored.nbytes.tolist(), stored.source) == (
        (3, 4),
        [16],
        [48],
        1,
    )


def test_a_segment_may_reach_to_the_end_of_the_dataset(folder: Path) -> None:
    write_raw(folder, "a.raw", 20)
    compare(write(folder, (8,), [("a.raw", 0, 8), ("a.raw", 40, TO_THE_END)]), StoredChunks)


def test_neighbouring_segments_of_one_file_are_one(folder: Path) -> None:
    write_raw(folder, "a.raw", 20)
    stored = compare(write(folder, (7,), [("a.raw", 4, 12), ("a.raw", 16, 16)]), StoredChunks)
    assert stored.nbytes.tolist() == [28]


def test_segments_of_several_files_become_equal_chunks(folder: Path) -> None:
    write_raw(folder, "a.raw", 20)
    write_raw(folder, "b.raw", 20)
    stored = compare(write(folder, (5, 4), [("a.raw", 0, 32), ("b.raw", 16, 48)]), StoredChunks)
    assert (stored.chunk_shape, stored.source.tolist()) == ((1, 4), [1, 1, 2, 2, 2])
    stored = compare(write(folder, (1, 6, 2), [("a.raw", 0, 16), ("b.raw", 16, 32)]), StoredChunks)
    assert (stored.chunk_shape, stored.index.tolist()) == ((1, 2, 2), [[0, 0, 0], [0, 1, 0], [0, 2, 0]])


def test_segments_that_end_inside_a_row_are_put_together(folder: Path) -> None:
    write_raw(folder, "a.raw", 20)
    write_raw(folder, "b.raw", 20)
    compare(write(folder, (5, 4), [("a.raw", 0, 36), ("b.raw", 16, 44)]), ConvertedValues)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_what_a_raw_file_lacks_reads_as_zeros_whatever_the_fill_value(folder: Path, count: int) -> None:
    write_raw(folder, "a.raw", count)
    compare(write(folder, (8,), [("a.raw", 0, 32)], fillvalue=5), ConvertedValues)


@pytest.mark.parametrize("dtype", [">f4", "<u2", "S4"])
def test_types_and_byte_orders(folder: Path, dtype: str) -> None:
    write_raw(folder, "a.raw", 16, dtype)
    compare(
        write(folder, (6,), [("a.raw", np.dtype(dtype).itemsize * 2, TO_THE_END)], dtype),
        (StoredChunks, ConvertedValues),
    )


def test_a_missing_raw_file_is_an_error_and_no_fill(folder: Path) -> None:
    write_raw(folder, "a.raw", 2)
    path = write(folder, (4,), [("a.raw", 0, 8), ("none.raw", 0, 8)], fillvalue=5)
    with h5py.File(path) as file, pytest.raises(OSError, match="external raw data file"):
        file["x"][...]
    with opened(path) as related, pytest.raises(RawFileMissing, match=r"'none\.raw', which does not exist"):
        interpret(related)


def test_a_segment_that_is_not_needed_may_be_missing(folder: Path) -> None:
    write_raw(folder, "a.raw", 4)
    compare(write(folder, (4,), [("a.raw", 0, 16), ("none.raw", 0, 8)]), StoredChunks)


def test_the_directory_of_the_file_comes_before_the_working_directory(folder: Path) -> None:
    (folder / "data").mkdir()
    write_raw(folder, "a.raw", 4)
    path = write(folder / "data", (4,), [("a.raw", 0, 16)])
    with opened(path, allow=[str(folder)]) as related:
        assert related.urls[1] == str(folder / "a.raw")
    write_raw(folder / "data", "a.raw", 4)
    with opened(path) as related:
        assert related.urls[1] == str(folder / "data" / "a.raw")


def test_text_of_variable_length_is_refused(folder: Path) -> None:
    (folder / "a.raw").write_bytes(bytes(64))
    path = write(folder, (2,), [("a.raw", 0, 64)], h5py.string_dtype())
    with opened(path) as related, pytest.raises(H5ZarrError, match="raw file"):
        interpret(related)


def test_segments_that_are_shorter_than_the_dataset_are_malformed(folder: Path) -> None:
    """The library writes no such dataset; so the list is cut in the scanned file."""
    write_raw(folder, "a.raw", 4)
    with opened(write(folder, (4,), [("a.raw", 0, 16)])) as related:
        dataset = find_dataset(related, "x")
        short = replace(dataset, layout=ExternalLayout((ExternalSegment(file="a.raw", address=0, nbytes=12),)))
        with pytest.raises(MalformedFile, match="segments of raw files have 4 bytes fewer than the dataset needs"):
            find_pieces(related.file, short, related)


def test_the_trap_shows_the_values_of_its_raw_file() -> None:
    path = SHARED / "traps" / "external.h5"
    if not path.is_file():
        pytest.skip("the collection traps is not beside the project")
    with opened(path) as related:
        assert show(related).tolist() == list(range(8))
