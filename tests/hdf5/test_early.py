"""Datasets are read before their headers are complete, and right even where that was too early."""

from __future__ import annotations

from pathlib import Path

import fsspec
import h5py
import numpy as np
import pytest

from h5zarr.formats import scan_source
from h5zarr.hdf5.model import ChunkedLayout, Dataset
from h5zarr.io.access import Access
from h5zarr.io.source import open_source
from tests.io.policies import EXACT


def make(path: Path, *, attribute_count: int, filtered: bool) -> None:
    """Make a dataset whose header goes on elsewhere, as often as attributes were added after chunks."""
    with h5py.File(path, "w") as file:
        options = {"compression": "gzip", "shuffle": True} if filtered else {}
        values = np.random.default_rng(1).integers(0, 1 << 30, 100 * 1024)
        dataset = file.create_dataset("values", values.shape, "<i4", chunks=(1024,), maxshape=(None,), **options)
        for number in range(attribute_count):
            dataset[1024 * number : 1024 * (number + 1)] = number
            dataset.attrs[f"attribute_{number}"] = np.bytes_("x" * 2000)
        dataset[:] = values


def scan_far(path: Path) -> tuple[Dataset, int]:
    fsspec.filesystem("memory").pipe("/early.h5", path.read_bytes())
    with open_source("memory://early.h5", Access(network=EXACT)) as source:
        scanned = scan_source(source)
        assert scanned.problems == ()
        return next(dataset for _, dataset in scanned.datasets()), source.log.rounds


@pytest.mark.parametrize("filtered", [True, False])
def test_the_chunk_index_does_not_wait_for_the_rest_of_the_header(tmp_path: Path, filtered: bool) -> None:
    rounds = {}
    for count in (0, 1, 2, 3):
        path = tmp_path / f"{count}.h5"
        make(path, attribute_count=count, filtered=filtered)
        dataset, rounds[count] = scan_far(path)
        assert isinstance(dataset.layout, ChunkedLayout)
        with h5py.File(path) as file:
            infos = [file["values"].id.get_chunk_info(number) for number in range(100)]
            assert dataset.layout.chunks.address.tolist() == [info.byte_offset for info in infos]
            assert list(dataset.attributes) == list(file["values"].attrs)
    # The tree has two levels, so that two generations of continuations cost nothing.
    assert len(set(rounds.values())) == 1


def test_a_decisive_message_in_a_continuation_is_heeded(tmp_path: Path) -> None:
    """The library moves messages to make room: here the filters, without which the sizes of chunks make no sense."""
    path = tmp_path / "moved.h5"
    make(path, attribute_count=3, filtered=True)
    content = bytearray(path.read_bytes())
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["values"].id).addr
    at = address + 16
    while content[at] != 0x0B:  # the filters, which become a continuation to a copy of them
        at += 8 + int.from_bytes(content[at + 2 : at + 4], "little")
    nbytes = int.from_bytes(content[at + 2 : at + 4], "little")
    copy = len(content)
    content += content[at : at + 8 + nbytes]
    content[at] = 0x10
    content[at + 8 : at + 24] = copy.to_bytes(8, "little") + (8 + nbytes).to_bytes(8, "little")
    changed = tmp_path / "changed.h5"
    changed.write_bytes(content)
    found, _ = scan_far(changed)
    expected, _ = scan_far(path)
    assert found.filters == expected.filters
    assert len(found.filters) == 2
    assert isinstance(found.layout, ChunkedLayout)
    assert isinstance(expected.layout, ChunkedLayout)
    assert found.layout.chunks.nbytes.tolist() == expected.layout.chunks.nbytes.tolist()
