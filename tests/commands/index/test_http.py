"""A job over files of a web server that fails, breaks off, and changes its files while they are read."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from aiohttp import web

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.rows import Status
from h5zarr.commands.index import dispatch
from h5zarr.io import fetch
from tests.commands.index.jobs import rows_of, served
from tests.io.policies import EXACT
from tests.servers import Faults, RangeServer

# Many small requests, so that many can fail.
SMALL = {**asdict(EXACT), "block_nbytes": 512, "first_read_nbytes": 512, "timeout_seconds": 2}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setitem(dispatch.Dispatcher.__init__.__kwdefaults__, "backoff_seconds", (0.05, 0.05))


def make(path: Path, names: str) -> bytes:
    """Return a file with a few arrays."""
    with h5py.File(path, "w") as file:
        for name in names:
            file.create_dataset(f"{name}/v", data=np.arange(4000), chunks=(500,)).attrs["units"] = "m"
    return path.read_bytes()


def one_in_ten(seed: int) -> Faults:
    chance = random.Random(seed)
    kinds: dict[str, list[int]] = {"status": [], "short": [], "cut": [], "shifted": []}
    for number in range(1, 20_000):
        if chance.random() < 0.1:
            kinds[chance.choice(list(kinds))].append(number)
    return Faults(
        statuses={number: chance.choice([429, 500, 502, 503, 504]) for number in kinds["status"]},
        short=frozenset(kinds["short"]),
        cut=frozenset(kinds["cut"]),
        shifted=frozenset(kinds["shifted"]),
    )


def test_among_faults_all_but_the_broken_files_are_indexed(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    files = served(20)
    broken = {"/d/007.nc": b"<html>"}
    out = tmp_path / "refs"
    with RangeServer({**files, **broken}, faults=one_in_ten(1)) as server:
        urls = [server.url(name) for name in files]
        report = h5zarr.index(urls, out, executor=threads, network=SMALL)
        assert {row.source for row in report.failed} == {server.url(name) for name in broken}
        assert len(server.counts.gets) > 50
        server.faults = Faults()
        for source, row in rows_of(out).items():
            if row.status is Status.INDEXED:
                h5zarr.translate(source, tmp_path / "expected.json")
                assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes()
        server.files |= files
        again = h5zarr.index(urls, out, executor=threads)
        assert (again.is_good, again.indexed_count, again.unchanged_count) == (True, 1, 19)


def test_a_server_that_is_down_fails_all_files_and_the_next_run_gets_them(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    patience = {**SMALL, "attempts": 1}
    with RangeServer(served(6), faults=Faults(every=503)) as server:
        urls = [server.url(name) for name in server.files]
        first = h5zarr.index(urls, tmp_path / "refs", executor=threads, network=patience)
        assert (first.failed_count, first.indexed_count, first.is_good) == (6, 0, False)
        server.faults = Faults()
        second = h5zarr.index(urls, tmp_path / "refs", executor=threads, network=patience)
        assert (second.indexed_count, second.is_good) == (6, True)


def test_a_server_that_hangs_does_not_hold_up_the_next_run(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with RangeServer(served(2), latency=30) as server:
        urls, out = [server.url(name) for name in server.files], tmp_path / "refs"
        for attempt in (1, 2):  # the second run also asks whether the files have changed
            began = time.monotonic()
            report = h5zarr.index(urls, out, executor=threads, network={"timeout_seconds": 0.2}, found_by="a list")
            assert [row.attempts for row in report.failed] == [attempt, attempt]
            assert all("no answer within 0.2 seconds" in row.reason for row in report.failed)
            assert time.monotonic() - began < 15
            # A file costs a run three attempts at its start, one at its size, and one at its state if it is known.
            assert len(server.counts.headers) <= 5 * len(urls) * attempt


def test_an_object_that_is_replaced_between_listing_and_reading_is_recorded_as_it_was_read(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    old, new, out = make(tmp_path / "old.h5", "ab"), make(tmp_path / "new.h5", "cde"), tmp_path / "refs"
    with RangeServer({"/a.h5": old}) as server:

        def swap(plan: Any) -> None:
            server.files, server.etag = {"/a.h5": new}, '"new"'

        url = server.url("/a.h5")
        h5zarr.index([url], out, executor=threads, on_plan=swap)
        row = rows_of(out)[url]
        assert row.identity is not None
        assert (row.identity.nbytes, row.identity.etag) == (len(new), '"new"')
        h5zarr.translate(url, tmp_path / "expected.json")
        assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes()
        assert h5zarr.index([url], out, executor=threads).unchanged_count == 1


class ChangingServer(RangeServer):
    """Replaces its files when it was asked so many times."""

    def __init__(self, files: dict[str, bytes], later: dict[str, bytes], after: int) -> None:
        super().__init__(files)
        self._later, self._after = later, after

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if len(self.counts.gets) == self._after:
            self.files, self.etag = self._later, '"new"'
        return await super()._answer(request)


@pytest.mark.parametrize("after", range(0, 10, 2))
def test_an_object_that_is_replaced_while_it_is_read_is_never_a_mixture(
    after: int, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    old, new, out = make(tmp_path / "old.h5", "ab"), make(tmp_path / "new.h5", "ba"), tmp_path / "refs"
    assert len(old) == len(new)
    assert old != new
    with ChangingServer({"/a.h5": old}, {"/a.h5": new}, after) as server:
        url = server.url("/a.h5")
        report = h5zarr.index([url], out, executor=threads, network=SMALL)
        assert len(server.counts.gets) >= 10
        assert report.is_good  # it was read again
        row = rows_of(out)[url]
        assert row.identity is not None
        assert row.identity.etag == '"new"'
        h5zarr.translate(url, tmp_path / "expected.json")
        assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes()
        assert h5zarr.index([url], out, executor=threads).unchanged_count == 1


def test_no_output_contains_the_secrets_in_the_urls_of_a_list(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], threads_for_command: None
) -> None:
    out, report = tmp_path / "refs", tmp_path / "run.json"
    with RangeServer({**served(2), "/d/broken.nc": b"<html>"}) as server:
        host = f"127.0.0.1:{server.port}"
        signed = [f"http://{host}{name}?X-Amz-Signature=hunter2" for name in server.files]
        lines = [*signed, f"http://me:hunter2@{host}/d/none.nc"]
        (tmp_path / "files.txt").write_text("\n".join(lines))
        words = ["index", "--files-from", str(tmp_path / "files.txt"), str(out), "--workers", "1"]
        assert main([*words, "--report", str(report), "--metrics", str(tmp_path / "run.prom")]) == 1
        assert main([*words, "--log-format", "json", "--max-attempts", "1", "--fail-on", "any"]) == 1
        assert main(["status", str(out)]) == 1
        assert main(["status", str(out), "--json"]) == 1
    captured = capfd.readouterr()
    told = json.loads(report.read_text())
    assert (told["indexed"], told["failed"]) == (2, 2)
    written = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    for text in (*written, captured.out.encode(), captured.err.encode(), report.read_bytes()):
        assert b"hunter2" not in text
    assert not any("hunter2" in str(path) for path in out.rglob("*"))
