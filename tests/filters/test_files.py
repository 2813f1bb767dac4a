"""Every stored chunk of the sample files and of the shared traps about filters, against what libhdf5 reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import hdf5plugin  # noqa: F401  registers the plugins
import numpy as np
import pytest
from h5py import h5s

from h5zarr.errors import Unsupported
from h5zarr.filters.pipeline import is_known, undo_filters
from h5zarr.zarr_model.codecs import encode_filters
from tests.collections_of_files import SAMPLES, SHARED, parameters, sample_files, shared_files
from tests.filters.written import described

TRAPS = [path for path in shared_files("traps") if path.name.startswith(("f_", "mask_"))]


@pytest.mark.parametrize("path", parameters([p for p in sample_files() if p.name.startswith("filters_")], SAMPLES))
def test_chunks_of_sample_files_are_restored(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", parameters(TRAPS, SHARED / "traps"))
def test_chunks_of_traps_are_restored(path: Path) -> None:
    check_file(path)


def check_file(path: Path) -> None:
    with h5py.File(path) as file:
        found = [dataset for dataset in datasets(file) if dataset.chunks]
        assert found
        for dataset in found:
            check_dataset(dataset)


def datasets(file: h5py.File) -> Iterator[h5py.Dataset]:
    members: list[object] = []
    file.visititems(lambda name, member: members.append(member))
    return (member for member in members if isinstance(member, h5py.Dataset))


def check_dataset(dataset: h5py.Dataset) -> None:
    filters = tuple(described(dataset.id.get_create_plist()))
    nbytes = dataset.id.get_type().get_size() * int(np.prod(dataset.chunks))
    if any(not is_known(one.number) for one in filters):
        with pytest.raises(Unsupported):
            encode_filters(filters, nbytes=nbytes)
        return
    assert encode_filters(filters, nbytes=nbytes)
    for number in range(dataset.id.get_num_chunks()):
        origin = dataset.id.get_chunk_info(number).chunk_offset
        mask, content = dataset.id.read_direct_chunk(origin)
        restored = undo_filters(content, filters, mask, nbytes)
        within = tuple(slice(0, min(n, s - o)) for n, s, o in zip(dataset.chunks, dataset.shape, origin, strict=True))
        chunk = np.frombuffer(restored, np.uint8).reshape(*dataset.chunks, -1)[within]
        assert chunk.tobytes() == stored_part(dataset, origin, chunk.shape)


def stored_part(dataset: h5py.Dataset, origin: tuple[int, ...], shape: tuple[int, ...]) -> bytes:
    """Return a part as libhdf5 gives it in the dataset's own type; the last axis of `shape` has an element's bytes."""
    elements = np.zeros(shape, np.uint8)
    space = dataset.id.get_space()
    space.select_hyperslab(origin, shape[:-1])
    dataset.id.read(h5s.create_simple(shape[:-1]), space, elements, dataset.id.get_type())
    return elements.tobytes()
