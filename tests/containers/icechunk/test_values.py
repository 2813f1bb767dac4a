"""Every file, through an Icechunk repository: each dataset has the values that h5py reads, or is named."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from tests.collections_of_files import (
    SAMPLES,
    SHARED,
    classic_samples,
    comparable,
    parameters,
    sample_files,
    shared_files,
)
from tests.containers.icechunk.repositories import open_snapshot
from tests.roundtrip.reading import open_group
from tests.truth.values_against_h5py import compare_translation

pytest.importorskip("icechunk")

LARGE = 20_000_000


def small(folder: str) -> list[object]:
    """Return pytest parameters for the files of a collection that do not take long."""
    paths = [path for path in comparable(shared_files(folder)) if path.stat().st_size <= LARGE]
    return parameters(paths, SHARED / folder)


def check(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files from here
    translation = translate(path, f"icechunk+file://{tmp_path}/repository")
    with h5py.File(path, "r") as file:
        found = compare_translation(file, translation, open_snapshot(tmp_path / "repository"))
        assert not found.differences


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_have_the_values_that_h5py_reads(path: Path, tmp_path: Path, monkeypatch) -> None:
    check(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", small("corpus"))
def test_real_files_have_the_values_that_h5py_reads(path: Path, tmp_path: Path, monkeypatch) -> None:
    check(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", small("traps"))
def test_traps_have_the_values_that_h5py_reads(path: Path, tmp_path: Path, monkeypatch) -> None:
    check(path, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", parameters(classic_samples(), SAMPLES))
def test_classic_files_have_the_values_that_other_references_have(path: Path, tmp_path: Path) -> None:
    translation = translate(path, f"icechunk+file://{tmp_path}/repository")
    same_values(translation, tmp_path / "repository")


def same_values(translation: Translation, directory: Path) -> None:
    ours, theirs = open_snapshot(directory), open_group(translation)
    assert translation.arrays()
    for name in translation.arrays():
        mine, expected = ours[name[1:]], theirs[name[1:]]
        assert mine.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(mine[...]), np.asarray(expected[...]))
