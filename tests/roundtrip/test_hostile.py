"""Damaged and malicious files end in a translation or an H5ZarrError: quickly, in little memory, in no other way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.collections_of_files import SHARED, sample_files, shared_files
from tests.hostile import run_worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")


def attack(files: list[Path], *, copies: int, seed: int = 0, checksums: bool = True) -> int:
    """Return how many translations were tried; fail on the first surprises."""
    first = [str(path) for path in sample_files() if path.name.startswith(("filters", "ocean"))]
    task = {"first": first, "copies": copies, "seed": seed, "checksums": checksums}
    return run_worker("tests.roundtrip.hostile_worker", files, **task)


def small_samples() -> list[Path]:
    return [path for path in sample_files() if path.stat().st_size < 50_000]


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums verified", "checksums taken as right"])
def test_damaged_samples_end_in_a_translation_or_an_error(checksums: bool) -> None:
    files = small_samples()
    assert attack(files, copies=8, seed=1, checksums=checksums) == 8 * len(files) > 1000


@pytest.mark.skipif(not (SHARED / "hostile").is_dir(), reason="the collection hostile is not beside the project")
def test_malicious_files_end_in_a_translation_or_an_error() -> None:
    files = [path for path in sorted((SHARED / "hostile").rglob("*")) if path.is_file() and path.suffix != ".csv"]
    assert attack(files, copies=0) == len(files) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("checksums", [True, False], ids=["checksums verified", "checksums taken as right"])
def test_many_damaged_samples_end_in_a_translation_or_an_error(seed: int, checksums: bool) -> None:
    files = small_samples()
    assert attack(files, copies=100, seed=seed, checksums=checksums) == 100 * len(files)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="the collection corpus is not beside the project")
def test_damaged_real_files_end_in_a_translation_or_an_error() -> None:
    files = [path for path in shared_files("corpus") if path.stat().st_size < 200_000]
    assert attack(files, copies=30, seed=9, checksums=False) == 30 * len(files)
