"""How many rounds a scan takes: a matter of depth, never of how many objects a file holds.

`rounds.json` has the rounds of every sample. A change of the parser may change it, on purpose: run this module with
`python -m tests.hdf5.test_rounds` to write it anew, and look at the difference.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import h5py
import pytest

from h5zarr.formats import scan_source
from h5zarr.hdf5.file import read_file
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from tests.collections_of_files import SAMPLES, sample_files

EXPECTED = Path(__file__).with_name("rounds.json")


def count_rounds(path: Path) -> int:
    with open_source(str(path)) as source:
        scan_source(source)
        return source.log.rounds


@pytest.mark.parametrize("path", sample_files(), ids=lambda path: path.name)
def test_samples_take_exactly_the_expected_rounds(path: Path) -> None:
    assert count_rounds(path) == json.loads(EXPECTED.read_text())[path.name]


def test_the_expected_rounds_are_those_of_the_samples() -> None:
    assert sorted(json.loads(EXPECTED.read_text())) == sorted(path.name for path in sample_files())


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_rounds_do_not_grow_with_the_number_of_datasets(libver: str, tmp_path: Path) -> None:
    rounds = []
    for count in (200, 800):  # links are dense in both
        path = tmp_path / f"{count}.h5"
        with h5py.File(path, "w", libver=libver) as file:
            for number in range(count):
                dataset = file.create_dataset(f"group_{number % 10}/data_{number}", (40,), "f4", chunks=(4,))
                dataset[:] = number
                dataset.attrs["units"] = f"unit {number}"
        rounds.append(count_rounds(path))
    assert max(rounds) <= min(rounds) + 1  # groups of 20 and of 80 links: trees and heaps of links grow by a level


def test_a_small_remote_file_takes_one_round() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/ocean.nc", (SAMPLES / "ocean.nc").read_bytes())
    with open_source("memory://ocean.nc") as source:
        scan_source(source)
        assert (source.log.rounds, source.log.requests) == (1, 1)


def test_no_value_of_a_dataset_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("contiguous", data=list(range(100_000)))
        file.create_dataset("chunked", data=list(range(100_000)), chunks=(50_000,))
        values = [file["contiguous"].id.get_offset(), file["chunked"].id.get_chunk_info(1).byte_offset]
    content = path.read_bytes()
    asked: list[Span] = []

    def read_many(spans: Sequence[Span]) -> list[memoryview]:
        asked.extend(spans)
        return [memoryview(content[span.address : span.end]) for span in spans]

    run(read_file(str(path), len(content)), read_many)
    for start in values:
        inside = [span for span in asked if span.address < start + 200_000 and start + 4096 < span.end]
        assert inside == []


if __name__ == "__main__":
    found = {path.name: count_rounds(path) for path in sample_files()}
    EXPECTED.write_text(json.dumps(found, indent=1) + "\n")
