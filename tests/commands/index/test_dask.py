"""A cluster of Dask does the work; what a worker that is lost was at is done again by the others."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.catalog.rows import Row
from h5zarr.processes import WorkersLost
from tests.commands.index.jobs import check_index, eventually, fill, finish, served, started
from tests.commands.update.living import whole, write_granule
from tests.servers import RangeServer

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two processes, and a scheduler in this one."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


def test_a_cluster_of_processes_indexes_by_its_address(cluster: Any, tmp_path: Path) -> None:
    paths, out = fill(tmp_path / "data", 12), tmp_path / "refs"
    with started(tmp_path / "data", out, "--dask", cluster.scheduler_address) as process:
        code, said = finish(process)
    assert code == 0, said
    assert "12 files indexed, 0 failed" in said
    check_index(out, paths, tmp_path)


@pytest.mark.slow
def test_files_of_a_worker_that_is_killed_are_done_by_others(cluster: Any, tmp_path: Path) -> None:
    with RangeServer(served(60), latency=0.05) as server, distributed.Client(cluster, set_as_default=False) as client:
        urls = [server.url(name) for name in server.files]
        seen: list[Row] = []
        victims = list(client.run(os.getpid).values())

        def note(row: Row) -> None:
            seen.append(row)
            if len(seen) == 5:
                os.kill(victims[0], signal.SIGKILL)

        report = h5zarr.index(urls, tmp_path / "refs", executor=client, at_once=2, on_row=note)
        assert report.is_good
        assert report.indexed_count == 60
        server.latency = 0
        check_index(tmp_path / "refs", urls, tmp_path)
        assert eventually(lambda: len(client.scheduler_info()["workers"]) == 2, 30)  # the cluster starts another


@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_cluster_makes_the_cube_of_an_index(cluster: Any, tmp_path: Path, *, is_killed: bool) -> None:
    """Its workers leave shards, also for the files of a worker that is killed."""
    (tmp_path / "data").mkdir()
    count = 400 if is_killed else 60
    paths = [tmp_path / "data" / f"h{hour:03}.nc" for hour in range(count)]
    for hour, path in enumerate(paths):
        write_granule(path, [hour], hour)
    with distributed.Client(cluster, set_as_default=False) as client:
        victims = list(client.run(os.getpid).values())
        done: list[Row] = []

        def note(row: Row) -> None:
            done.append(row)
            if is_killed and len(done) == 20:
                os.kill(victims[0], signal.SIGKILL)

        out = str(tmp_path / "cube.parquet")
        how: dict[str, Any] = {"executor": client, "on_row": note, "cubes": [f"{out},along=time"]}
        report = h5zarr.index(str(tmp_path / "data" / "*.nc"), tmp_path / "refs", **how)
        assert (report.is_good, report.indexed_count) == (True, count)
    with xr.open_dataset(out, engine="h5zarr") as opened:
        xr.testing.assert_identical(opened.load(), whole(paths))
    assert not (tmp_path / "refs" / "_h5zarr" / "shards").exists()


@pytest.mark.slow
def test_a_cluster_that_begins_anew_does_all_of_it(cluster: Any, tmp_path: Path) -> None:
    with RangeServer(served(60), latency=0.05) as server, distributed.Client(cluster, set_as_default=False) as client:
        urls = [server.url(name) for name in server.files]
        seen: list[Row] = []

        def note(row: Row) -> None:
            seen.append(row)
            if len(seen) == 5:
                client.restart()

        report = h5zarr.index(urls, tmp_path / "refs", executor=client, at_once=2, on_row=note)
        assert (report.is_good, report.indexed_count) == (True, 60)


@pytest.mark.slow
def test_a_cluster_that_is_gone_is_an_error_and_what_was_finished_is_kept(tmp_path: Path) -> None:
    made = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with RangeServer(served(60), latency=0.05) as server, distributed.Client(made, set_as_default=False) as client:
        urls = [server.url(name) for name in server.files]
        seen: list[Row] = []

        def note(row: Row) -> None:
            seen.append(row)
            if len(seen) == 5:
                made.close()

        with pytest.raises(WorkersLost, match="cluster"):
            h5zarr.index(
                urls,
                tmp_path / "refs",
                executor=client,
                at_once=2,
                on_row=note,
                found_by="urls",
            )
        server.latency = 0
        again = h5zarr.index(urls, tmp_path / "refs", workers=1, found_by="urls")
        assert again.is_good
        assert 5 <= again.unchanged_count < 60


@pytest.mark.slow
def test_an_address_without_a_server_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path / "data", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with started(tmp_path / "data", tmp_path / "refs", "--dask", address) as process:
        code, said = finish(process)
    assert code == 2
    assert f"no Dask scheduler answers at {address}" in said
    assert "Traceback" not in said


def test_an_undefined_address_is_an_error(tmp_path: Path) -> None:
    fill(tmp_path / "data", 1)
    with started(tmp_path / "data", tmp_path / "refs", "--dask", "tcp://host:port") as process:
        code, said = finish(process)
    assert (code, "Traceback" in said) == (2, False), said
    assert "no Dask scheduler answers" in said
