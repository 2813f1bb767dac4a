"""Many files at once: all of them right, errors where they belong, connections shared, memory bounded."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.commands.translate.many import translate_many
from h5zarr.errors import H5ZarrError
from tests.collections_of_files import SAMPLES
from tests.roundtrip.reading import written
from tests.servers import RangeServer

NAMES = sorted(path.name for path in SAMPLES.glob("chunks_*.h5"))


@pytest.fixture(scope="module")
def server() -> Iterator[RangeServer]:
    files = {f"/{name}": (SAMPLES / name).read_bytes() for name in NAMES}
    with RangeServer({**files, "/broken.h5": b"no file"}, latency=0.02) as started:
        yield started


def test_each_file_is_translated_as_it_would_be_alone(server: RangeServer) -> None:
    urls = [server.url(f"/{name}") for name in NAMES]
    outcomes = {outcome.source: outcome for outcome in translate_many(urls)}
    assert sorted(outcomes) == sorted(urls)
    for url in urls:
        made = outcomes[url].translation
        assert made is not None
        assert written(made) == written(h5zarr.translate(url))


def test_a_file_that_cannot_be_read_does_not_end_the_others(server: RangeServer) -> None:
    urls = [server.url(path) for path in ("/broken.h5", f"/{NAMES[0]}", "/missing.h5", f"/{NAMES[1]}")]
    outcomes = {outcome.source: outcome for outcome in translate_many(urls, at_once=2)}
    assert [outcomes[url].translation is None for url in urls] == [True, False, True, False]
    assert [isinstance(outcomes[url].error, H5ZarrError) for url in urls] == [True, False, True, False]


def test_several_are_in_flight_and_share_their_connections(server: RangeServer) -> None:
    urls = [server.url(f"/{NAMES[0]}")] * 40
    started = time.perf_counter()
    assert sum(outcome.error is None for outcome in translate_many(urls, at_once=10)) == 40
    one_by_one = 40 * server.latency
    assert time.perf_counter() - started < one_by_one + 40 * 0.05
    assert server.counts.max_in_flight > 2


def test_files_are_processed_lazily(server: RangeServer) -> None:
    taken: list[str] = []

    def urls() -> Iterator[str]:
        for number in range(100):
            taken.append(str(number))
            yield server.url(f"/{NAMES[0]}")

    outcomes = translate_many(urls(), at_once=3)
    assert taken == []
    next(outcomes)
    assert len(taken) == 3
    next(outcomes)
    assert len(taken) <= 4
    outcomes.close()
    before = threading.active_count()
    assert before < 100


def test_no_workers_make_no_sense() -> None:
    with pytest.raises(ValueError, match="at_once is 0"):
        next(translate_many([], at_once=0))


def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["values"] = np.random.default_rng(1).random(500_000)  # 4 MB, read whole
    with RangeServer({"/file.h5": path.read_bytes()}) as server:

        def peak(count: int) -> int:
            tracemalloc.start()
            for outcome in translate_many([server.url("/file.h5")] * count, at_once=4):
                assert outcome.error is None
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

        peak(4)
        few, many = peak(8), peak(40)
    assert many < 1.5 * few + 4_000_000


def test_a_policy_and_options_reach_each_file(server: RangeServer) -> None:
    server.counts.gets.clear()
    (outcome,) = translate_many([server.url(f"/{NAMES[0]}")], network={"first_read_nbytes": 100}, strict=True)
    assert outcome.error is None
    assert server.counts.gets[0] == (0, 99)
