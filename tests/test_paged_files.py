"""A cloud-optimised file has its metadata together: it is known by its superblock, and not read whole."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.policy import KIB
from h5zarr.scanning import scan_source
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
    with FileObjectSource(io.BytesIO(content), url="file.h5", policy=patient) as source:
        assert len(scan_source(source).problems) == 0
        is_whole = source.log.nbytes == len(content)
    assert is_whole is not is_paged
