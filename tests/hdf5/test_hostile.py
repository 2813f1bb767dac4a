"""Damaged and malicious files end in a result or an H5ZarrError: quickly, in little memory, and in no other way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.collections_of_files import SHARED, sample_files, shared_files
from tests.hostile import run_worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")


def attack(files: list[Path], *, copies: int, seed: int = 0, checksums: bool = True) -> int:
    """Return how many scans were tried; fail on the first surprises."""
    return run_worker("tests.hdf5.hostile_worker", files, copies=copies, seed=seed, checksums=checksums)


def small_samples() -> list[Path]:
    return [path for path in sample_files() if path.stat().st_size < 100_000]


@pytest.mark.parametrize("checksums", [True, False], ids=["checksums verified", "checksums taken as right"])
def test_damaged_samples_end_in_a_result_or_an_error(checksums: bool) -> None:
    files = small_samples()
    assert attack(files, copies=25, seed=1, checksums=checksums) == 25 * len(files)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("checksums", [True, False], ids=["checksums verified", "checksums taken as right"])
def test_many_damaged_samples_end_in_a_result_or_an_error(seed: int, checksums: bool) -> None:
    files = small_samples()
    assert attack(files, copies=200, seed=seed, checksums=checksums) == 200 * len(files)


@pytest.mark.slow
def test_every_truncation_of_a_sample_ends_in_a_result_or_an_error(tmp_path: Path) -> None:
    for path in (path for path in sample_files() if path.stat().st_size < 9000):
        content = path.read_bytes()
        folder = tmp_path / path.stem
        folder.mkdir()
        for nbytes in range(0, len(content), 7):
            (folder / f"{nbytes}").write_bytes(content[:nbytes])
        cuts = sorted(folder.iterdir())
        assert attack(cuts, copies=0) == len(cuts)


@pytest.mark.skipif(not (SHARED / "hostile").is_dir(), reason="the collection hostile is not beside the project")
def test_malicious_files_end_in_a_result_or_an_error() -> None:
    files = [path for path in sorted((SHARED / "hostile").rglob("*")) if path.is_file() and path.suffix != ".csv"]
    assert attack(files, copies=0) == len(files) > 100


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="the collection corpus is not beside the project")
def test_damaged_real_files_end_in_a_result_or_an_error() -> None:
    files = [path for path in shared_files("corpus") if path.stat().st_size < 200_000]
    assert attack(files, copies=50, seed=9, checksums=False) == 50 * len(files)
