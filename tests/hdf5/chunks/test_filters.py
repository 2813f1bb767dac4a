"""Chunks as filters leave them: sizes and masks in every kind of index."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.hdf5.model import ChunkedLayout, IndexKind
from tests.collections_of_files import SAMPLES
from tests.hdf5.chunks.writing import check, write
from tests.truth.scan_against_h5py import compare

INDEXES: dict[str, tuple[str, tuple[int | None, ...] | None]] = {
    "btree1": ("earliest", None),
    "fixed": ("latest", None),
    "extensible": ("latest", (10, None)),
    "btree2": ("latest", (None, None)),
}
KINDS = {
    "btree1": IndexKind.BTREE_V1,
    "fixed": IndexKind.FIXED_ARRAY,
    "extensible": IndexKind.EXTENSIBLE_ARRAY,
    "btree2": IndexKind.BTREE_V2,
}
FILTERS: dict[str, dict[str, Any]] = {
    "shuffle": {"shuffle": True},
    "deflate": {"compression": "gzip", "compression_opts": 1},
    "fletcher32": {"fletcher32": True},
    "shuffle, deflate and fletcher32": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "scaleoffset": {"scaleoffset": 0},
}


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("filters", FILTERS)
def test_filters_of_every_index_with_edges(tmp_path: Path, index: str, filters: str) -> None:
    libver, maxshape = INDEXES[index]
    path = tmp_path / "filtered.h5"
    with h5py.File(path, "w", libver=libver) as file:
        write(file, shape=(10, 11), chunks=(4, 3), dtype="i4", maxshape=maxshape, **FILTERS[filters])
    check(path, chunks=3 * 4, kind=KINDS[index])


@pytest.mark.parametrize("index", INDEXES)
def test_masks_say_which_filters_were_skipped(tmp_path: Path, index: str) -> None:
    libver, maxshape = INDEXES[index]
    path = tmp_path / "masked.h5"
    values = np.arange(12, dtype="<i4").reshape(4, 3)
    shuffled = values.view(np.uint8).reshape(12, 4).T.tobytes()
    stored = {
        (0, 0): (0, zlib.compress(shuffled)),
        (4, 0): (0b01, zlib.compress(values.tobytes())),
        (0, 3): (0b10, shuffled),
        (4, 3): (0b11, values.tobytes()),
    }
    with h5py.File(path, "w", libver=libver) as file:
        dataset = file.create_dataset(
            "data", (10, 11), "<i4", chunks=(4, 3), maxshape=maxshape, shuffle=True, compression="gzip"
        )
        for origin, (mask, content) in stored.items():
            dataset.id.write_direct_chunk(origin, content, filter_mask=mask)
    found = check(path, chunks=4, kind=KINDS[index])
    assert found.counts["values"] == 1
    ((_, scanned),) = h5zarr.scan(str(path)).datasets()
    assert isinstance(scanned.layout, ChunkedLayout)
    table = scanned.layout.chunks
    masks = dict(zip(map(tuple, table.index.tolist()), table.filter_mask.tolist(), strict=True))
    assert masks == {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}


def test_the_mask_of_a_single_chunk_is_in_its_message(tmp_path: Path) -> None:
    path = tmp_path / "masked.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("data", (4, 3), "<i4", chunks=(4, 3), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), np.arange(12, dtype="<i4").tobytes(), filter_mask=1)
    check(path, chunks=1, kind=IndexKind.SINGLE)


@pytest.mark.parametrize("name", ["chunks_partial_unfiltered_v110.h5", "chunks_partial_unfiltered_latest.h5"])
def test_edges_that_were_left_unfiltered_are_read_from_samples(name: str) -> None:
    found = compare(SAMPLES / name)
    assert not found.differences
    assert found.counts["chunks"] > 0
    assert found.counts["values"] > 0
