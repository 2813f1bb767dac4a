"""What is said of each variable is what a translation does with it."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.commands.check.check import check
from h5zarr.commands.check.check_text import report_lines
from h5zarr.commands.check.files import CheckedFile
from h5zarr.commands.check.variables import CheckedVariable, Verdict
from tests.collections_of_files import any_samples, any_shared
from tests.made_files import make_ocean

LARGE_NBYTES = 20_000_000


def check_one(path: Path) -> CheckedFile:
    (file,) = check(path).files
    return file


def by_path(file: CheckedFile) -> dict[str, CheckedVariable]:
    return {variable.path: variable for variable in file.variables}


@pytest.mark.parametrize("path", any_samples())
def test_verdicts_agree_with_the_translation(path: Path) -> None:
    done = h5zarr.translate(path)
    file = check_one(path)
    found = by_path(file)
    arrays = done.arrays()
    assert {path for path, one in found.items() if one.verdict is not Verdict.REFUSED} == set(arrays)
    told = [problem for variable in file.variables for problem in variable.problems]
    assert sorted(map(str, (*told, *file.problems))) == sorted(map(str, done.problems))
    assert file.is_virtualisable is not bool(done.problems)
    assert file.warnings == done.warnings
    for name, array in arrays.items():
        assert (found[name].verdict is Verdict.REFERENCED) == (array.manifest.count > 0)
        assert found[name].chunk_count == array.manifest.count
        assert found[name].stored_nbytes == array.manifest.nbytes.sum()
        assert found[name].inlined_nbytes == sum(map(len, array.manifest.inline.values()))


@pytest.mark.parametrize("folder", ["corpus", "traps", "hostile"])
def test_collections_are_checked_without_an_exception(folder: str) -> None:
    paths = [parameter.values[0] for parameter in any_shared(folder)]
    if paths == [None]:
        pytest.skip(f"the collection {folder} is not beside the project")
    small = [path for path in paths if path.stat().st_size <= LARGE_NBYTES]
    report = check(small, each=True, at_once=2)
    assert len(report.files) + len(report.unreadable) == len(small)
    assert list(report_lines(report, all=True))
    json.dumps(report.to_json(), allow_nan=False)


def test_chunks_are_reported_with_their_size_and_requests_per_gigabyte(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("v", data=np.zeros((100, 1000), "f8"), chunks=(10, 400), compression="gzip")
    (variable,) = check_one(tmp_path / "file.h5").variables
    assert variable.verdict is Verdict.REFERENCED
    assert variable.chunk_count == 30
    assert variable.chunk_nbytes == 10 * 400 * 8
    assert variable.decoded_nbytes == 100 * 1000 * 8  # and not the 200 columns that hang over the edge
    assert variable.requests_per_gb == pytest.approx(30 / 800_000 * 1e9)
    assert variable.compression_ratio == pytest.approx(30 * variable.chunk_nbytes / variable.stored_nbytes)
    assert variable.is_compressed
    assert variable.has_chunks


def test_only_chunks_that_are_stored_are_counted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file.create_dataset("v", (100, 1000), "f8", chunks=(10, 1000))[:20] = 1
        file.create_dataset("none", (100, 1000), "f8", chunks=(10, 1000))
    found = by_path(check_one(tmp_path / "file.h5"))
    assert found["/v"].decoded_nbytes == 20 * 1000 * 8
    assert found["/none"].verdict is Verdict.UNWRITTEN
    assert found["/none"].requests_per_gb is None
    assert found["/none"].compression_ratio is None


def test_inlined_and_refused_variables_are_distinguished(tmp_path: Path) -> None:
    file = check_one(make_ocean(tmp_path / "ocean.h5"))
    found = by_path(file)
    assert found["/time"].verdict is Verdict.INLINED
    assert found["/time"].inlined_nbytes == 32
    assert found["/ragged"].verdict is Verdict.REFUSED
    assert found["/ragged"].problems[0].remedy
    assert not file.is_virtualisable


def test_the_reported_metadata_exclude_inlined_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.h5", "w", userblock_size=512) as file:
        file.create_dataset("v", data=np.zeros(5_000_000), chunks=(500_000,))
    cost = check_one(tmp_path / "file.h5").metadata
    assert cost.rounds >= 1
    assert cost.asked_nbytes < 10_000
    assert cost.nbytes >= cost.asked_nbytes
    assert cost.user_block_nbytes == 512
    assert not cost.is_paged


def test_pages_are_noticed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.h5", "w", libver="v110", fs_strategy="page", fs_page_size=65536) as file:
        file["v"] = np.zeros(5)
    assert check_one(tmp_path / "file.h5").metadata.is_paged
