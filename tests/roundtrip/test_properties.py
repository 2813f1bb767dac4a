"""Random files: references give every value that h5py reads, for any type, layout, filter and fill value."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from h5zarr.commands.translate.translate import translate
from tests.roundtrip.random_datasets import LIBVERS, TYPE_NAMES, Described, described, write_file
from tests.roundtrip.reading import written
from tests.truth.agreement import Agreement
from tests.truth.values_against_h5py import compare

CHOICES = {
    "default": {},
    "nothing inlined": {"inline_bytes": 0},
    "everything inlined": {"inline_bytes": 1 << 30},
    "version 2": {"zarr_format": 2},
    "version 2, nothing inlined": {"zarr_format": 2, "inline_bytes": 0},
    "joinable": {"joinable": True, "inline_bytes": 0},
    "version 2, joinable": {"zarr_format": 2, "joinable": True},
}

_settings = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_files = (st.sampled_from(LIBVERS), st.lists(described(), min_size=1, max_size=3))


def check(
    libver: Any, datasets: list[Described], choices: dict[str, dict[str, Any]], **how: Any
) -> dict[str, Agreement]:
    """Write a file, translate it with each choice of options, and compare it with h5py."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.h5"
        write_file(path, libver, datasets, **how)
        found = {}
        for name, options in choices.items():
            found[name] = compare(path, options)
            assert not found[name].differences, name
            assert not found[name].refused, name
            assert written(translate(path, **(options or {}))) == written(translate(path, **(options or {})))
    return found


@settings(_settings, max_examples=250)
@given(*_files, st.sampled_from(sorted(CHOICES)))
def test_any_file_has_the_values_that_h5py_reads(libver: Any, datasets: list[Described], choice: str) -> None:
    check(libver, datasets, {choice: CHOICES[choice]})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_many_files_have_the_values_that_h5py_reads(seed: int) -> None:
    @settings(_settings, max_examples=400, derandomize=False)
    @given(*_files, st.sampled_from([0, 512]))
    def run(libver: Any, datasets: list[Described], userblock_size: int) -> None:
        check(libver, datasets, CHOICES, userblock_size=userblock_size)

    run()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_every_type_has_the_values_that_h5py_reads(libver: str) -> None:
    datasets = [Described(name, (5, 3), 1, "chunked", (2, 3), written=frozenset([0, 2])) for name in TYPE_NAMES]
    found = check(libver, datasets, CHOICES)["default"]
    assert found.identical + found.counts["unreadable"] == len(TYPE_NAMES)
    assert not found.allowed


def test_records_of_version_2_have_the_values_that_h5py_reads(tmp_path: Path) -> None:
    datasets = [Described(name, (4,), 1, "chunked", (2,)) for name in TYPE_NAMES if name.startswith("record")]
    write_file(tmp_path / "records.h5", "latest", datasets)
    assert not compare(tmp_path / "records.h5", {"zarr_format": 2}).differences


def test_h5py_reads_all_but_two_of_the_types() -> None:
    """A type that h5py cannot read is not compared."""
    unreadable: Counter[str] = Counter()
    for name in TYPE_NAMES:
        for found in check("latest", [Described(name, (4,), 2, written=frozenset([0]))], {"": {}}).values():
            unreadable[name] += found.counts["unreadable"]
    assert sum(unreadable.values()) <= 2, unreadable
