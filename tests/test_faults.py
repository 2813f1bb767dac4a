"""One request in five goes wrong: a scan, and a read, end right or in a clear error, never in something else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import SourceError
from h5zarr.io.access import Access
from h5zarr.io.network import NetworkPolicy
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.read.sources import Sources
from tests.io.policies import EXACT
from tests.roundtrip.reading import written
from tests.servers import Faults, RangeServer

VALUES = np.random.default_rng(3).integers(0, 1000, (64, 4096)).astype("<i4")
# Many small requests, so that many can fail.
SCAN = replace(EXACT, block_nbytes=512, first_read_nbytes=512, timeout_seconds=0.3)
READ = NetworkPolicy(latency_seconds=0, timeout_seconds=0.3)


def one_in_five(seed: int) -> Faults:
    """Return faults of all kinds, at random."""
    chance = random.Random(seed)
    kinds: dict[str, list[int]] = {"status": [], "short": [], "cut": [], "hang": [], "shifted": []}
    for number in range(1, 2000):
        if chance.random() < 0.2:
            kinds[chance.choice(list(kinds))].append(number)
    return Faults(
        statuses={number: chance.choice([429, 500, 502, 503, 504]) for number in kinds["status"]},
        short=frozenset(kinds["short"]),
        cut=frozenset(kinds["cut"]),
        hang=frozenset(kinds["hang"]),
        shifted=frozenset(kinds["shifted"]),
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "file.h5"
    with h5py.File(path, "w") as made:
        for number in range(6):
            made.create_dataset(f"g{number}/v", data=VALUES[:8], chunks=(1, 512)).attrs["units"] = "m"
        made.create_dataset("v", data=VALUES, chunks=(1, 4096), compression="gzip")
    return path


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RangeServer]:
    with RangeServer({"/file.h5": file.read_bytes()}) as started:
        yield started


@pytest.mark.parametrize("seed", range(6))
def test_a_scan_among_faults_ends_right_or_in_a_clear_error(server: RangeServer, file: Path, seed: int) -> None:
    url = server.url("/file.h5")
    expected = written(translate(file, target_url=url))
    server.set_faults(one_in_five(seed))
    outcome: bytes | SourceError
    try:
        outcome = written(translate(url, network=asdict(SCAN)))
    except SourceError as error:
        outcome = error
    if isinstance(outcome, SourceError):
        assert str(outcome).startswith(url)
        assert outcome.remedy
    else:
        # They differ in the second line alone, which says where the file was read.
        assert outcome.split(b"\n")[2:] == expected.split(b"\n")[2:]
        assert len(server.counts.gets) > 20


@pytest.mark.parametrize("seed", range(6))
def test_a_read_among_faults_ends_right_or_in_a_clear_error(server: RangeServer, file: Path, seed: int) -> None:
    node = translate(file).arrays()["/v"]
    decoder = find_decoder(node)
    assert decoder is not None
    server.set_faults(one_in_five(100 + seed))
    values = ArrayValues("/v", node, decoder, Sources(urls=(server.url("/file.h5"),), access=Access(network=READ)))
    rights = 0
    for row in range(0, 64, 4):
        told = ""
        try:
            found = values[np.array([row, row + 2]), slice(None)]
        except SourceError as error:
            told = str(error)
        if told:
            assert "/file.h5: bytes" in told
        else:
            assert np.array_equal(found, VALUES[[row, row + 2]])
            rights += 1
    assert rights >= 8
