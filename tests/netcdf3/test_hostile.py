"""Damaged classic files end in a sound result or an H5ZarrError: quickly, in little memory, and in no other way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.collections_of_files import classic_samples, shared_classic_files
from tests.hostile import run_worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")

TRUNCATIONS = -1


def attack(files: list[Path], *, copies: int, seed: int = 0) -> int:
    """Return how many translations were tried; fail on the first surprises."""
    return run_worker("tests.netcdf3.hostile_worker", files, copies=copies, seed=seed)


def test_damaged_samples_end_in_a_sound_result_or_an_error() -> None:
    files = classic_samples()
    assert attack(files, copies=200, seed=1) == 200 * len(files) > 3000


def test_every_truncation_of_a_small_sample_ends_in_a_sound_result_or_an_error() -> None:
    files = [path for path in classic_samples() if path.stat().st_size < 2000]
    assert attack(files, copies=TRUNCATIONS) == sum(path.stat().st_size for path in files)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_damaged_samples_end_in_a_sound_result_or_an_error(seed: int) -> None:
    files = classic_samples()
    assert attack(files, copies=2000, seed=seed) == 2000 * len(files)


@pytest.mark.slow
def test_every_truncation_of_every_sample_ends_in_a_sound_result_or_an_error() -> None:
    files = classic_samples()
    assert attack(files, copies=TRUNCATIONS) == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize("folder", ["hostile", "corpus", "traps"])
def test_malicious_and_real_files_end_in_a_sound_result_or_an_error(folder: str) -> None:
    files = shared_classic_files(folder)
    if not files:
        pytest.skip(f"the collection {folder} is not beside the project")
    assert attack(files, copies=0) == len(files)
    small = [path for path in files if path.stat().st_size < 10_000]
    assert attack(small, copies=20, seed=7) == 20 * len(small)
