"""The command: what it takes, what it says and writes, and the exit codes by which others judge it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.catalog import CATALOG
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.lease import Lease
from h5zarr.commands.index.workers import ExecutorWorkers
from tests.commands.index.jobs import GOOD, SAMPLES, rows_of, unmarked

SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def parse_metrics(text: str) -> dict[str, float]:
    """Return the samples of a file in the text format of Prometheus, and fail where it is not in that format."""
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    told: set[str] = set()
    samples: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in told  # one for each, before the samples
            told.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped")
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in kinds
            key = match[1] + (f"{{{match[2]}}}" if match[2] else "")
            assert key not in samples
            samples[key] = float(match[3])
    assert told == set(kinds)
    return samples


def without_index(samples: dict[str, float]) -> dict[str, float]:
    """Return samples without their label `index`, which must be one and the same."""
    found = {re.search(r'index="((?:[^"\\]|\\.)*)"', name)[1] for name in samples}  # type: ignore[index]
    assert len(found) == 1
    return {re.sub(r'index="(?:[^"\\]|\\.)*",?', "", name).replace("{}", ""): samples[name] for name in samples}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with three files that can be translated, one of them further below."""
    names = ("ocean.nc", "links.h5", "later/ocean.nc")
    for name, sample in zip(names, GOOD, strict=True):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / sample, path)
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers that cost nothing to start."""
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", lambda count: ExecutorWorkers(pool, count))
        yield


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "refs"


def test_a_first_run_indexes_and_a_second_says_that_there_is_nothing_to_do(
    data: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(data), str(out)]) == 0
    first = capfd.readouterr()
    assert first.out == ""
    assert "3 new, 0 changed" in first.err
    assert "3 files indexed, 0 failed" in first.err
    assert main(["index", str(data), str(out)]) == 0
    assert "nothing to do: 3 sources unchanged" in capfd.readouterr().err


def test_a_broken_file_is_reported_with_its_remedy_and_exit_code_one(
    data: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (data / "broken.nc").write_bytes(b"<html>")
    assert main(["index", str(data), str(out), "--max-attempts", "1"]) == 1
    said = capfd.readouterr().err
    assert f"{data}/broken.nc: " in said
    assert "not an HDF5 or netCDF file" in said
    assert main(["index", str(data), str(out), "--max-attempts", "1"]) == 0
    said = capfd.readouterr().err
    assert "1 source given up: tried again after a change, or with --force\n" in said
    assert f"  {data}/broken.nc: not an HDF5 or netCDF file" in said


def test_too_many_failures_end_a_run(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        (data / f"broken{number}.nc").write_bytes(b"no")
    assert main(["index", str(data / "broken*.nc"), str(out), "--max-failures", "0"]) == 1
    assert "not finished: too many failures" in capfd.readouterr().err


def test_quiet_says_nothing_but_failures(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(data), str(out), "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")
    (data / "broken.nc").write_bytes(b"no")
    assert main(["index", str(data), str(out), "--quiet"]) == 1
    captured = capfd.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 2
    (data / "broken.nc").write_bytes(b"not")
    assert main(["index", str(data), str(out), "--quiet", "--log-format", "json"]) == 1
    assert [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()] == ["failed"]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(
    data: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(data), str(out), "--dry-run"]) == 0
    assert "nothing was written: --dry-run" in capfd.readouterr().err
    assert not out.exists()


def test_json_lines_report_every_event(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data / "brök\nen.nc").write_bytes(b"no")
    assert main(["index", str(data), str(out), "--log-format", "json"]) == 1
    events: list[dict[str, Any]] = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (events[0]["event"], events[0]["new"]) == ("planned", 4)
    assert sorted(event["event"] for event in events[1:-1]) == ["failed", "indexed", "indexed", "indexed"]
    failed = next(event for event in events if event["event"] == "failed")
    assert (failed["source"], failed["attempts"]) == (str(data / "brök\nen.nc"), 1)
    assert failed["reason"]
    assert failed["remedy"]
    assert (events[-1]["event"], events[-1]["how"], events[-1]["indexed"]) == ("ended", "finished", 3)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", event["time"]) for event in events)


def test_a_report_and_metrics_say_the_same(data: Path, out: Path, tmp_path: Path) -> None:
    (data / "broken.nc").write_bytes(b"no")
    report, metrics = tmp_path / "run.json", tmp_path / "run.prom"
    assert main(["index", str(data), str(out), "--report", str(report), "--metrics", str(metrics)]) == 1
    told, samples = json.loads(report.read_text()), without_index(parse_metrics(metrics.read_text()))
    states = {
        name.partition('"')[2].rstrip('"}'): value
        for name, value in samples.items()
        if name.startswith("h5zarr_index_sources")
    }
    assert states == told["states"] == {**dict.fromkeys(states, 0), "indexed": 3, "failed": 1}
    results = {
        name.partition('"')[2].rstrip('"}'): value
        for name, value in samples.items()
        if name.startswith("h5zarr_index_run_sources")
    }
    assert results == {name: told[name] for name in results}
    assert (results["indexed"], results["failed"], results["new_failures"], results["listed"]) == (3, 1, 1, 4)
    assert samples["h5zarr_index_success"] == 0
    assert samples["h5zarr_index_requests"] == told["requests"] > 0
    assert samples["h5zarr_index_read_bytes"] == told["bytes_read"] > 0
    assert samples["h5zarr_index_end_timestamp_seconds"] > 1.7e9
    assert [(one["source"], one["status"]) for one in told["failures"]] == [(str(data / "broken.nc"), "failed")]
    assert (told["problem_sources"], told["remaining"]) == ([], 0)
    assert {slow["source"] for slow in told["slowest"]} == {str(path) for path in data.rglob("*.*")}
    (data / "broken.nc").unlink()
    assert main(["index", str(data), str(out), "--metrics", str(metrics)]) == 0
    assert without_index(parse_metrics(metrics.read_text()))["h5zarr_index_success"] == 1


def test_a_report_names_the_files_with_problems(data: Path, out: Path, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "netcdf4_types.nc", data / "types.nc")
    report = tmp_path / "run.json"
    assert main(["index", str(data), str(out), "--report", str(report)]) == 0
    (named,) = json.loads(report.read_text())["problem_sources"]
    assert named["source"] == str(data / "types.nc")
    assert [problem["path"] for problem in named["problems"]] == ["/ragged"]


def test_metrics_of_two_indexes_on_one_machine_differ(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = 'the "ocean"\nof\\yesterday'
    for number, (out, job) in enumerate((("refs", []), ("refs/", ["--job", odd]), ("file:other", []))):
        assert main(["index", str(data), out, "--metrics", f"{number}.prom", *job]) == 0
    texts = [(tmp_path / f"{number}.prom").read_text() for number in range(3)]
    first, second, third = (parse_metrics(text) for text in texts)
    assert not set(first) & set(second)
    assert not (set(first) | set(second)) & set(third)
    assert f'h5zarr_index_success{{index="{tmp_path}/refs"}}' in first
    assert 'h5zarr_index_success{index="the \\"ocean\\"\\nof\\\\yesterday"}' in second
    assert without_index(first)["h5zarr_index_has_run"] == 1


@pytest.mark.parametrize(
    "words",
    [["{data}/*.zip", "{out}"], ["{data}", "nonsense://x"], ["{data}", "{out}", "--name", "all"]],
    ids=["no sources", "no output", "no names"],
)
def test_a_job_that_cannot_run_says_so_in_its_metrics(words: list[str], data: Path, out: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "run.prom"
    assert main(["index", str(data), str(out), "--metrics", str(metrics), "--job", "mine"]) == 0
    before = without_index(parse_metrics(metrics.read_text()))
    words = [word.format(data=data, out=out) for word in words]
    assert main(["index", *words, "--metrics", str(metrics), "--job", "mine"]) == 2
    after = without_index(parse_metrics(metrics.read_text()))
    assert (after["h5zarr_index_has_run"], after["h5zarr_index_success"]) == (0, 0)
    assert after["h5zarr_index_end_timestamp_seconds"] >= before["h5zarr_index_end_timestamp_seconds"]
    assert not [name for name in after if "_sources" in name]  # what was never listed is not counted as none
    assert not list(tmp_path.glob(".h5zarr-*"))


CANNOT_RUN = {
    "no sources": (["{data}/*.zip", "{out}"], "{data}/*.zip: no file was found"),
    "no directory": (["{data}/none", "{out}"], "{data}/none: there is no such file or directory"),
    "no list": (["--files-from", "{data}/none.txt", "{out}"], "{data}/none.txt: No such file or directory"),
    "no output": (["{data}", "nonsense://x"], "nonsense://x: "),
    "no names": (["{data}", "{out}", "--name", "all"], "--name: "),
    "no cluster": (["{data}", "{out}", "--dask", "tcp://host:port"], "{out}: no Dask scheduler answers at tcp://"),
}


def test_a_cluster_that_does_not_answer_leaves_dask_as_it_was(data: Path, out: Path) -> None:
    """Where a client fails that is to be the default, Dask asks for one ever after."""
    import dask

    before = dask.config.get("scheduler", None)
    assert main(["index", str(data), str(out), "--dask", "tcp://host:port"]) == 2
    assert dask.config.get("scheduler", None) == before


@pytest.mark.parametrize(("words", "why"), CANNOT_RUN.values(), ids=CANNOT_RUN)
def test_a_job_that_cannot_run_says_why_in_its_report(
    words: list[str], why: str, data: Path, out: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "run.json"
    assert main(["index", str(data), str(out), "--report", str(report)]) == 0
    before = json.loads(report.read_text())
    assert (before["exit_code"], before["message"], before["remedy"]) == (0, None, None)
    words = [word.format(data=data, out=out) for word in words]
    capfd.readouterr()
    assert main(["index", *words, "--report", str(report)]) == 2
    said = unmarked(capfd.readouterr().err).splitlines()
    after = json.loads(report.read_text())
    assert list(after) == list(before)  # a machine finds the same names in both
    assert (after["exit_code"], after["ended"]) == (2, "could not run")
    assert after["message"].startswith(why.format(data=data, out=out))
    assert [line.strip() for line in said] == [f"h5zarr: {after['message']}", *filter(None, [after["remedy"]])]
    assert main(["index", *words, "--log-format", "json"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["event"], told["how"]) == ("ended", "could not run")
    assert (told["message"], told["remedy"]) == (after["message"], after["remedy"])
    for name, value in before.items():
        if isinstance(value, list):
            assert after[name] == []
        elif isinstance(value, int) and name != "exit_code":
            assert after[name] is None, name  # a count that was never made is missing, not zero
    assert not list(tmp_path.glob(".h5zarr-*"))


def test_a_report_has_the_exit_code(data: Path, out: Path, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    (data / "broken.nc").write_bytes(b"no")
    assert main(["index", str(data), str(out), "--report", str(report)]) == 1
    told = json.loads(report.read_text())
    assert (told["exit_code"], told["ended"], told["message"]) == (1, "finished", None)


@pytest.mark.usefixtures("quick_lease")
def test_a_job_that_finds_another_run_active_is_a_success_and_says_so(
    data: Path, out: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report, metrics = tmp_path / "run.json", tmp_path / "run.prom"
    words = ["index", str(data), str(out), "--report", str(report), "--metrics", str(metrics)]
    assert main(words) == 0
    before = parse_metrics(metrics.read_text())
    assert {value for name, value in before.items() if "skipped" in name} == {0}
    for more in ([], ["--quiet"], ["--log-format", "json"]):
        capfd.readouterr()
        with Lease(Place(out)):
            assert main([*words, *more]) == 0
        said = unmarked(capfd.readouterr().err).splitlines()
        told = json.loads(report.read_text())
        assert (told["exit_code"], told["ended"], told["indexed"]) == (0, "another run is active", None)
        assert set(told["states"].values()) == {None}
        assert "another run is working there (process " in told["message"]
        assert "--wait SECONDS" in told["remedy"]
        after = parse_metrics(metrics.read_text())
        changed = {name for name in before if before[name] != after[name]}
        assert (set(after), {name.partition("{")[0] for name in changed}) == (set(before), {"h5zarr_index_skipped"})
        if not more:
            assert said == [f"h5zarr: {told['message']}"]
        elif more == ["--quiet"]:
            assert said == []
        else:
            assert [json.loads(line)["how"] for line in said] == ["another run is active"]
    assert main(words) == 0
    assert {value for name, value in parse_metrics(metrics.read_text()).items() if "skipped" in name} == {0}


@pytest.mark.usefixtures("quick_lease")
def test_a_first_job_that_finds_another_run_active_writes_only_that_into_the_metrics(
    data: Path, out: Path, tmp_path: Path
) -> None:
    metrics = tmp_path / "run.prom"
    with Lease(Place(out)):
        assert main(["index", str(data), str(out), "--metrics", str(metrics), "--job", "mine"]) == 0
    assert parse_metrics(metrics.read_text()) == {'h5zarr_index_skipped{index="mine"}': 1}


def test_a_job_that_lost_its_workers_does_not_claim_that_it_did_nothing(
    data: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, closed = tmp_path / "run.json", ThreadPoolExecutor(1)
    closed.shutdown()
    monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", lambda count: ExecutorWorkers(closed, count))
    assert main(["index", str(data), str(out), "--report", str(report)]) == 2
    told = json.loads(report.read_text())
    assert (told["exit_code"], told["indexed"], told["failures"]) == (2, None, [])
    assert "executor" in told["message"]


def test_a_name_that_is_not_utf8_appears_in_the_report(out: Path, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    assert main(["index", os.fsdecode(b"/none/\xff.nc"), str(out), "--report", str(report)]) == 2
    message = json.loads(report.read_text())["message"]
    assert message.encode()  # which a lone surrogate is not
    assert "/none/\\udcff.nc" in message


@pytest.mark.parametrize(
    "words",
    [
        ["{data}", "nonsense://user:hunter2@place/refs?token=hunter2"],
        ["nonsense://user:hunter2@place/*.nc", "{out}"],
        ["https://user:hunter2@localhost:1/a.nc?X-Amz-Signature=hunter2", "{out}"],
        ["--files-from", "https://user:hunter2@place/list.txt?sig=hunter2", "{out}"],
        ["{data}", "{out}", "--dask", "tcp://user:hunter2@host:port"],
        ["{data}/*.zip", "{out}", "--storage-options", "password=hunter2", "--output-options", "key=hunter2"],
    ],
)
def test_secrets_are_in_no_report_of_a_job_that_cannot_run(
    words: list[str], data: Path, out: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "run.json"
    words = [word.format(data=data, out=out) for word in words]
    assert main(["index", *words, "--network", "attempts=1", "--report", str(report)]) == 2
    assert json.loads(report.read_text())["exit_code"] == 2
    assert "hunter2" not in report.read_text()
    assert "hunter2" not in "".join(capfd.readouterr())


def test_a_command_that_lacks_a_place_writes_no_report(data: Path, tmp_path: Path) -> None:
    before = (data / "ocean.nc").read_bytes()
    assert main(["index", "--report", str(data / "ocean.nc"), str(tmp_path / "refs")]) == 2  # the FILE was forgotten
    assert (data / "ocean.nc").read_bytes() == before


def test_secrets_of_the_output_are_in_no_label(data: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "run.prom"
    out = "memory://user:hunter2@place/refs?token=hunter2"
    main(["index", str(data), out, "--metrics", str(metrics)])
    assert "hunter2" not in metrics.read_text()


def test_a_report_goes_to_standard_output(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(data), str(out), "--report", "-", "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out)["indexed"] == 3


def test_a_report_that_cannot_be_written_is_an_error(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(data), str(out), "--report", str(out / "no" / "such" / "run.json")]) == 0
    assert "its directory does not exist" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{path}", {"ocean.nc.json", "links.h5.json", "later/ocean.nc.json"}),
        ("{directory}/{stem}", {"ocean.json", "links.json", "later/ocean.json"}),
        ("v1/{name}", {"v1/links.h5.json", "v1/ocean.nc.json"}),
    ],
)
def test_outputs_are_named_by_a_template(template: str, expected: set[str], data: Path, out: Path) -> None:
    assert main(["index", str(data), str(out), "--name", template]) == 0
    outputs = {row.output for row in rows_of(out).values()}
    assert len(outputs) == 3
    assert expected <= outputs
    assert all((out / name).exists() for name in outputs)


def test_a_list_comes_from_a_file_or_from_standard_input(
    data: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"# mine\n{data}/ocean.nc\n\n{data}/links.h5\n"
    (tmp_path / "files.txt").write_text(text)
    assert main(["index", "--files-from", str(tmp_path / "files.txt"), str(out)]) == 0
    assert set(rows_of(out)) == {f"{data}/ocean.nc", f"{data}/links.h5"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{data}/later/ocean.nc\n"))
    assert main(["index", str(out), "--files-from", "-"]) == 0
    assert len(rows_of(out)) == 3
    monkeypatch.setattr(sys, "stdin", io.StringIO("# nothing\n"))
    capfd.readouterr()
    assert main(["index", str(out), "--files-from", "-", "--prune"]) == 2
    assert "no file was found" in capfd.readouterr().err
    assert len(rows_of(out)) == 3


def test_status_says_what_the_catalog_does(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(out)]) == 2
    assert "no index found" in capfd.readouterr().err
    main(["index", str(data), str(out), "--quiet"])
    assert main(["status", str(out)]) == 0
    assert "3 indexed, 0 indexed with problems, 0 failed" in capfd.readouterr().out
    (data / "broken.nc").write_bytes(b"<html>")
    (data / "links.h5").unlink()
    main(["index", str(data), str(out), "--quiet"])
    capfd.readouterr()
    assert main(["status", str(out)]) == 1
    said = capfd.readouterr().out
    assert "2 indexed, 0 indexed with problems, 1 failed, 0 stale, 1 vanished" in said
    assert "not an HDF5 or netCDF file" in said
    assert main(["status", str(out), "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert told["counts"] == {"indexed": 2, "indexed_with_problems": 0, "failed": 1, "stale": 0, "vanished": 1}
    assert told["failed"][0]["source"] == str(data / "broken.nc")
    (out / CATALOG).write_bytes(b"no")
    assert main(["status", str(out)]) == 2
    assert "--rebuild-catalog" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["{data}"],
        ["{data}", "{data}/links.h5"],
        ["{data}/links.h5", "{data}/ocean.nc"],
        ["{data}/links.h5", "{data}/later", "{out}.nc"],
        ["{data}/links.h5", "{data}/none*.nc", "{out}"],
        ["--files-from", "{data}/none.txt", "{out}"],
        ["--files-from", "{data}/none.txt", "{data}", "{out}"],
        ["{data}", "{out}", "--workers", "0"],
        ["{data}", "{out}", "--workers", "-1"],
        ["{data}", "{out}", "--workers", "two"],
        ["{data}", "{out}", "--at-once", "0"],
        ["{data}", "{out}", "--max-attempts", "0"],
        ["{data}", "{out}", "--max-failures", "-1"],
        ["{data}", "{out}", "--wait", "-1"],
        ["{data}", "{out}", "--wait", "nan"],
        ["{data}", "{out}", "--fail-on", "old"],
        ["{data}", "{out}", "--format", "csv"],
        ["{data}", "{out}", "--name", "{{source}}"],
        ["{data}", "{out}", "--name", "all"],
        ["{data}", "{out}", "--log-format", "xml"],
        ["{data}", "{out}", "--storage-options", "hunter2"],
        ["{data}", "{out}", "--nonsense"],
        ["{data}/*.zip", "{out}"],
        ["{data}/none", "{out}"],
        ["nonsense://x/*.nc", "{out}"],
        ["{data}", "nonsense://x"],
        ["{data}", "{data}/ocean.nc"],
        [],
    ],
)
def test_a_job_that_cannot_run_has_the_exit_code_two(
    words: list[str], data: Path, out: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", *(word.format(data=data, out=out) for word in words)]) == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err
    assert "Traceback" not in said.err
    assert "hunter2" not in said.err
    assert not [path for path in out.rglob("*") if path.is_file()]
    assert (data / "ocean.nc").is_file()


def test_help_tells_of_exit_codes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--help"]) == 0
    assert "143  stopped by SIGTERM" in capfd.readouterr().out


def test_a_remedy_for_several_files_is_told_once(data: Path, out: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("x.nc", "y.nc"):
        (data / name).write_bytes(b"<html>")
    assert main(["index", str(data), str(out)]) == 1
    said = capfd.readouterr().err
    assert said.count("this is an HTML page") == 2
    assert said.count("This is probably a login or error page") == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_run_whose_messages_nobody_reads_finishes_with_its_exit_code(data: Path, out: Path, form: str) -> None:
    (data / "broken.nc").write_bytes(b"no")
    reader, writer = os.pipe()
    os.close(reader)
    words = ["index", str(data), str(out), "--workers", "1", "--log-format", form]
    ended = subprocess.run([sys.executable, "-m", "h5zarr", *words], stderr=writer, stdout=writer, check=False)
    os.close(writer)
    assert ended.returncode == 1
    assert h5zarr.status(out).counts["failed"] == 1
    assert h5zarr.status(out).counts["indexed"] == len(list(data.iterdir())) - 1
