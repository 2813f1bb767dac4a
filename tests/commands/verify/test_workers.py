"""However many processes compare, the report is the same; whatever becomes of them, nothing is taken for right."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.verify import spreading
from h5zarr.commands.verify import verify as hallway
from h5zarr.commands.verify.comparing import Run, Tally
from h5zarr.commands.verify.verified_arrays import Outcome, Verified
from h5zarr.commands.verify.verify import verify
from h5zarr.processes import WorkersLost
from tests.collections_of_files import PROJECT, SAMPLES
from tests.commands.index.jobs import environment, eventually, finish, parent_of
from tests.commands.verify import workers

BLOCK_NBYTES = 800


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a few hundred elements are large."""
    monkeypatch.setattr(hallway, "BLOCK_NBYTES", BLOCK_NBYTES)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of arrays, most of them with many blocks."""
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "verified"
        for name in ("right", "first", "later", "both", "broken", "swapped", "deadly"):
            file.create_dataset(name, data=np.arange(2000, dtype="i4"), chunks=(50,), compression="gzip")
        file.create_dataset("grid", data=np.arange(3600.0).reshape(60, 60), chunks=(7, 11), compression="gzip")
        file["words"] = np.array([b"one", b"two"], "S3")
        file["targets"] = np.array([file["right"].ref, file["first"].ref], h5py.ref_dtype)
        for number in range(20):
            file[f"small/{number}"] = np.arange(number)
    h5zarr.translate(path, tmp_path / "refs.json")
    return path


@pytest.fixture
def refs(source: Path) -> Path:
    """Right references to it."""
    return source.with_name("refs.json")


@pytest.fixture
def faulty(refs: Path) -> Path:
    """References to it with faults of many kinds."""
    document = json.loads(refs.read_text())
    found = document["refs"]
    found["first/c/0"], found["first/c/1"] = found["first/c/1"], found["first/c/0"]
    found["later/c/31"][1] += 1
    found["both/c/9"], found["both/c/30"] = found["both/c/30"], found["both/c/9"]
    found["broken/c/20"][2] -= 4
    found["swapped/c/38"], found["swapped/c/39"] = found["swapped/c/39"], found["swapped/c/38"]
    found["grid/c/4/3"], found["grid/c/4/4"] = found["grid/c/4/4"], found["grid/c/4/3"]
    found["targets/c/0"] = "base64:" + b64encode(b"\2\0\0\0" + b"\6\0\0\0/right" + b"\6\0\0\0/later").decode()
    metadata = json.loads(found["small/7/zarr.json"])
    found["small/7/zarr.json"] = json.dumps({**metadata, "attributes": {"new": 1}})
    root = json.loads(found["zarr.json"])
    root["consolidated_metadata"]["metadata"]["small/7"]["attributes"] = {"new": 1}
    found["zarr.json"] = json.dumps(root)
    refs.write_text(json.dumps(document))
    return refs


def report(refs: Path, **chosen: Any) -> dict[str, Any]:
    """Return the report of a verification, but for the time it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**verify(refs, **chosen).to_json(), "seconds": 0}


class HereInstead:
    """Stands for processes: this one does their work at once. The tasks in `deaths` are those that kill."""

    deaths: tuple[int, ...] = ()

    def __init__(self, count: int, begin: Callable[[bytes], None], packed: bytes) -> None:
        self.count = count
        self.tasks: list[tuple[Run, ...]] = []
        self.renewed = 0
        made.append(self)
        begin(packed)

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        self.tasks.append(given[0])
        future: Future[Any] = Future()
        if len(self.tasks) in self.deaths:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(given))))))
        return future

    def renew(self) -> None:
        self.renewed += 1

    def close(self) -> None:
        spreading._Kept.stack.close()
        spreading._Kept.comparer = None


made: list[HereInstead] = []


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[HereInstead]]:
    """Processes that are none."""
    monkeypatch.setattr(spreading, "Processes", HereInstead)
    monkeypatch.setattr(HereInstead, "deaths", ())
    made.clear()
    yield HereInstead
    made.clear()


# --- the same report


@pytest.mark.parametrize("chosen", [{}, {"sample": 0.2, "seed": 3}], ids=["all", "sample"])
def test_the_report_is_the_same_for_any_number_of_processes(chosen: dict[str, Any], faulty: Path) -> None:
    one = report(faulty, workers=1, **chosen)
    assert not one["right"]
    for count in (2, 3) if not chosen else (2,):
        assert report(faulty, workers=count, **chosen) == one


def test_every_planted_fault_is_in_the_report(faulty: Path, here: type[HereInstead]) -> None:
    one = report(faulty, workers=1)
    assert report(faulty, workers=3) == one
    arrays = {array["path"]: array for array in one["arrays"]}
    assert {path for path, array in arrays.items() if "differences" in array or "error" in array} == {
        *("/first", "/later", "/both", "/broken", "/swapped", "/grid", "/targets", "/small/7")
    }
    assert arrays["/both"]["differences"] == ["the first of 50 values that differ, at [450] is 1500, expected 450"]
    assert arrays["/both"]["chunks_compared"] == 8
    assert arrays["/swapped"]["chunks_compared"] == 36
    assert arrays["/broken"]["error"].startswith("[1000:1200] cannot be read through the references: ")
    assert arrays["/targets"]["differences"] == ["reference is '/later', expected '/first'"]


@pytest.mark.parametrize(
    "name",
    [
        *("ocean.nc", "netcdf4_types.nc", "netcdf4_unlimited.nc", "netcdf4_groups.nc", "dimension_scales.h5"),
        *("classic_types_cdf5.nc", "classic_several_records.nc", "classic_streaming.nc", "dataspaces_latest.h5"),
        *("types_compound_latest.h5", "types_strings_vlen_latest.h5", "types_enum_bool_array_latest.h5"),
        *("types_references_latest.h5", "filters_skipped_latest.h5", "filters_unknown.h5", "chunks_btree2_depth_1.h5"),
    ],
)
def test_samples_are_reported_alike_in_parts(name: str, tmp_path: Path, here: type[HereInstead]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h5zarr.translate(SAMPLES / name, tmp_path / "refs.json")
    one = report(tmp_path / "refs.json", workers=1)
    assert report(tmp_path / "refs.json", workers=3) == one
    assert made


@given(ends=st.sets(st.integers(0, 9)), order=st.permutations(range(10)))
def test_outcomes_are_put_together_in_order(ends: set[int], order: list[int]) -> None:
    runs = [Run("/v", 2 * number, 2 * number + 2, 1) for number in range(10)]
    tally = Tally(Verified("/v"), runs)
    told = 0
    for number in order:
        if tally.needs(runs[number]):
            told += tally.add(runs[number], Outcome(2, f"difference {number}" if number in ends else ""))
    first = min(ends, default=None)
    assert tally.is_done
    assert told == 1
    assert tally.verified.compared == (20 if first is None else 2 * first + 2)
    assert tally.verified.differences == ([] if first is None else [f"difference {first}"])


def test_nothing_behind_a_difference_is_compared_that_has_not_begun(faulty: Path, here: type[HereInstead]) -> None:
    report(faulty, workers=2)
    parts = [run for task in made[0].tasks for run in task if run.path == "/first"]
    assert len(parts) < 10


def test_small_arrays_share_a_task(refs: Path, here: type[HereInstead]) -> None:
    report(refs, workers=2)
    assert max(len({run.path for run in task}) for task in made[0].tasks) > 5
    assert all(sum(run.nbytes for run in task) <= 2 * BLOCK_NBYTES for task in made[0].tasks)


def test_every_array_is_reported_once(faulty: Path, here: type[HereInstead]) -> None:
    told: list[tuple[str, int]] = []
    found = verify(faulty, workers=3, on_array=lambda array, count: told.append((array.path, count)))
    assert sorted(path for path, _ in told) == sorted(one.path for one in found.arrays)
    assert {count for _, count in told} == {len(found.arrays)}


# --- when there are processes


def test_one_array_is_spread_over_all_processes(refs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "compare_runs", workers.noting)
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv("H5ZARR_NOTES", str(tmp_path / "notes"))
    with h5py.File(tmp_path / "one.h5", "w") as file:
        file.create_dataset("v", data=np.arange(6000, dtype="i4"), chunks=(50,), compression="gzip")
    h5zarr.translate(tmp_path / "one.h5", tmp_path / "one.json")
    found = verify(tmp_path / "one.json", workers=2)
    assert found.is_right
    assert (found.arrays[0].compared, found.arrays[0].total) == (120, 120)
    numbers = {int(path.name) for path in (tmp_path / "notes").iterdir()}
    assert len(numbers) == 2
    assert os.getpid() not in numbers
    assert all(parent_of(number) is None for number in numbers)


def test_little_is_compared_in_this_process(refs: Path, here: type[HereInstead]) -> None:
    assert verify(refs, workers=None).is_right
    assert verify(refs, workers=1).is_right
    assert not made


@pytest.mark.parametrize(("paying_nbytes", "count"), [(1_000, 5), (30_000, 2)])
def test_much_is_compared_in_as_many_processes_as_pay(
    paying_nbytes: int, count: int, refs: Path, here: type[HereInstead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "PAYING_NBYTES", paying_nbytes)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert verify(refs, workers=None).is_right
    assert made[0].count == count


def test_what_is_in_the_memory_of_this_process_is_compared_here(
    source: Path, tmp_path: Path, here: type[HereInstead]
) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/verified/source.h5", source.read_bytes())
    h5zarr.translate("memory://verified/source.h5", tmp_path / "far.json")
    try:
        assert verify(tmp_path / "far.json", workers=2, allow=["memory://verified"]).is_right
    finally:
        fsspec.filesystem("memory").rm("/verified", recursive=True)
    assert not made


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_worker_is_refused(count: int, refs: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        verify(refs, workers=count)
    assert main(["verify", str(refs), "--workers", str(count)]) == 2


# --- when they die


def test_a_part_that_kills_its_process_is_an_error_of_its_array(refs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "compare_runs", workers.deadly)
    found = verify(refs, workers=2)
    assert [one.path for one in found.arrays if not one.is_right] == ["/deadly"]
    (deadly,) = (one for one in found.arrays if one.path == "/deadly")
    assert (deadly.compared, deadly.total) == (8, 40)
    assert deadly.error.startswith("[400:600] could not be compared: its worker process died. ")
    assert all(one.compared == one.total for one in found.arrays if one is not deadly)


@pytest.mark.parametrize("death", [1, 2, 5, 9])
def test_a_process_that_is_killed_from_outside_costs_nothing(
    death: int, faulty: Path, here: type[HereInstead], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = report(faulty, workers=1)
    monkeypatch.setattr(here, "deaths", (death,))
    assert report(faulty, workers=2) == one
    assert made[-1].renewed == 1


class Unstartable(HereInstead):
    """No process can be started."""

    def submit(self, function: Callable[..., Any], *given: Any) -> Future[Any]:
        raise BrokenProcessPool

    def renew(self) -> None:
        raise WorkersLost("no worker process can be started")


def test_where_no_process_can_be_started_this_one_compares_unless_others_were_wanted(
    refs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "Processes", Unstartable)
    monkeypatch.setattr(spreading, "PAYING_NBYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert verify(refs, workers=None).is_right
    with pytest.raises(WorkersLost, match="no worker process"):
        verify(refs, workers=2)


def test_what_other_processes_cannot_open_is_compared_here_unless_they_were_wanted(
    refs: Path, here: type[HereInstead], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(work: Any) -> Any:
        raise OSError("secret")

    monkeypatch.setattr(spreading, "open_comparer", refuse)
    monkeypatch.setattr(HereInstead, "submit", submit_failing)
    monkeypatch.setattr(spreading, "PAYING_NBYTES", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert verify(refs, workers=None).is_right
    assert made
    with pytest.raises(WorkersLost, match=r"cannot open the inputs: OSError\n"):
        verify(refs, workers=2)


def submit_failing(self: HereInstead, function: Callable[..., Any], *given: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        function(*given)
    except WorkersLost as error:
        future.set_exception(pickle.loads(pickle.dumps(error)))
    return future


# --- when it is stopped


@pytest.mark.parametrize(
    ("number", "is_for_all", "code"),
    [
        # Once in some thirty runs, on a busy machine, Python's pool did not end when it was interrupted.
        pytest.param(signal.SIGINT, True, 130, marks=pytest.mark.slow),
        (signal.SIGTERM, False, 143),
        pytest.param(signal.SIGKILL, False, -9, marks=pytest.mark.slow),
    ],
    ids=["interrupt for all", "term", "kill"],
)
def test_a_signal_ends_the_command_and_its_processes_at_once(
    number: signal.Signals, is_for_all: bool, code: int, refs: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.commands.verify.workers", "verify", str(refs), "--workers", "2"],
        env={**environment(), "H5ZARR_NOTES": str(notes)},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert eventually(lambda: len(list(notes.iterdir())) == 2, 60)
        began = time.monotonic()
        os.killpg(process.pid, number) if is_for_all else process.send_signal(number)
        ended, said = finish(process)
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.communicate()
    assert ended == code
    assert said == "" or number is signal.SIGKILL  # no tracebacks
    assert eventually(lambda: all(parent_of(int(path.name)) is None for path in notes.iterdir()))
