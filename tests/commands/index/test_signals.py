"""A job that is stopped, by a signal or by whatever: it ends soon, what was finished is recorded, nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from h5zarr.commands.catalog.catalog import CATALOG, Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index.lease import LEASE
from tests.commands.index.jobs import (
    check_index,
    children,
    environment,
    eventually,
    files_below,
    fill,
    finish,
    parent_of,
    rows_of,
    served,
    started,
)
from tests.servers import RangeServer

FEW = ("--workers", 2, "--at-once", 1, "--log-format", "json")


def indexed_one(process: subprocess.Popen[bytes]) -> None:
    """Wait until a job that logs as JSON has reported the first source."""
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == "indexed":
            return
    raise AssertionError("nothing was indexed")


@pytest.fixture
def slow_server(tmp_path: Path) -> Iterator[RangeServer]:
    """A slow server, and a list with 24 of its files."""
    with RangeServer(served(24), latency=0.2) as server:
        (tmp_path / "files.txt").write_text("".join(f"{server.url(name)}\n" for name in server.files))
        yield server


@pytest.mark.parametrize(
    ("number", "code", "is_for_all"),
    [
        (signal.SIGTERM, 143, False),
        (signal.SIGINT, 130, True),
        pytest.param(signal.SIGTERM, 143, True, marks=pytest.mark.slow),
    ],
    ids=["term", "interrupt for all", "term for all"],
)
def test_a_signal_ends_a_job_within_five_seconds_with_what_was_finished(
    number: signal.Signals, code: int, is_for_all: bool, slow_server: RangeServer, tmp_path: Path
) -> None:
    out = tmp_path / "refs"
    with started("--files-from", tmp_path / "files.txt", out, *FEW) as process:
        indexed_one(process)
        workers = children(process.pid)
        assert len(workers) >= 2
        began = time.monotonic()
        os.killpg(process.pid, number) if is_for_all else process.send_signal(number)
        ended, said = finish(process)
        assert time.monotonic() - began < 5
    events = [json.loads(line) for line in said.splitlines()]  # no tracebacks of workers among them
    assert (ended, events[-1]["how"], events[-1]["failed"]) == (code, "stopped", 0)
    assert eventually(lambda: all(parent_of(one) is None for one in workers))
    found = rows_of(out)
    assert 0 < len(found) == events[-1]["indexed"] < 24
    assert not any(name.endswith((".tmp", "lease.json")) for name in files_below(out))
    if not is_for_all:
        slow_server.latency = 0
        with started("--files-from", tmp_path / "files.txt", out, "--log-format", "json") as process:
            ended, said = finish(process)
        events = [json.loads(line) for line in said.splitlines()]
        assert (ended, events[0]["unchanged"], events[0]["new"]) == (0, len(found), 24 - len(found))
        check_index(out, map(slow_server.url, slow_server.files), tmp_path)


@pytest.mark.parametrize("pause", [pytest.param(0.0, marks=pytest.mark.slow), 0.2])
def test_a_signal_while_workers_are_started_is_left_to_their_parent(pause: float, tmp_path: Path) -> None:
    fill(tmp_path / "data", 40)
    with started(tmp_path / "data", tmp_path / "refs", "--workers", 2, "--log-format", "json") as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["event"] == "planned"
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGTERM)
        ended, said = finish(process)
    events = [json.loads(line) for line in said.splitlines()]
    assert (ended, events[-1]["how"], events[-1]["failed"]) == (143, "stopped", 0)


def test_a_job_that_waits_for_a_list_of_files_ends_at_a_signal(tmp_path: Path) -> None:
    names = [f"/{number}.nc" for number in range(2000)]
    with RangeServer(dict.fromkeys(names, b"no"), latency=30) as server:
        (tmp_path / "files.txt").write_text("".join(f"{server.url(name)}\n" for name in names))
        know(tmp_path / "refs", map(server.url, names))
        with started("--files-from", tmp_path / "files.txt", tmp_path / "refs") as process:
            assert eventually(lambda: server.counts.heads > 0)
            began = time.monotonic()
            process.terminate()
            ended, said = finish(process)
            assert time.monotonic() - began < 5
    assert (ended, "not finished: stopped" in said) == (143, True)
    assert files_below(tmp_path / "refs") == {CATALOG}


def know(out: Path, sources: Iterable[str]) -> None:
    """Make a catalog in which sources failed before: then they are asked whether they have changed."""
    catalog = Catalog(Place(out))
    for number, source in enumerate(sources):
        catalog.add(
            Row(
                source=source,
                found_by="",
                identity=None,
                output=f"{number}.json",
                settings="",
                status=Status.FAILED,
                time=datetime.now(UTC),
            )
        )
    catalog.fold()


def test_a_job_that_waits_for_another_one_ends_at_a_signal(tmp_path: Path) -> None:
    fill(tmp_path / "data", 1)
    state = tmp_path / "refs" / "_h5zarr"
    state.mkdir(parents=True)
    (state / "lease.json").write_text('{"holder": "x", "beat": 1, "host": "elsewhere"}')
    with started(tmp_path / "data", tmp_path / "refs", "--wait", 60) as process:
        time.sleep(1)
        assert process.poll() is None
        began = time.monotonic()
        process.terminate()
        assert finish(process)[0] == 143
        assert time.monotonic() - began < 5
    assert files_below(tmp_path / "refs") == {LEASE}  # of the other one


def test_workers_do_not_outlive_a_job_that_is_killed(slow_server: RangeServer, tmp_path: Path) -> None:
    with started("--files-from", tmp_path / "files.txt", tmp_path / "refs", *FEW) as process:
        indexed_one(process)
        workers = children(process.pid)
        assert len(workers) >= 2
        process.kill()
        assert eventually(lambda: all(parent_of(one) is None for one in workers))


def test_a_worker_that_is_killed_from_outside_costs_no_file(slow_server: RangeServer, tmp_path: Path) -> None:
    with started("--files-from", tmp_path / "files.txt", tmp_path / "refs", *FEW) as process:
        indexed_one(process)
        ours = [one for one in children(process.pid) if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
        assert len(ours) == 2
        slow_server.latency = 0
        os.kill(ours[0], signal.SIGKILL)
        assert finish(process)[0] == 0
    check_index(tmp_path / "refs", map(slow_server.url, slow_server.files), tmp_path)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_reported(tmp_path: Path) -> None:
    fill(tmp_path / "data", 3)
    data, out, script = str(tmp_path / "data"), str(tmp_path / "refs"), tmp_path / "script.py"
    script.write_text(f"import h5zarr\nh5zarr.index({data!r}, {out!r}, workers=1)\n")
    done = subprocess.run([sys.executable, script], env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert 'if __name__ == "__main__"' in " ".join(done.stderr.splitlines()[-2:])
