"""Every run has an id, and everything that it says has that id."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.lease import LEASE, Lease, describe_lease
from h5zarr.commands.index.run_id import check_run_id, make_run_id

pytestmark = pytest.mark.usefixtures("threads_for_command")


def test_ids_sort_by_time() -> None:
    moments = [datetime(2026, 11, 18, 9, 59, 59, 999_000, UTC) + timedelta(milliseconds=step) for step in range(3)]
    ids = [make_run_id(moment) for moment in moments]
    assert ids == sorted(ids)
    assert re.fullmatch(r"20261118T095959999Z-[0-9a-f]{8}", ids[0])
    elsewhere = moments[0].astimezone(timezone(timedelta(hours=9)))
    assert make_run_id(elsewhere)[:19] == ids[0][:19]
    assert make_run_id(moments[0]) != ids[0]


@pytest.mark.parametrize(
    "run_id",
    [
        make_run_id(),
        "scheduled__2026-01-01T00:00:00+00:00~x",
        "h5zarr-ocean-29384756-x7k2p",
        "4c7599ae-0a82-49aa-ba5a-4727fcce14a8",
    ],
    ids=["own", "Airflow", "Kubernetes", "AWS Batch"],
)
def test_ids_of_schedulers_are_taken(run_id: str) -> None:
    assert check_run_id(run_id) == run_id


@pytest.mark.parametrize("run_id", ["", " ", "two words", "a\nb", 'a"b', "-x", "ä", "x" * 201])
def test_ids_that_would_break_a_log_line_are_refused(
    run_id: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="but must have up to 200 letters"):
        h5zarr.index(tmp_path, tmp_path / "refs", run_id=run_id)
    assert main(["index", str(tmp_path), str(tmp_path / "refs"), f"--run-id={run_id}"]) == 2
    assert "argument --run-id: " in capfd.readouterr().err
    assert not (tmp_path / "refs").exists()


def test_every_line_of_text_starts_with_the_id(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data / "broken.nc").write_bytes(b"<html>")
    words = ["index", str(data), str(data.parent / "refs")]
    assert main([*words, "--run-id", "night-1", "--report", str(data)]) == 2
    assert main([*words, "--run-id", "night-1"]) == 1
    assert main(["index", str(data / "*.zip"), words[2], "--run-id", "night-1"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) > 6
    assert [line for line in lines if not line.startswith("[night-1] ")] == []


@pytest.mark.usefixtures("quick_lease")
def test_every_object_of_a_json_log_has_the_id(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data / "broken.nc").write_bytes(b"<html>")
    out = data.parent / "refs"
    words = ["--log-format", "json", "--run-id", "night-1"]
    assert main(["index", str(data), str(out), *words, "--metrics", str(data.parent / "no" / "dir" / "m.prom")]) == 1
    assert main(["index", str(data / "*.zip"), str(out), *words]) == 2
    with Lease(Place(out)):
        assert main(["index", str(data), str(out), *words]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert {line["run_id"] for line in lines} == {"night-1"}
    assert {"planned", "failed", "indexed", "ended", "warning"} == {line["event"] for line in lines}


def test_on_a_terminal_lines_have_no_id(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["index", str(data), str(data.parent / "refs"), "--run-id", "night-1"]) == 0
    said = capsys.readouterr().err
    assert "3 files indexed" in said
    assert "night-1" not in said


def test_report_and_metrics_have_the_id(data: Path) -> None:
    report, metrics = data.parent / "run.json", data.parent / "run.prom"
    words = ["index", str(data), str(data.parent / "refs"), "--report", str(report), "--metrics", str(metrics)]
    assert main([*words, "--job", "ocean", "--run-id", "night-1"]) == 0
    assert json.loads(report.read_text())["run_id"] == "night-1"
    assert 'h5zarr_index_run_info{index="ocean",run_id="night-1"} 1\n' in metrics.read_text()
    assert metrics.read_text().count("night-1") == 1  # other series must not change with every run
    assert main(words) == 0
    assert re.fullmatch(r"\d{8}T\d{9}Z-[0-9a-f]{8}", json.loads(report.read_text())["run_id"])


def test_python_gets_the_id_in_the_report_and_in_its_log(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "h5zarr"):
        report = h5zarr.index(data, data.parent / "refs", run_id="night-1", workers=1)
    assert report.run_id == "night-1"
    assert len(caplog.records) > 3
    for record in caplog.records:
        assert record.getMessage().startswith("[night-1] ")
        assert record.run_id == "night-1"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("quick_lease")
def test_an_active_run_is_named_by_its_id(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = Place(data.parent / "refs")
    with Lease(place, run_id="night-1"):
        assert "(run night-1, process " in describe_lease(place.read(LEASE))
        assert main(["index", str(data), place.url]) == 0
    assert "another run is working there (run night-1, process " in capfd.readouterr().err
