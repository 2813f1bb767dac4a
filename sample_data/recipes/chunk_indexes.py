"""Chunked data: every kind of chunk index, at the sizes where its structure changes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d

from . import libhdf5
from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, V110_AND_LATEST, dataset_properties, new_dataset, new_file, numbers

DONT_FILTER_PARTIAL_CHUNKS = 0x2
SHUFFLE_AND_DEFLATE = {"compression": "gzip", "shuffle": True}

Shape = tuple[int, ...]


def write_chunked(
    file: h5py.File,
    name: str,
    shape: Shape,
    chunk_shape: Shape,
    maxshape: tuple[int | None, ...] | None = None,
    **filters: object,
) -> h5py.Dataset:
    """Write 1, 2, 3, ... in chunks, plainly or through filters."""
    return file.create_dataset(
        name, data=numbers(shape, "<i2") + 1, chunks=chunk_shape, maxshape=maxshape or shape, **filters
    )


def write_single_bytes(
    file: h5py.File, name: str, count: int, written: Iterable[int], *, growing: bool, **filters: object
) -> None:
    """Create a dataset of one-byte chunks, and write only some of them."""
    dataset = file.create_dataset(
        name, (count,), "u1", chunks=(1,), maxshape=(None,) if growing else (count,), fillvalue=255, **filters
    )
    for index in written:
        dataset[index] = index % 251


@sample("chunks_btree1.h5", "version 1 B-tree of chunks: none, one, several, edges, filters, 3 dimensions")
def btree1(path: Path) -> None:
    with new_file(path, creation=lambda fcpl: libhdf5.call("H5Pset_istore_k", fcpl, 4)) as file:
        file.create_dataset("none", (6,), "<i2", chunks=(2,), fillvalue=7)
        write_chunked(file, "one", (4,), (4,))
        write_chunked(file, "larger_than_data", (3,), (5,), (None,))
        write_chunked(file, "several", (7, 5), (3, 2))
        write_chunked(file, "several_filtered", (7, 5), (3, 2), **SHUFFLE_AND_DEFLATE)
        write_chunked(file, "three_dimensions", (3, 4, 5), (2, 2, 3), (None, 4, None))
        write_chunked(file, "default_chunks", (10,), (10,), (None,))


@sample("chunks_btree1_levels.h5", "version 1 B-tree of chunks with many levels (rank 1), filled in random order")
def btree1_levels(path: Path) -> None:
    with new_file(path, creation=lambda fcpl: libhdf5.call("H5Pset_istore_k", fcpl, 1)) as file:
        dataset = file.create_dataset("dataset", (8, 8), "u1", chunks=(1, 1), fillvalue=255)
        for place in np.random.default_rng(2).permutation(64)[:32]:
            dataset[divmod(int(place), 8)] = place


@sample("chunks_btree1_default_rank.h5", "version 1 B-tree of chunks with the default rank, 80 chunks, two levels")
def btree1_default_rank(path: Path) -> None:
    with new_file(path) as file:
        write_chunked(file, "dataset", (80,), (1,))


@sample(
    "chunks_single_{libver}.h5",
    "single chunk index: plain, filtered, never written, filter skipped (libver {libver})",
    libver=V110_AND_LATEST,
)
def single(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_chunked(file, "plain", (6, 4), (6, 4))
        write_chunked(file, "filtered", (60, 4), (60, 4), **SHUFFLE_AND_DEFLATE)
        file.create_dataset("never_written", (6,), "<i2", chunks=(6,), fillvalue=7)
        skipped = file.create_dataset("filter_skipped", (6,), "<i2", chunks=(6,), compression="gzip")
        skipped.id.write_direct_chunk((0,), numbers((6,), "<i2").tobytes(), filter_mask=1)


@sample("chunks_implicit.h5", "implicit chunk index (allocated early, no filters), also with room to grow")
def implicit(path: Path) -> None:
    dcpl = dataset_properties((3, 2), alloc_time=h5d.ALLOC_TIME_EARLY)
    with new_file(path, "v110") as file:
        new_dataset(file, "dataset", "<i2", (7, 5), dcpl)[...] = numbers((7, 5))
        new_dataset(file, "with_room", "<i2", (4, 3), dcpl, maxshape=(9, 6))[...] = numbers((4, 3))
        new_dataset(file, "never_written", "<i2", (4, 3), dcpl)


@sample(
    "chunks_fixed_array_{libver}.h5",
    "fixed array: plain, filtered, sparse, room to grow, all missing (libver {libver})",
    libver=V110_AND_LATEST,
)
def fixed_array(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_chunked(file, "plain", (7, 5), (3, 2))
        write_chunked(file, "filtered", (7, 5), (3, 2), **SHUFFLE_AND_DEFLATE)
        write_chunked(file, "with_room", (4, 3), (3, 2), (9, 8))
        write_chunked(file, "with_room_filtered", (4, 3, 2), (3, 2, 1), (9, 8, 3), **SHUFFLE_AND_DEFLATE)
        write_single_bytes(file, "sparse", 30, (9, 10, 29), growing=False)
        write_single_bytes(file, "sparse_filtered", 30, (0, 28), growing=False, compression="gzip")
        file.create_dataset("all_missing", (10,), "<i2", chunks=(3,), fillvalue=7)


@sample("chunks_fixed_array_1023.h5", "fixed array of 1023 chunks: one block", count=1023)
@sample("chunks_fixed_array_1024.h5", "fixed array of 1024 chunks: the largest that is not paged", count=1024)
@sample("chunks_fixed_array_1025.h5", "fixed array of 1025 chunks: paged, the last page holds one", count=1025)
def fixed_array_limits(path: Path, count: int) -> None:
    with new_file(path, "v110") as file:
        file.create_dataset("dataset", data=numbers((count,), "u1"), chunks=(1,))


@sample("chunks_fixed_array_pages.h5", "paged fixed array, its second page never written")
def fixed_array_pages(path: Path) -> None:
    with new_file(path, "latest") as file:
        write_single_bytes(file, "dataset", 2049, (5, 2048), growing=False)


@sample(
    "chunks_fixed_array_pages_filtered_{libver}.h5",
    "paged fixed array of filtered chunks, its first page never written (libver {libver})",
    libver=V110_AND_LATEST,
)
def fixed_array_pages_filtered(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_single_bytes(file, "dataset", 1100, (1024, 1030), growing=False, compression="gzip")


@sample(
    "chunks_extensible_array_{libver}.h5",
    "extensible array: in the index block and in data blocks; plain, filtered, empty (libver {libver})",
    libver=V110_AND_LATEST,
)
def extensible_array(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_chunked(file, "four", (4,), (1,), (None,))
        write_chunked(file, "in_data_blocks", (20, 7), (3, 2), (None, 7))
        write_chunked(file, "in_data_blocks_filtered", (20, 7), (3, 2), (None, 7), **SHUFFLE_AND_DEFLATE)
        write_chunked(file, "with_room", (7, 3), (3, 2), (None, 9))
        file.create_dataset("empty", (0, 3), "<i2", chunks=(2, 3), maxshape=(None, 3), fillvalue=7)
        file.create_dataset("all_missing", (9,), "<i2", chunks=(2,), maxshape=(None,), fillvalue=7)


@sample(
    "chunks_extensible_array_axis_{libver}.h5",
    "extensible array whose unlimited axis is not the first; plain and filtered (libver {libver})",
    libver=V110_AND_LATEST,
)
def extensible_array_other_axis(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_chunked(file, "last_of_two", (7, 20), (3, 2), (7, None))
        write_chunked(file, "last_of_two_filtered", (7, 20), (3, 2), (7, None), **SHUFFLE_AND_DEFLATE)
        write_chunked(file, "middle_of_three", (5, 6, 4), (2, 2, 3), (5, None, 4))
        write_chunked(file, "middle_of_three_with_room", (5, 6, 4), (2, 2, 3), (9, None, 8))


@sample("chunks_extensible_array_super_blocks.h5", "extensible array of 400 chunks: super blocks")
def extensible_array_super_blocks(path: Path) -> None:
    with new_file(path, "v110") as file:
        file.create_dataset("dataset", data=numbers((400,), "u1"), chunks=(1,), maxshape=(None,))


@sample("chunks_extensible_array_pages.h5", "extensible array, sparse, with two paged data blocks", libver="v110")
@sample(
    "chunks_extensible_array_pages_filtered_v110.h5",
    "extensible array, sparse, with two paged data blocks of filtered chunks (libver v110)",
    libver="v110",
    compression="gzip",
)
def extensible_array_pages(path: Path, libver: str, compression: str | None = None) -> None:
    first_paged = 4 + 16 * (2**13 - 1)  # before it: the index block, and super blocks whose data blocks are not paged
    fifth_block = first_paged + 4 * 2048  # its bits are not in the fifth byte of the page bitmap, but in the second
    written = (0, 300, first_paged + 1500, fifth_block + 100)
    with new_file(path, libver) as file:
        write_single_bytes(file, "dataset", fifth_block + 2000, written, growing=True, compression=compression)


@sample(
    "chunks_btree2_{libver}.h5",
    "version 2 B-tree of chunks, plain (type 10) and filtered (type 11), one leaf, empty (libver {libver})",
    libver=V110_AND_LATEST,
)
def btree2(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        write_chunked(file, "plain", (7, 5), (3, 2), (None, None))
        write_chunked(file, "filtered", (7, 5), (3, 2), (None, None), **SHUFFLE_AND_DEFLATE)
        file.create_dataset("all_missing", (6, 4), "<i2", chunks=(2, 2), maxshape=(None, None), fillvalue=7)


@sample("chunks_btree2_depth_1.h5", "version 2 B-tree of chunks of depth 1, filled in random order")
def btree2_depth_1(path: Path) -> None:
    with new_file(path, "v110") as file:
        dataset = file.create_dataset("dataset", (12, 12), "u1", chunks=(1, 1), maxshape=(None, None), fillvalue=255)
        for place in np.random.default_rng(3).permutation(144)[:130]:
            dataset[divmod(int(place), 12)] = place


@sample("chunks_btree2_depth_2.h5", "version 2 B-tree of filtered chunks of depth 2, reached with 32 axes")
def btree2_depth_2(path: Path) -> None:
    ones = (1,) * 30  # many axes make long records, and long records a deep tree of few chunks
    with new_file(path, "latest") as file:
        dataset = file.create_dataset(
            "dataset",
            (10, *ones, 12),
            "u1",
            chunks=(1, *ones, 1),
            maxshape=(None, *ones, None),
            fillvalue=255,
            compression="gzip",
        )
        for place in np.random.default_rng(4).permutation(120)[:56]:
            row, column = divmod(int(place), 12)
            dataset[(row, *(0 for _ in ones), column)] = place


@sample(
    "chunks_shrunk_{libver}.h5",
    "datasets that shrank and grew again, so that chunks went missing or lie outside (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def shrunk(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        for name, maxshape in (("one_axis", (None, 6)), ("two_axes", (None, None)), ("bounded", (12, 6))):
            dataset = file.create_dataset(
                name, data=numbers((10, 6), "<i2"), chunks=(4, 3), maxshape=maxshape, fillvalue=-1
            )
            dataset.resize((3, 6))
            dataset.resize((9, 6))


@sample(
    "chunks_partial_unfiltered_{libver}.h5",
    "chunks at the edges stored without filters, for each index that has filters (libver {libver})",
    libver=V110_AND_LATEST,
)
def partial_unfiltered(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        for name, shape, maxshape in (
            ("fixed_array", (7, 25), (7, 25)),
            ("extensible_array", (7, 25), (None, 25)),
            ("btree2", (7, 25), (None, None)),
        ):
            dcpl = dataset_properties((4, 10))
            dcpl.set_shuffle()
            dcpl.set_deflate(4)
            libhdf5.call("H5Pset_chunk_opts", dcpl, DONT_FILTER_PARTIAL_CHUNKS)
            new_dataset(file, name, "<i4", shape, dcpl, maxshape=maxshape)[...] = numbers(shape)
