"""Loops along an axis are read ahead of; everything has the same values as without that."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr

import h5zarr
from h5zarr.read import reading_ahead
from h5zarr.read.reading_ahead import Range, ReadingAhead, find_loop, plain_ranges
from h5zarr.zarr_model.grid import RegularGrid
from tests.servers import Faults, RangeServer

SHAPE, CHUNKS = (60, 40), (4, 20)
VALUES = np.arange(60 * 40, dtype="f4").reshape(SHAPE)


class Reads:
    """A function that reads, and what it was asked. Reading `held` waits until it `may_end`."""

    def __init__(self) -> None:
        self.asked: list[tuple[Range, ...]] = []
        self.held: tuple[Range, ...] = ()
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.fails: Callable[[Sequence[Range]], bool] = lambda ranges: False

    def __call__(self, ranges: Sequence[Range]) -> npt.NDArray[Any]:
        self.asked.append(tuple(ranges))
        if tuple(ranges) == self.held:
            self.has_begun.set()
            assert self.may_end.wait(10)
        if self.fails(ranges):
            raise ValueError("broken")
        return VALUES[tuple(slice(*one) for one in ranges)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    monkeypatch.setattr(reading_ahead, "_WORTHWHILE_SECONDS", -1)
    monkeypatch.setattr(reading_ahead, "_budget", reading_ahead._Budget())
    return Reads()


def ahead_of(reads: Reads, most: int = 1 << 20) -> ReadingAhead:
    return ReadingAhead(reads, RegularGrid(SHAPE, CHUNKS), 4, most)


def row(number: int, count: int = 1) -> tuple[Range, Range]:
    return Range(number, number + count), Range(0, 40)


def check(ahead: ReadingAhead, wanted: tuple[Range, ...]) -> None:
    np.testing.assert_array_equal(ahead.get(wanted), VALUES[tuple(slice(*one) for one in wanted)])


def test_a_loop_reads_every_chunk_once(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in range(60):
        check(ahead, row(number))
    assert reads.asked[:3] == [row(0), row(1), row(2)]  # then it is sure
    assert sorted(reads.asked[3:]) == [row(first, 4) for first in range(0, 60, 4)]


@pytest.mark.parametrize("steps", [range(59, -1, -1), range(0, 60, 7), range(56, -1, -4)])
@pytest.mark.parametrize("count", [1, 4])
def test_loops_of_any_direction_and_step(steps: range, count: int, reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in steps:
        check(ahead, row(number, min(count, 60 - number)))


def test_a_loop_along_another_axis(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for column in range(40):
        check(ahead, (Range(3, 50), Range(column, column + 1)))
    assert len(reads.asked) == 3 + 2


def test_what_is_no_loop_is_not_read_ahead(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in (5, 6, 40, 41, 3, 17, 17, 17, 50):
        check(ahead, row(number))
    assert len(reads.asked) == 9


def test_a_loop_that_ends_is_forgotten(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in (0, 1, 2, 3, 50, 51, 30, 31, 32, 33, 34):
        check(ahead, row(number))


def test_an_error_is_that_of_its_step(reads: Reads) -> None:
    ahead = ahead_of(reads)
    reads.fails = lambda ranges: ranges[0].start <= 9 < ranges[0].stop
    for number in range(20):
        if number == 9:
            with pytest.raises(ValueError, match="broken"):
                ahead.get(row(number))
        else:
            check(ahead, row(number))


def test_results_can_be_changed(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in range(12):
        found = ahead.get(row(number))
        np.testing.assert_array_equal(found, VALUES[number : number + 1])
        found[...] = -1


def test_memory_is_limited_and_given_back(reads: Reads) -> None:
    nothing, little = ahead_of(reads, most=100), ahead_of(reads, most=4 * 40 * 4)
    for number in range(12):
        check(nothing, row(number))
    assert len(reads.asked) == 12
    for number in range(12):
        check(little, row(number))
    assert reading_ahead._budget.used_nbytes == 4 * 40 * 4
    del little
    assert reading_ahead._budget.used_nbytes == 0


def test_while_several_threads_read_nothing_is_read_ahead(reads: Reads) -> None:
    ahead = ahead_of(reads)
    reads.held = row(50)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ahead.get, row(50))
        assert reads.has_begun.wait(10)
        for number in range(12):
            check(ahead, row(number))
        assert len(reads.asked) == 13
        reads.may_end.set()
        np.testing.assert_array_equal(waiting.result(10), VALUES[50:51])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_process_goes_on_with_the_loop(reads: Reads) -> None:
    ahead = ahead_of(reads)
    for number in range(6):
        check(ahead, row(number))
    everyone = threading.Barrier(reading_ahead._MOST_AHEAD)
    list(
        reading_ahead._threads().map(lambda _: everyone.wait(10), range(reading_ahead._MOST_AHEAD))
    )  # all are idle now
    child = os.fork()
    if child == 0:
        try:
            for number in range(6, 60):
                check(ahead, row(number))
        except BaseException:
            os._exit(1)
        os._exit(0)
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child process hangs")
    assert os.waitstatus_to_exitcode(status) == 0


def test_fast_reads_need_no_help(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_ahead, "_WORTHWHILE_SECONDS", 60)
    ahead = ahead_of(reads)
    for number in range(12):
        check(ahead, row(number))
    assert len(reads.asked) == 12


def test_what_is_a_loop() -> None:
    assert find_loop(row(3), row(4)) == (0, 1)
    assert find_loop(row(3, 5), row(1, 5)) == (0, -2)
    assert find_loop(row(3), row(4, 2)) is None
    assert find_loop(row(3), (Range(4, 5), Range(0, 39))) is None
    assert find_loop(row(3), row(3)) is None
    assert plain_ranges((-1, slice(None)), SHAPE) == (Range(59, 60), Range(0, 40))
    for key in (
        (60, slice(None)),
        (slice(0, 9, 2), 0),
        (slice(5, 5), 0),
        (np.array([1]), 0),
        (slice(None, None, -1), 0),
    ):
        assert plain_ranges(key, SHAPE) is None


def test_a_loop_over_a_remote_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=VALUES, chunks=(4, 40), compression="gzip")
    with RangeServer({"/a.h5": (tmp_path / "a.h5").read_bytes()}) as server:
        h5zarr.translate(server.url("/a.h5"), tmp_path / "a.json", inline_bytes=0)
        asked = {}
        for most in (0, 1 << 20):
            policy = {"prefetch_nbytes": most}
            with xr.open_dataset(tmp_path / "a.json", engine="h5zarr", network=policy) as opened:
                server.set_faults(Faults())
                server.latency = 0.01
                found = np.stack([opened.v[number].values for number in range(60)])
            server.latency = 0
            np.testing.assert_array_equal(found, VALUES)
            asked[most] = len(server.counts.gets)
        assert asked == {0: 60, 1 << 20: 3 + 15}
