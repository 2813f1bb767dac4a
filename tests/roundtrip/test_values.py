"""Every file: each dataset that h5py reads has equal values through references, or is left out for a known reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collections_of_files import SAMPLES, SHARED, parameters, sample_files, shared_files
from tests.truth.values_against_h5py import compare


def check(path: Path, record_property: pytest.RecordProperty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files here
    found = compare(path)
    record_property("same", found.identical)
    record_property("wrong", len(found.differences))
    record_property("named", len(found.allowed))
    record_property("that h5py cannot read", found.counts["unreadable"])
    assert not found.differences


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)


@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)


@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
def test_traps_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)
