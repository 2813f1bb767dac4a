"""Sixteen threads open, read and close for a long time, while the server fails now and then.

Every result is right, or an error says why there is none; descriptors and memory stay as they are. Set
`H5ZARR_SOAK_SECONDS` to the time that it takes.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from tests.servers import Faults, RangeServer

SECONDS = float(os.environ.get("H5ZARR_SOAK_SECONDS", 3600))
THREADS, FILES, STEPS = 16, 12, 8
_FAILING = (429, 500, 502, 503, 504)

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="/proc is not on this system")


def values(number: int) -> Any:
    return np.random.default_rng(number).random((STEPS, 30, 40)).astype("f4")


def write(path: Path, number: int) -> None:
    with netCDF4.Dataset(path, "w") as file:
        group = file.createGroup("inner")
        for place in (file, group):
            for name, extent in zip(("time", "y", "x"), (None, 30, 40), strict=True):
                place.createDimension(name, extent)
            place.createVariable("time", "i4", ("time",))[:] = np.arange(STEPS) + STEPS * number
            place.createVariable("v", "f4", ("time", "y", "x"), zlib=True, chunksizes=(1, 30, 40))[:] = values(number)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[RangeServer, dict[str, str]]]:
    paths = [tmp_path / f"f{number:02}.nc" for number in range(FILES)]
    for number, path in enumerate(paths):
        write(path, number)
    with RangeServer({f"/{path.name}": path.read_bytes() for path in paths}) as server:
        urls = [server.url(f"/{path.name}") for path in paths]
        h5zarr.combine(urls, tmp_path / "cube.json", along="time")
        h5zarr.combine(urls, tmp_path / "cube.parquet", along="time")
        h5zarr.translate(urls[0], tmp_path / "one.json")
        server.set_faults(Faults())
        yield (
            server,
            {
                "far cube": str(tmp_path / "cube.json"),
                "far cube in parquet": str(tmp_path / "cube.parquet"),
                "far file": urls[0],
                "references": str(tmp_path / "one.json"),
                "file": str(paths[0]),
            },
        )


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_nbytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Soak:
    """Threads that open, read and close until they are stopped."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._whole = np.concatenate([values(number) for number in range(FILES)])
        self.is_stopped = threading.Event()
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self.is_stopped.is_set():
            name = chance.choice(list(self._places))
            try:
                self._read(name, chance)
                outcome = "right"
            except h5zarr.H5ZarrError as error:
                outcome = type(error).__name__
            with self._lock:
                self.counts[outcome] += 1

    def _read(self, name: str, chance: random.Random) -> None:
        place, expected = self._places[name], self._whole if "cube" in name else self._whole[:STEPS]
        how = chance.random()
        options: dict[str, Any] = {"engine": "h5zarr", "decode_times": False}
        if how < 0.2 and "cube" not in name:
            with xr.open_datatree(place, **options) as tree:
                np.testing.assert_array_equal(tree["inner"].v.values, expected)
        elif how < 0.4 and "cube" not in name:
            with xr.open_dataset(place, group="inner", **options) as opened:
                np.testing.assert_array_equal(opened.v.values, expected)
        else:
            with xr.open_dataset(place, **options) as opened:
                if how < 0.6:
                    for step in range(len(expected)):
                        np.testing.assert_array_equal(opened.v[step].values, expected[step])
                else:
                    rows, column = sorted(chance.sample(range(len(expected)), 3)), chance.randrange(40)
                    np.testing.assert_array_equal(opened.v[rows, :, column].values, expected[rows, :, column])


def disturb(server: RangeServer, chance: random.Random) -> None:
    """Let some of the next requests fail."""
    numbers = chance.sample(range(1, 400), 20)
    statuses = {number: chance.choice(_FAILING) for number in numbers[:12]}
    server.set_faults(Faults(statuses=statuses, cut=frozenset(numbers[12:16]), short=frozenset(numbers[16:])))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .fastparquet. engine is deprecated")
def test_for_a_long_time_nothing_is_wrong_and_nothing_grows(places: tuple[RangeServer, dict[str, str]]) -> None:
    server, names = places
    soak, chance = Soak(names), random.Random(0)
    end, measured = time.monotonic() + SECONDS, []
    with ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(soak.run, seed) for seed in range(THREADS)]
        try:
            while time.monotonic() < end and not any(one.done() for one in running):
                disturb(server, chance)
                server.counts.headers.clear()  # which would grow
                server.counts.urls.clear()
                time.sleep(min(2, SECONDS / 30))
                measured.append((descriptors(), resident_nbytes()))
        finally:
            soak.is_stopped.set()
        for one in running:
            one.result()
    warm = measured[len(measured) // 3]
    print(
        f"\n{dict(soak.counts)}; descriptors {warm[0]}, {measured[-1][0]}; MB {warm[1] >> 20}, {measured[-1][1] >> 20}"
    )
    assert soak.counts["right"] > 10 * sum(count for name, count in soak.counts.items() if name != "right")
    assert max(one[0] for one in measured[-5:]) <= max(one[0] for one in measured[: len(measured) // 2]) + 8
    assert measured[-1][1] < warm[1] + (64 << 20)
