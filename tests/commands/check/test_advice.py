"""Each kind of advice: a file that gets it, and one that is like it and does not."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.commands.check import thresholds
from h5zarr.commands.check.advice import Advice
from h5zarr.commands.check.check import check
from h5zarr.commands.check.commands import Mending, suggest_chunk_shape
from h5zarr.io.location import Location

KINDS = {
    *("tiny chunks", "huge chunks", "contiguous", "not compressed", "codecs", "inlined"),
    *("scattered metadata", "user block", "many references"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.h5"


def advice(path: Path) -> dict[str, Advice]:
    (file,) = check(path).files
    assert {one.kind for one in file.advice} <= KINDS
    return {one.kind: one for one in file.advice}


def write_chunks(path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], nbytes: int, **choices: Any) -> None:
    """Write chunks of arbitrary bytes, which are never decoded."""
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("v", shape, "f4", chunks=chunks, **{"compression": "gzip", **choices})
        for index in np.ndindex(*(-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True))):
            origin = tuple(number * chunk for number, chunk in zip(index, chunks, strict=True))
            dataset.id.write_direct_chunk(origin, bytes(nbytes))


def test_many_tiny_chunks(path: Path) -> None:
    write_chunks(path, (thresholds.MANY_TINY_CHUNKS, 1000), (1, 1000), 500)
    found = advice(path)["tiny chunks"]
    assert "100 chunks of 500 bytes" in found.message
    assert found.path == "/v"
    assert found.command == shlex.join(["h5repack", "-l", "/v:CHUNK=100x1000", str(path), "out.h5"])


def test_few_tiny_chunks_and_many_large_ones_are_fine(path: Path) -> None:
    write_chunks(path, (thresholds.MANY_TINY_CHUNKS - 1, 1000), (1, 1000), 500)
    assert not advice(path)
    write_chunks(path, (thresholds.MANY_TINY_CHUNKS, 1000), (1, 1000), thresholds.TINY_CHUNK_NBYTES)
    assert not advice(path)


def test_huge_chunks(path: Path) -> None:
    write_chunks(path, (2, 5001, 5000), (1, 5001, 5000), 1000)
    found = advice(path)["huge chunks"]
    assert "100 MB" in found.message
    assert "CHUNK=1x" in found.command


def test_chunks_of_a_hundred_megabytes_are_not_huge(path: Path) -> None:
    write_chunks(path, (2, 5000, 5000), (1, 5000, 5000), 1000)
    assert not advice(path)


def test_contiguous_values(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = np.zeros((1300, 2000), "f4")
    found = advice(path)["contiguous"]
    assert "10.4 MB" in found.message
    assert "-f /v:SHUF -f /v:GZIP=4" in found.command
    assert "-l /v:CHUNK=" in found.command


def test_contiguous_values_that_are_few_are_fine(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = np.zeros((1200, 2000), "f4")
    assert not advice(path)


def test_chunks_that_are_not_compressed(path: Path) -> None:
    write_chunks(path, (4, 1_000_000), (1, 1_000_000), 4_000_000, compression=None)
    assert set(advice(path)) == {"not compressed"}


@pytest.mark.parametrize("choices", [{"compression": "gzip"}, {"compression": "gzip", "shuffle": True}])
def test_chunks_that_are_compressed_are_fine(path: Path, choices: dict[str, Any]) -> None:
    write_chunks(path, (4, 1_000_000), (1, 1_000_000), 4_000_000, **choices)
    assert not advice(path)


def test_shuffling_alone_does_not_compress(path: Path) -> None:
    write_chunks(path, (4, 1_000_000), (1, 1_000_000), 4_000_000, compression=None, shuffle=True)
    assert set(advice(path)) == {"not compressed"}


def test_filters_that_zarr_alone_does_not_undo(path: Path) -> None:
    write_chunks(path, (4, 1000), (1, 1000), 1000, compression="lzf")
    found = advice(path)["codecs"]
    assert "h5zarr.filter (lzf)" in found.message
    assert "GZIP=4" in found.command


def test_a_filter_that_needs_a_package_says_which(path: Path) -> None:
    if not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("h5py has no szip")
    write_chunks(path, (4, 1000), (1, 1000), 1000, compression="szip")
    assert "h5zarr and imagecodecs" in advice(path)["codecs"].message


def test_large_text_that_can_only_be_inlined(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = np.array(["x" * 1000] * 1100, object)
    assert "1.10 MB" in advice(path)["inlined"].message


def test_small_text_is_fine(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = np.array(["x" * 1000] * 1000, object)
    assert not advice(path)


def write_datasets(path: Path, count: int, **paging: Any) -> None:
    """Write a file of datasets whose headers lie between the values of other datasets."""
    with h5py.File(path, "w", **paging) as file:
        for number in range(count):
            file.create_dataset(f"group{number}/v", data=np.zeros((4, 32_768)), chunks=(4, 32_768))
            file.flush()


def test_scattered_metadata(path: Path) -> None:
    write_datasets(path, 24)
    found = advice(path)["scattered metadata"]
    assert found.command == f"h5repack -S PAGE -G 4194304 {shlex.quote(str(path))} out.h5"


def test_metadata_in_pages_are_fine(path: Path) -> None:
    write_datasets(path, 24, libver="v110", fs_strategy="page", fs_page_size=1 << 20)
    assert "scattered metadata" not in advice(path)


def test_metadata_of_a_small_file_are_read_along_with_it(path: Path) -> None:
    write_datasets(path, 8)
    assert path.stat().st_size < thresholds.WHOLE_NBYTES
    assert "scattered metadata" not in advice(path)


@pytest.mark.parametrize(("nbytes", "expected"), [(2 << 20, True), (1 << 20, False)])
def test_a_large_user_block(path: Path, nbytes: int, expected: bool) -> None:
    with h5py.File(path, "w", userblock_size=nbytes) as file:
        file["v"] = np.zeros(5)
    assert ("user block" in advice(path)) is expected


@pytest.mark.parametrize(("count", "expected"), [(100_001, True), (100_000, False)])
def test_references_that_are_many(path: Path, count: int, expected: bool) -> None:
    # Chunks that are allotted when the dataset is made have no index: they are where they are reckoned to be.
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_chunk((1,))
    storage.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    with h5py.File(path, "w", libver="latest") as file:
        h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((count,)), storage)
    found = advice(path)
    assert ("many references" in found) is expected
    if expected:
        assert found["many references"].command.endswith("refs.parquet")


def test_netcdf3_is_mended_by_nccopy(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    path = tmp_path / "classic.nc"
    with netcdf4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("x", 500)
        file.createVariable("v", "f4", ("time", "x"))[:] = np.zeros((200, 500))
        file.createVariable("w", "f4", ("time", "x"))[:] = np.zeros((200, 500))
    found = advice(path)["tiny chunks"]
    assert found.command == f"nccopy -k nc4 -s -d 4 -c w:200,500 {shlex.quote(str(path))} out.nc"


def test_no_command_is_suggested_for_a_name_that_a_list_cannot_contain() -> None:
    assert Mending(source=Location.parse("a.h5")).rechunk("/a,b", (1,)) == ""
    assert Mending(source=Location.parse("a.h5")).compress("/a:b") == ""


def test_a_remote_file_is_mended_by_its_name_alone() -> None:
    command = Mending(source=Location.parse("https://user:secret@example.org/d/a b.nc?token=secret")).gather()
    assert command == "h5repack -S PAGE -G 4194304 'a b.nc' out.nc"


@pytest.mark.parametrize(
    ("shape", "chunks", "expected"),
    [
        ((1000, 180, 360), (1, 10, 10), (256, 40, 160)),
        ((10, 10), (1, 10), (10, 10)),
        ((4, 20_000, 20_000), (1, 20_000, 20_000), (1, 1250, 1250)),
        ((), (), ()),
        ((0,), (5,), (1,)),
    ],
)
def test_suggested_chunks_are_of_a_good_size(
    shape: tuple[int, ...], chunks: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    found = suggest_chunk_shape(shape, chunks, 4)
    assert np.prod(found) * 4 <= thresholds.GOOD_CHUNK_NBYTES
    assert len(found) == len(expected)
    assert found == expected
