"""Every file, compared with h5py: names, types, shapes, attributes, stored chunks, values and fill values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collections_of_files import SAMPLES, SHARED, name_of, parameters, sample_files, shared_files
from tests.truth.scan_against_h5py import compare
from tests.truth.unreadable import NOT_OPENED_BY_H5PY, REFUSED


def check(path: Path, record_property: pytest.RecordProperty) -> None:
    found = compare(path)
    record_property("datasets", len(found.compared))
    record_property("identical", found.identical)
    for name in ("attributes", "values", "chunks"):
        record_property(name, found.counts[name])
    for problem in found.problems:
        record_property("problem", problem)
    if found.refused:
        record_property("refused", found.refused)
    assert not found.differences
    # h5py opens everything else, and nothing on either list: a list that is out of date fails.
    assert bool(found.unopened) == (name_of(path) in NOT_OPENED_BY_H5PY or name_of(path) in REFUSED), found.unopened


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_agree_with_h5py(path: Path, record_property, monkeypatch) -> None:
    monkeypatch.chdir(SAMPLES)  # libhdf5 looks for external files here
    check(path, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_agree_with_h5py(path: Path, record_property) -> None:
    check(path, record_property)


@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
def test_traps_agree_with_h5py(path: Path, record_property) -> None:
    check(path, record_property)
