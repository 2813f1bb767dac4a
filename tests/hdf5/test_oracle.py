"""Every file, compared with h5py: names, types, shapes, attributes, stored chunks, values and fill."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collections_of_files import SAMPLES, SHARED, parameters, sample_files, shared_files
from tests.truth.scan_against_h5py import compare


def check(path: Path, record_property: pytest.RecordProperty) -> None:
    found = compare(path)
    for name in ("datasets", "agreeing", "attributes", "values_checked", "chunks_checked"):
        record_property(name, getattr(found, name))
    for problem in found.problems:
        record_property("problem", problem)
    if found.refused:
        record_property("refused", found.refused)
    assert not found.differences


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_say_what_h5py_says(path: Path, record_property, monkeypatch) -> None:
    monkeypatch.chdir(SAMPLES)  # libhdf5 looks for external files from here
    check(path, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_say_what_h5py_says(path: Path, record_property) -> None:
    check(path, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
def test_traps_say_what_h5py_says(path: Path, record_property) -> None:
    check(path, record_property)
