"""Random files, through the references: every value that h5py reads, whatever the type, layout, filter or fill."""

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
from tests.truth.values_against_h5py import Score, score

CHOICES = {
    "as it is": {},
    "nothing inlined": {"inline_bytes": 0},
    "all inlined": {"inline_bytes": 1 << 30},
    "version 2": {"zarr_format": 2},
    "version 2, nothing inlined": {"zarr_format": 2, "inline_bytes": 0},
    "to be joined": {"joinable": True, "inline_bytes": 0},
    "version 2, to be joined": {"zarr_format": 2, "joinable": True},
}

_settings = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_files = (st.sampled_from(LIBVERS), st.lists(described(), min_size=1, max_size=3))


def check(libver: Any, datasets: list[Described], choices: dict[str, dict[str, Any]], **how: Any) -> dict[str, Score]:
    """Write a file and compare it with h5py in each of the ways."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.h5"
        write_file(path, libver, datasets, **how)
        scores = {}
        for name, options in choices.items():
            scores[name] = score(path, options)
            assert not scores[name].failures, name
            assert not scores[name].refused, name
            assert written(translate(path, **(options or {}))) == written(translate(path, **(options or {})))
    return scores


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
    scores = check(libver, datasets, CHOICES)
    assert scores["as it is"].same + scores["as it is"].unreadable == len(TYPE_NAMES)
    assert not scores["as it is"].named


def test_records_of_version_2_have_the_values_that_h5py_reads(tmp_path: Path) -> None:
    datasets = [Described(name, (4,), 1, "chunked", (2,)) for name in TYPE_NAMES if name.startswith("record")]
    write_file(tmp_path / "records.h5", "latest", datasets)
    assert not score(tmp_path / "records.h5", {"zarr_format": 2}).failures


def test_every_type_is_read_by_h5py_but_two() -> None:
    """Where h5py reads nothing, there is nothing to compare with."""
    unreadable: Counter[str] = Counter()
    for name in TYPE_NAMES:
        for found in check("latest", [Described(name, (4,), 2, written=frozenset([0]))], {"": {}}).values():
            unreadable[name] += found.unreadable
    assert sum(unreadable.values()) <= 2, unreadable
