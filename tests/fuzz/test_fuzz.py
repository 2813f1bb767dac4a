"""Damage made by a seed ends in a result or an H5ZarrError, and in the values that h5py reads: a bounded run of each.

`python -m tests.fuzz --count 100000 --seed N` is the long run, `--differential` that against h5py.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from h5zarr.errors import H5ZarrError
from tests.fuzz import harness, seeds
from tests.fuzz.mutating import correct_checksums, mutate
from tests.fuzz.running import DIFFERENTIAL, Summary, run_cases

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
BOUND_SECONDS = 15


def check(summary: Summary) -> None:
    assert not summary.findings, "\n".join(str(one) for one in summary.findings[:5])


def test_damaged_input_ends_in_a_result_or_an_error() -> None:
    summary = run_cases(1000, seed=1, budget=BOUND_SECONDS)
    check(summary)
    assert summary.done >= 50  # on a machine that does other things, too


def test_what_h5py_still_reads_of_a_damaged_file_is_the_same_or_refused() -> None:
    summary = run_cases(200, seed=1, budget=BOUND_SECONDS, module=DIFFERENTIAL)
    check(summary)
    assert summary.done >= 10
    assert not summary.counts or summary.counts["compared"] > 50


@pytest.mark.slow
def test_a_hundred_thousand_damaged_inputs_end_in_a_result_or_an_error() -> None:
    summary = run_cases(100_000, seed=2)
    check(summary)
    assert summary.done == 100_000


@pytest.mark.slow
def test_what_h5py_still_reads_of_many_damaged_files_is_the_same_or_refused() -> None:
    check(run_cases(10_000, seed=2, module=DIFFERENTIAL))


def test_the_same_seed_makes_the_same_damage() -> None:
    (seed, *_) = seeds.classic_seeds()
    assert mutate(seed, random.Random("1/1")) == mutate(seed, random.Random("1/1"))
    assert mutate(seed, random.Random("1/1")) != mutate(seed, random.Random("1/2"))


@pytest.mark.parametrize("libver", ["v110", "latest"])
def test_damage_gets_past_checksums(libver: str, tmp_path: Path) -> None:
    seeds.write_small_hdf5(tmp_path / "small.h5", libver=libver)
    seed = seeds.map_hdf5("small.h5", (tmp_path / "small.h5").read_bytes())
    assert len(seed.checks) > 10
    assert len(seed.pointers) > 10
    _, end = next(span for span in seed.checks if seed.content[span[0] : span[0] + 4] == b"OHDR")
    broken = bytearray(seed.content)
    broken[end - 5] ^= 0xFF
    with pytest.raises(H5ZarrError, match="fails its checksum"):
        harness.fuzz_hdf5(bytes(broken), swallow=False)
    correct_checksums(broken, seed)
    said = ""
    try:
        harness.fuzz_hdf5(bytes(broken), swallow=False)
    except H5ZarrError as error:
        said = str(error)
    assert "checksum" not in said


@pytest.mark.parametrize("target", harness.TARGETS)
def test_every_harness_takes_its_own_seeds_and_nonsense(target: str) -> None:
    fuzz, corpus = harness.TARGETS[target]
    for content in [*list(corpus())[:5], b"", b"\0", b"\x89HDF\r\n\x1a\n" + bytes(100), b"CDF\x01" + b"\xff" * 100]:
        fuzz(content)
