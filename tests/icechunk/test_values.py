"""Every file, through an Icechunk repository: each dataset has the values that h5py reads, or is named."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.errors import H5ZarrError
from h5zarr.translating import Translation, translate
from tests.collections_of_files import SAMPLES, SHARED, classic_samples, parameters, sample_files, shared_files
from tests.icechunk.repositories import open_snapshot
from tests.roundtrip.reading import open_group
from tests.roundtrip.values import score_translation

pytest.importorskip("icechunk")

LARGE = 20_000_000


def check(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stat().st_size > LARGE:
        pytest.skip("it takes too long")
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files from here
    try:
        translation = translate(path, f"icechunk+file://{tmp_path}/repository")
    except H5ZarrError as error:
        if error.kind == "output":
            raise
        pytest.skip("it cannot be translated, as test_values of the references says")
    try:
        file = h5py.File(path, "r")
    except OSError:
        return
    with file:
        found = score_translation(file, translation, open_snapshot(tmp_path / "repository"))
        assert not found.failures


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_have_the_values_that_h5py_reads(path: Path, tmp_path: Path, monkeypatch) -> None:
    check(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_have_the_values_that_h5py_reads(path: Path, tmp_path: Path, monkeypatch) -> None:
    check(path, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
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
