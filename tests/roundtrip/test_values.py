"""Every file, through the references: each dataset that h5py reads has the same values, or is named with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import Problem
from tests.collections_of_files import SAMPLES, SHARED, parameters, sample_files, shared_files
from tests.containers.hierarchies import with_hierarchy
from tests.truth.values_against_h5py import score, score_translation


def check(path: Path, record_property: pytest.RecordProperty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files from here
    found = score(path)
    record_property("same", found.same)
    for kind in ("wrong", "missing", "error"):
        record_property(kind, len(getattr(found, kind)))
    record_property("named", sum(found.named.values()))
    record_property("that h5py cannot read", found.unreadable)
    assert not found.failures


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_sample_files_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)


@pytest.mark.parametrize("path", parameters(shared_files("corpus"), SHARED / "corpus"))
def test_real_files_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)


@pytest.mark.parametrize("path", parameters(shared_files("traps"), SHARED / "traps"))
def test_traps_have_the_values_that_h5py_reads(path: Path, record_property, monkeypatch) -> None:
    check(path, record_property, monkeypatch)


# --- the oracle itself: it must see what is wrong


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Path]:
    """Two files that differ in one value, which lies in a chunk that is referred to."""
    paths = tmp_path / "one.h5", tmp_path / "other.h5"
    for number, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            values = np.arange(4000.0)
            values[3999] += number
            file.create_dataset("group/x", data=values, chunks=(1000,))
    return paths


def test_the_oracle_sees_one_wrong_value(two_files: tuple[Path, Path]) -> None:
    with h5py.File(two_files[0]) as file:
        assert score_translation(file, translate(two_files[0])).same == 1
        found = score_translation(file, translate(two_files[1]))
    assert found.wrong == ["/group/x: 1 of 4000 values differ, np.float64(4000.0) is np.float64(3999.0)"]


def test_the_oracle_sees_what_is_missing(two_files: tuple[Path, Path]) -> None:
    translation = translate(two_files[0])
    nodes = {path: node for path, node in translation.hierarchy.nodes.items() if path != "/group/x"}
    with h5py.File(two_files[0]) as file:
        found = score_translation(file, with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes)))
    assert found.missing == ["/group/x"]


def test_the_oracle_takes_no_reason_that_it_does_not_know(two_files: tuple[Path, Path]) -> None:
    translation = translate(two_files[0])
    nodes = {path: node for path, node in translation.hierarchy.nodes.items() if path != "/group/x"}
    problems = (Problem("/group/x", "unsupported", "because"),)
    changed = with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes, problems=problems))
    with h5py.File(two_files[0]) as file:
        assert score_translation(file, changed).odd == ["/group/x: because"]


def test_the_oracle_sees_chunks_that_cannot_be_read(two_files: tuple[Path, Path]) -> None:
    translation = translate(two_files[0])
    two_files[0].with_suffix(".moved").write_bytes(two_files[0].read_bytes())
    two_files[0].unlink()
    with h5py.File(two_files[0].with_suffix(".moved")) as file:
        (error,) = score_translation(file, translation).error
    assert error.startswith("/group/x: ")
