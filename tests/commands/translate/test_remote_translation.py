"""However a file is read, in whatever pieces and rounds, its translation is the same."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translate import translate_source
from h5zarr.errors import H5ZarrError, Problem, surprised
from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.location import Location
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.source import Source, open_source
from tests.collections_of_files import any_samples, any_shared
from tests.io.policies import EXACT
from tests.roundtrip.reading import written

COLLECTIONS = [
    *any_samples(),
    *any_shared("corpus"),
    *any_shared("traps"),
]
SURPRISED = str(surprised(TypeError())).partition(":")[0]


def any_policy(seed: str) -> NetworkPolicy:
    """Return a policy in which anything may be small, large or zero."""
    chance = random.Random(seed)
    return NetworkPolicy(
        latency_seconds=chance.choice([0, 1e-4, 0.03]),
        bytes_per_second=chance.choice([1e4, 1e6, 1e8]),
        request_seconds=chance.choice([0, 1e-4, 1e-3]),
        whole_seconds=0,
        whole_round_trips=chance.choice([0, 2]),
        ahead_round_trips=chance.choice([0, 0.5, 2]),
        ahead_share=chance.choice([0, 1]),
        ahead_per_use=chance.choice([0, 1, 16]),
        block_nbytes=chance.choice([1, 64, 4096]),
        first_read_nbytes=chance.choice([0, 1, 300, 5000]),
        request_nbytes=chance.choice([7, 1000, 1 << 20]),
        cache_nbytes=chance.choice([0, 3000, 1 << 20]),
    )


def outcome(source: Source, path: Path) -> tuple[list[bytes], tuple[Problem, ...]] | str:
    """Return the references but for the lines that say when and by whom, and what is left out; or the error."""
    try:
        with source:
            made = translate_source(source, Location.parse(path), Options())
    except H5ZarrError as error:
        return str(error)
    return written(made).split(b"\n")[2:], made.problems


@pytest.mark.parametrize("path", COLLECTIONS)
def test_a_remote_file_reads_like_the_local_one(path: Path) -> None:
    expected = outcome(open_source(str(path)), path)
    # Nothing that only the last line of defence caught: that would be a bug in h5zarr, reported as a broken file.
    assert isinstance(expected, str) or not any(SURPRISED in problem.message for problem in expected[1])
    for policy in (replace(EXACT, cache_nbytes=0), any_policy(path.name)):
        with path.open("rb") as file:
            assert outcome(FileObjectSource(file, url=str(path), network=policy), path) == expected, policy


@pytest.mark.slow
@pytest.mark.parametrize("path", COLLECTIONS)
def test_a_file_is_the_same_with_many_policies(path: Path) -> None:
    expected = outcome(open_source(str(path)), path)
    for number in range(10):
        policy = any_policy(f"{path.name} {number}")
        with path.open("rb") as file:
            assert outcome(FileObjectSource(file, url=str(path), network=policy), path) == expected, policy


def make_many(path: Path) -> Path:
    """Make a file of 80 datasets in groups, with texts, references and values to inline: many things at once."""
    with h5py.File(path, "w", libver="latest") as file:
        for name in "abcdefgh":
            group = file.create_group(name)
            for axis in "xy":
                group[axis] = np.arange(12.0)
                group[axis].make_scale(axis)
                group[axis].attrs["long_name"] = f"the coordinate {axis} of {name}"
            for number in range(8):
                variable = group.create_dataset(f"variable_{number}", (12, 12), "<f4", chunks=(6, 6), compression=1)
                variable[:6] = number
                variable.attrs.update({f"note_{note}": f"{note} of {number} " * note for note in range(9)})
                for dimension, axis in zip(variable.dims, "yx", strict=True):
                    dimension.attach_scale(group[axis])
    return path


def test_a_file_of_many_datasets_is_the_same_with_any_policy(tmp_path: Path) -> None:
    path = make_many(tmp_path / "many.h5")
    expected = outcome(open_source(str(path)), path)
    assert not expected[1]
    for number in range(20):
        policy = any_policy(str(number))
        with path.open("rb") as file:
            assert outcome(FileObjectSource(file, url=str(path), network=policy), path) == expected, policy
