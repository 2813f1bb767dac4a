"""Only one run at a time holds the lease on an index, whatever the clocks say. A run that loses it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row
from h5zarr.commands.catalog.waiting import Stopped
from h5zarr.commands.index import lease as leases
from h5zarr.commands.index import running
from h5zarr.commands.index.lease import LEASE, Lease, LeaseHeld
from h5zarr.errors import OutputError
from tests.commands.index.jobs import check_index, fill, finish, start, started

BEAT = 0.05
ELSEWHERE = {"holder": "another", "beat": 3, "process": 1, "host": "elsewhere", "system": "other", "began": "1"}


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path / "refs" if request.param == "local" else f"memory://{tmp_path.name}{os.getpid()}/refs")


def put(place: Place, **changes: Any) -> None:
    place.write(LEASE, json.dumps({**ELSEWHERE, **changes}).encode())


def take_over(place: Place, held: Lease) -> bool:
    """Put another's lease in the place of one that is held, until whoever holds it knows; return whether they do.

    A beat may be written over it: a run that takes over looks again, too.
    """
    for _ in range(100):
        put(place)
        if held.is_lost.wait(10 * BEAT):
            return True
    return False


def test_a_lease_is_there_while_it_is_held_and_changes_with_every_beat(place: Place) -> None:
    with Lease(place, beat_seconds=BEAT) as held:
        first = place.read(LEASE)
        assert first is not None
        end = time.monotonic() + 10
        while place.read(LEASE) == first and time.monotonic() < end:
            time.sleep(BEAT)
        assert place.read(LEASE) != first
        assert not held.is_lost.is_set()
        assert not held.is_inherited
    assert place.read(LEASE) is None


def test_a_lease_that_is_held_is_not_given_to_another(place: Place) -> None:
    with Lease(place, beat_seconds=BEAT), pytest.raises(LeaseHeld, match=f"process {os.getpid()} on"):
        Lease(place, beat_seconds=20 * BEAT).__enter__()


def test_a_lease_is_waited_for(place: Place) -> None:
    ended: list[float] = []

    def hold() -> None:
        with Lease(place, beat_seconds=BEAT):
            held.set()
            time.sleep(0.5)
            ended.append(time.monotonic())

    held, thread = threading.Event(), threading.Thread(target=hold)
    thread.start()
    held.wait()
    with Lease(place, wait_seconds=10, beat_seconds=20 * BEAT):
        assert ended
    thread.join()


def test_a_lease_that_does_not_change_is_taken_over_whatever_time_it_tells(place: Place) -> None:
    for moment in (0, 1e18, -1e18, "tomorrow"):
        put(place, time=moment, beat=moment)
        began = time.monotonic()
        with Lease(place, beat_seconds=BEAT) as held:
            assert time.monotonic() - began >= 4 * BEAT
            assert held.is_inherited


def test_a_lease_that_changes_is_left_to_its_holder_whatever_time_it_tells(place: Place) -> None:
    ended = threading.Event()

    def beat() -> None:
        number = 0
        while not ended.wait(BEAT):
            number -= 1000  # a clock that runs backwards
            put(place, beat=number, time=number)

    put(place)
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(LeaseHeld, match="on elsewhere"):
            Lease(place, beat_seconds=20 * BEAT, wait_seconds=0.5).__enter__()
    finally:
        ended.set()
        thread.join()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are told apart by what /proc says")
def test_the_lease_of_a_dead_process_of_this_machine_is_taken_over_at_once(place: Place) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = {"process": process.pid, **leases._this_process(process.pid)}
    put(place, **here)
    with pytest.raises(Stopped, match="the run was stopped before it began"):
        Lease(place, beat_seconds=60, is_stopped=lambda: True).__enter__()
    process.communicate()
    began = time.monotonic()
    with Lease(place, beat_seconds=60) as held:
        assert held.is_inherited
    assert time.monotonic() - began < 5
    # Another process has the number now.
    put(place, **{**leases._this_process(os.getpid()), "process": os.getpid(), "began": "1"})
    with Lease(place, beat_seconds=60) as held:
        assert held.is_inherited


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"holder": 3}', b'{"process": "x"}'])
def test_a_lease_that_says_nothing_is_taken_over_in_time(content: bytes, place: Place) -> None:
    place.write(LEASE, content)
    with Lease(place, beat_seconds=BEAT) as held:
        assert held.is_inherited


def test_a_run_whose_lease_was_taken_over_knows_and_leaves_that_of_the_other(place: Place) -> None:
    with Lease(place, beat_seconds=BEAT) as held:
        assert take_over(place, held)
    assert json.loads(place.read(LEASE) or b"{}")["holder"] == "another"


def test_of_many_that_find_the_lease_of_a_dead_run_one_takes_it_over(place: Place) -> None:
    put(place)
    outcomes: list[bool] = []
    begin = threading.Barrier(6)

    def take() -> None:
        begin.wait()
        try:
            with Lease(place, beat_seconds=0.2) as held:
                time.sleep(1)
                outcomes.append(not held.is_lost.is_set())
        except LeaseHeld:
            pass

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(True) == 1


def test_a_store_that_fails_for_a_moment_costs_neither_the_lease_nor_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "refs")
    with Lease(place, beat_seconds=BEAT) as held:

        def fail(name: str, *rest: bytes) -> None:
            raise OutputError(name, "could not be written")

        with monkeypatch.context() as patched:
            patched.setattr(place, "write", fail)
            patched.setattr(place, "read", fail)
            time.sleep(5 * BEAT)
        assert not held.is_lost.is_set()
        monkeypatch.setattr(place, "read", fail)


def test_a_run_that_has_lost_its_lease_stops_and_keeps_what_it_did(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "data", 300)
    out, seen, made = tmp_path / "refs", list[Row](), list[Lease]()

    def lease(place: Place, **given: Any) -> Lease:
        made.append(Lease(place, beat_seconds=BEAT, **given))
        return made[-1]

    monkeypatch.setattr(running, "Lease", lease)

    def note(row: Row) -> None:
        seen.append(row)
        if len(seen) == 3:
            assert take_over(Place(out), made[0])

    report = h5zarr.index(tmp_path / "data", out, executor=threads, on_row=note)
    assert report.ended == "another run took over"
    assert not report.is_good
    assert len(seen) < 300
    assert json.loads((out / LEASE).read_text())["holder"] == "another"
    assert list((out / "_h5zarr" / "parts").iterdir())  # written down, and not folded: that is up to the other run now
    (out / LEASE).unlink()
    again = h5zarr.index(tmp_path / "data", out, executor=threads)
    assert (again.unchanged_count, again.new_count) == (len(seen), 300 - len(seen))


def test_a_second_job_says_that_another_is_at_work_and_waits_if_it_is_told_to(tmp_path: Path) -> None:
    paths, out = fill(tmp_path / "data", 12), tmp_path / "refs"
    with Lease(Place(out), beat_seconds=0.5):
        second, third = (start(tmp_path / "data", out, "--workers", 1, "--wait", seconds) for seconds in (0, 60))
        code, said = finish(second)
        assert code == 0
        (line,) = said.splitlines()
        assert f"{out}: another run is working there (process " in line
        assert third.poll() is None
    assert finish(third)[0] == 0
    check_index(out, paths, tmp_path)


def test_a_run_that_ends_while_it_is_watched_is_not_called_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    place.create(LEASE, b'{"holder": "other"}')

    def end(self: Lease, found: bytes) -> bool:
        place.remove(LEASE)
        return False

    monkeypatch.setattr(Lease, "_is_still", end)
    with Lease(place) as lease:
        assert not lease.is_inherited


def test_two_jobs_that_are_started_at_once_do_all_of_it_once(tmp_path: Path) -> None:
    paths, out = fill(tmp_path / "data", 30), tmp_path / "refs"
    arguments = (tmp_path / "data", out, "--workers", 1, "--wait", 60, "--log-format", "json")
    with started(*arguments) as first, started(*arguments) as second:
        ends = [finish(process) for process in (first, second)]
    assert [code for code, _ in ends] == [0, 0]
    assert sorted(said.count('"event": "indexed"') for _, said in ends) == [0, 30]
    check_index(out, paths, tmp_path)


def test_two_runs_without_any_lease_leave_a_right_index(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Place, "create", lambda self, name, content: True)
    monkeypatch.setattr(leases, "_holder_of", lambda content: None)
    paths, out = fill(tmp_path / "data", 40), tmp_path / "refs"

    def run(number: int) -> h5zarr.IndexReport:
        return h5zarr.index(tmp_path / "data", out, executor=threads)

    with ThreadPoolExecutor(2) as pool:
        assert all(report.is_good for report in pool.map(run, range(2)))
    assert h5zarr.index(tmp_path / "data", out, executor=threads).is_good
    (out / LEASE).unlink(missing_ok=True)
    check_index(out, paths, tmp_path)


def test_a_directory_that_is_not_there_and_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "refs").write_text("a file")
    with pytest.raises(OutputError):
        Lease(Place(tmp_path / "refs")).__enter__()
