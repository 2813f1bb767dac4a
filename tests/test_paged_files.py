"""A cloud-optimised file has its metadata together: it is known by its superblock, and not read whole."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.formats import scan_source
from h5zarr.hdf5.model import Dataset
from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.network import KIB, NetworkPolicy
from tests.io.policies import EXACT


def make(path: Path, **paging: object) -> bytes:
    with h5py.File(path, "w", libver="v110", **paging) as file:
        file.create_dataset("values", data=np.zeros((64, 1024)), chunks=(1, 1024))
        file["values"].attrs["units"] = "K"
    return path.read_bytes()


@pytest.mark.parametrize("is_paged", [True, False])
def test_a_file_with_pages_is_not_read_whole(tmp_path: Path, is_paged: bool) -> None:
    paging = {"fs_strategy": "page", "fs_page_size": 16 * KIB} if is_paged else {}
    content = make(tmp_path / "file.h5", **paging)
    patient = replace(EXACT, whole_seconds=1, first_read_nbytes=512)
    with FileObjectSource(io.BytesIO(content), url="file.h5", network=patient) as source:
        assert len(scan_source(source).problems) == 0
        is_whole = source.log.nbytes == len(content)
    assert is_whole is not is_paged


def make_texts(path: Path, **paging: object) -> bytes:
    """A file of 64 variables of 64 kB, with a text of variable length each; of the last one it is a long one."""
    with h5py.File(path, "w", libver="v110", **paging) as file:
        for number in range(64):
            variable = file.create_dataset(f"variable_{number:02}", data=np.zeros(8192) + number, chunks=(8192,))
            variable.attrs["comment"] = "as made " * (1000 if number == 63 else 100)
    return path.read_bytes()


@pytest.mark.parametrize(("latency", "rounds"), [(0.0, 3), (0.03, 2)])
def test_texts_among_the_data_of_a_file_with_pages_are_read_alone(tmp_path: Path, latency: float, rounds: int) -> None:
    content = make_texts(tmp_path / "file.h5", fs_strategy="page", fs_page_size=256 * KIB)
    policy = replace(NetworkPolicy(), latency_seconds=latency, bytes_per_second=100e6, first_read_nbytes=256 * KIB)
    with FileObjectSource(io.BytesIO(content), url="file.h5", network=policy) as source:
        found = scan_source(source).objects.values()
    comments = [one.attributes["comment"].value for one in found if isinstance(one, Dataset)]
    assert sorted(len(comment.item()) for comment in comments if comment is not None) == [800] * 63 + [8000]
    assert source.log.rounds == rounds  # the long text comes with the others where that costs less than a round
    assert source.log.nbytes < 512 * KIB
