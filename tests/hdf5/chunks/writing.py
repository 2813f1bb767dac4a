"""Write chunked datasets with h5py, and check that a scan agrees with h5py."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import h5zarr
from h5zarr.hdf5.model import ChunkedLayout, Dataset, IndexKind
from tests.truth.agreement import Agreement
from tests.truth.scan_against_h5py import compare

LATEST = {
    "single": IndexKind.SINGLE,
    "implicit": IndexKind.IMPLICIT,
    "fixed": IndexKind.FIXED_ARRAY,
    "extensible": IndexKind.EXTENSIBLE_ARRAY,
    "btree2": IndexKind.BTREE_V2,
}

Index = tuple[int, ...]


def early() -> h5py.h5p.PropDCID:
    """Return creation properties that allocate every chunk at once."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    return plist


def grid(shape: Sequence[int], chunks: Sequence[int]) -> list[Index]:
    """Return the coordinates of every chunk, in row-major order."""
    return list(itertools.product(*(range(-(-extent // chunk)) for extent, chunk in zip(shape, chunks, strict=True))))


def write(
    file: h5py.File,
    name: str = "data",
    *,
    shape: Sequence[int],
    chunks: Sequence[int],
    written: Iterable[Index] | None = None,
    dtype: str = "i2",
    **options: Any,
) -> h5py.Dataset:
    """Return a new dataset whose chunks `written`, by default all, hold numbers that differ from place to place."""
    dataset = file.create_dataset(name, tuple(shape), dtype, chunks=tuple(chunks), **options)
    values = (np.arange(np.prod(shape, dtype=int)) % 97 + 1).reshape(shape).astype(dtype)
    if written is None:
        dataset[...] = values
        return dataset
    for index in written:
        part = tuple(slice(number * chunk, (number + 1) * chunk) for number, chunk in zip(index, chunks, strict=True))
        dataset[part] = values[part]
    return dataset


def check(path: Path, *, chunks: int, kind: IndexKind | None = None) -> Agreement:
    """Compare with h5py. Assert that nothing differs and that `chunks` chunks were compared, and return the result."""
    found = compare(path)
    assert not found.differences
    assert not found.problems
    assert found.counts["chunks"] == chunks
    for _, dataset in h5zarr.scan(str(path)).datasets():
        assert isinstance(dataset, Dataset)
        if kind is not None:
            assert isinstance(dataset.layout, ChunkedLayout)
            assert dataset.layout.index_kind is kind
    return found
