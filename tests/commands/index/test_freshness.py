"""How fresh an index is: the newest source, and the last successful run."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.index_report import IndexReport
from h5zarr.commands.index.run_record import RUN, read_record
from h5zarr.errors import OutputError
from tests.commands.index.jobs import unmarked
from tests.test_cli_index import parse_metrics, without_index

OLD, NEW = datetime(2020, 1, 1, 12, tzinfo=UTC), datetime(2021, 6, 1, 0, 0, 0, 500_000, tzinfo=UTC)
LAST, NEWEST = "h5zarr_index_last_success_timestamp_seconds", "h5zarr_index_newest_source_timestamp_seconds"
AGE = "h5zarr_index_newest_source_age_seconds"


@pytest.fixture
def dated(data: Path) -> Path:
    """The directory, in which one file is newer than the others."""
    for path in data.rglob("*.*"):
        os.utime(path, (OLD.timestamp(), OLD.timestamp()))
    os.utime(data / "later" / "ocean.nc", (NEW.timestamp(), NEW.timestamp()))
    return data


def measure(*words: object) -> tuple[int, dict[str, float]]:
    """Run the command, and return its exit code and its metrics without the label."""
    metrics = Path(str(words[1])).parent / "run.prom"
    code = main(["index", *map(str, words), "--metrics", str(metrics), "--job", "ocean"])
    return code, without_index(parse_metrics(metrics.read_text()))


def test_the_newest_source_is_the_newest_of_those_indexed(dated: Path, threads: ThreadPoolExecutor) -> None:
    out = dated.parent / "refs"
    (dated / "broken.nc").write_bytes(b"<html>")  # written just now, and not indexed
    first = h5zarr.index(dated, out, executor=threads)
    assert (first.newest_source, first.failed_count) == (NEW, 1)
    again = h5zarr.index(dated, out, executor=threads)
    assert (again.newest_source, again.unchanged_count) == (NEW, 3)
    (dated / "later" / "ocean.nc").unlink()
    assert h5zarr.index(dated, out, executor=threads).newest_source == OLD


def test_a_source_that_refers_to_others_counts(dated: Path, threads: ThreadPoolExecutor) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(dated / "links.h5", "w") as file:
        file["x"] = 1
        file["other"] = h5py.ExternalLink("ocean.nc", "/sst")
    os.utime(dated / "links.h5", (NEW.timestamp() + 60, NEW.timestamp() + 60))
    out = dated.parent / "refs"
    first, second = (h5zarr.index(dated, out, executor=threads) for _ in range(2))
    assert second.unchanged_count == 3
    assert first.newest_source == second.newest_source
    assert first.newest_source is not None
    assert first.newest_source.timestamp() == NEW.timestamp() + 60


def test_times_that_nobody_states_are_absent_from_the_metrics() -> None:
    text = IndexReport().end("finished").to_metrics()
    assert not [name for name in (LAST, NEWEST, AGE) if name in text]


def test_a_source_from_the_future_has_the_age_zero() -> None:
    report = IndexReport(newest_source=datetime(2999, 1, 1, tzinfo=UTC)).end("finished")
    assert f"\n{AGE} 0.0\n" in report.to_metrics()


@pytest.mark.usefixtures("threads_for_command")
def test_a_failed_run_keeps_the_time_of_the_last_success(dated: Path) -> None:
    out = dated.parent / "refs"
    code, first = measure(dated, out, "--run-id", "night-1")
    assert (code, first[NEWEST]) == (0, NEW.timestamp())
    assert first[LAST] == pytest.approx(first["h5zarr_index_end_timestamp_seconds"], abs=0.01)
    assert first[AGE] == pytest.approx(first["h5zarr_index_end_timestamp_seconds"] - NEW.timestamp(), abs=0.01)
    (dated / "broken.nc").write_bytes(b"<html>")
    code, second = measure(dated, out, "--run-id", "night-2")
    assert (code, second[LAST]) == (1, first[LAST])
    code, third = measure(dated / "*.zip", out, "--run-id", "night-3")
    assert (code, third[LAST], third[NEWEST]) == (2, first[LAST], NEW.timestamp())
    assert AGE not in third  # nobody knows it now
    code, fourth = measure(dated, out, "--run-id", "night-4")  # the broken file is no news
    assert code == 0
    assert fourth[LAST] > first[LAST]


@pytest.mark.usefixtures("threads_for_command")
def test_the_last_success_needs_no_disk_but_the_index(dated: Path, tmp_path: Path) -> None:
    out, report = dated.parent / "refs", tmp_path / "run.json"
    assert main(["index", str(dated), str(out), "--run-id", "night-1"]) == 0
    (dated / "broken.nc").write_bytes(b"<html>")
    assert main(["index", str(dated), str(out), "--run-id", "night-2", "--report", str(report)]) == 1
    record = read_record(Place(out))
    assert record is not None
    assert (record.run_id, record.ended, record.last_success_run_id) == ("night-2", "finished", "night-1")
    told = json.loads(report.read_text())
    assert record.last_success is not None
    assert told["last_success"] == record.last_success.isoformat()
    assert told["newest_source"] == NEW.isoformat()


@pytest.mark.usefixtures("threads_for_command")
def test_status_names_the_last_run_and_the_last_success(dated: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = dated.parent / "refs"
    assert main(["index", str(dated), str(out), "--run-id", "night-1", "--quiet"]) == 0
    assert main(["status", str(out)]) == 0
    said = capfd.readouterr().out
    assert " UTC: finished (night-1)\n" in said
    assert "last successful run" not in said
    (dated / "broken.nc").write_bytes(b"<html>")
    assert main(["index", str(dated), str(out), "--run-id", "night-2", "--quiet"]) == 1
    assert main(["status", str(out)]) == 1
    said = capfd.readouterr().out
    assert " UTC: finished (night-2)\nlast successful run " in said
    assert " UTC (night-1)\n" in said
    assert main(["status", str(out), "--json"]) == 1
    last = json.loads(capfd.readouterr().out)["last_run"]
    assert (last["run_id"], last["last_success_run_id"]) == ("night-2", "night-1")


def test_a_dry_run_records_nothing(dated: Path, threads: ThreadPoolExecutor) -> None:
    report = h5zarr.index(dated, dated.parent / "refs", executor=threads, dry_run=True)
    assert report.last_success is None
    assert not (dated.parent / "refs").exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"run_id": 1, "ended": "x", "time": 5}', b"\xff"])
def test_a_damaged_record_counts_as_none(content: bytes, dated: Path, threads: ThreadPoolExecutor) -> None:
    out = dated.parent / "refs"
    h5zarr.index(dated, out, executor=threads)
    (out / RUN).write_bytes(content)
    assert read_record(Place(out)) is None
    assert h5zarr.status(out).last_run is None
    assert h5zarr.index(dated, out, executor=threads).last_success is not None


def test_a_record_that_cannot_be_written_does_not_fail_the_run(
    dated: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = Place.write

    def refuse(self: Place, name: str, content: bytes) -> Any:
        if name == RUN:
            raise OutputError(name, "the disk is full")
        return write(self, name, content)

    monkeypatch.setattr(Place, "write", refuse)
    report = h5zarr.index(dated, dated.parent / "refs", executor=threads)
    assert (report.ended, report.indexed_count) == ("finished", 3)
    (warning,) = [unmarked(record.getMessage()) for record in caplog.records]
    assert "how the run ended could not be recorded" in warning
