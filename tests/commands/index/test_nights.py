"""A nightly job whose files fail, recover, are given up, are truncated, are partly readable, and vanish."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import pyarrow.parquet as pq
import pytest

from h5zarr.cli import main
from h5zarr.commands.catalog.catalog import CATALOG
from tests.commands.index.jobs import SAMPLES, unmarked
from tests.test_cli_index import parse_metrics

pytestmark = pytest.mark.usefixtures("threads_for_command")
STATES = ("indexed", "indexed_with_problems", "failed", "stale", "vanished")
OCEAN = (SAMPLES / "ocean.nc").read_bytes()


@dataclass(frozen=True)
class Night:
    """What a run left behind: its exit code and messages, and what status, metrics, report and catalog say."""

    code: int
    said: str
    status_code: int
    status: str
    states: Mapping[str, int]
    results: Mapping[str, int]
    is_good: bool
    catalog: Mapping[str, str]
    attempts: Mapping[str, int]


@dataclass(frozen=True)
class Job:
    """A job on a directory. Every night looks at all that it tells, and checks that all of it agrees."""

    data: Path
    out: Path
    capfd: pytest.CaptureFixture[str]
    options: tuple[str, ...] = field(default=("--quiet", "--max-attempts", "3"))

    def path(self, name: str) -> Path:
        return self.data / name

    def run(self, *more: str) -> Night:
        metrics, report = self.out.parent / "job.prom", self.out.parent / "run.json"
        words = [str(self.data), str(self.out), *self.options, "--metrics", str(metrics), "--report", str(report)]
        self.capfd.readouterr()
        code = main(["index", *words, *more])
        said = unmarked(self.capfd.readouterr().err)
        status_code = main(["status", str(self.out), "--all"])
        shown = self.capfd.readouterr().out
        samples = parse_metrics(metrics.read_text())
        told = json.loads(report.read_text())
        rows = pq.read_table(self.out / CATALOG).to_pylist()
        catalog = {Path(row["source"]).name: row["status"] for row in rows}
        states = _labelled(samples, "h5zarr_index_sources", "state")
        assert (told["exit_code"], told["states"]) == (code, states)
        assert states == {one: list(catalog.values()).count(one.replace("_", " ")) for one in STATES}
        counts = ", ".join(f"{states[one]} {one.replace('_', ' ')}" for one in STATES)
        assert shown.splitlines()[0] == counts
        return Night(
            code=code,
            said=said,
            status_code=status_code,
            status=shown,
            states={state: count for state, count in states.items() if count},
            results=_labelled(samples, "h5zarr_index_run_sources", "result"),
            is_good=next(value for name, value in samples.items() if "_success" in name) == 1,
            catalog=catalog,
            attempts={Path(row["source"]).name: row["attempts"] for row in rows if row["attempts"]},
        )


def _labelled(samples: Mapping[str, float], name: str, label: str) -> dict[str, int]:
    found = {key: int(value) for key, value in samples.items() if key.startswith(f"{name}{{")}
    return {key.partition(f'{label}="')[2].partition('"')[0]: value for key, value in found.items()}


@pytest.fixture
def job(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Job:
    """The first night: two files cannot be read, one only in part, and one has nothing in it."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("good.nc", "cut.nc", "leaving.nc"):
        shutil.copy(SAMPLES / "ocean.nc", data / name)
    shutil.copy(SAMPLES / "netcdf4_types.nc", data / "partly.nc")
    (data / "broken.nc").write_bytes(b"<html>")
    (data / "late.nc").write_bytes(OCEAN[: len(OCEAN) // 2])
    with h5py.File(data / "empty.h5", "w") as file:
        file.attrs["title"] = "nothing yet"
    return Job(data, tmp_path / "refs", capfd)


def test_five_nights(job: Job) -> None:
    first = job.run()
    assert first.code == 1
    assert first.states == {"indexed": 4, "indexed_with_problems": 1, "failed": 2}
    assert (first.catalog["late.nc"], first.catalog["partly.nc"]) == ("failed", "indexed with problems")
    assert (first.results["new_failures"], first.is_good) == (2, False)
    assert [line.partition(": ")[0] for line in sorted(first.said.splitlines()) if line.startswith("/")] == [
        str(job.path("broken.nc")),
        str(job.path("late.nc")),
    ]
    assert first.status_code == 1
    assert "failed: the file is truncated: it should have " in first.status
    assert "indexed with problems: /ragged: Zarr has no type" in first.status
    assert f"  {job.path('partly.nc')}\n" in first.status
    assert "1 file without arrays" in first.status
    assert not list(job.out.rglob("late.nc*"))

    job.path("late.nc").write_bytes(OCEAN)  # the upload has finished
    second = job.run()
    assert (second.code, second.said) == (0, "")  # the retry of broken.nc is not news
    assert second.states == {"indexed": 5, "indexed_with_problems": 1, "failed": 1}
    assert second.attempts == {"broken.nc": 2}
    assert (second.results["indexed"], second.results["failed"], second.results["new_failures"]) == (1, 1, 0)
    assert second.status_code == 1

    job.path("cut.nc").write_bytes(OCEAN[:-100])
    job.path("leaving.nc").rename(job.data.parent / "aside.nc")
    third = job.run()
    assert third.code == 1
    assert third.states == {"indexed": 3, "indexed_with_problems": 1, "failed": 1, "stale": 1, "vanished": 1}
    assert third.catalog["cut.nc"] == "stale"
    assert str(job.path("cut.nc")) in third.said
    assert str(job.path("broken.nc")) not in third.said
    assert "stale: the file is truncated: " in third.status
    assert f"vanished: the source was no longer found\n  {job.path('leaving.nc')}\n" in third.status

    fourth = job.run()
    assert (fourth.code, fourth.said) == (0, "")  # nothing has changed
    assert fourth.states == third.states  # and nothing is forgotten
    assert fourth.results["given_up"] == 1
    assert fourth.attempts == {"broken.nc": 3, "cut.nc": 2}
    assert not fourth.is_good
    assert main(["index", str(job.data), str(job.out), "--dry-run", "--fail-on", "any", "--max-attempts", "3"]) == 1

    job.path("cut.nc").write_bytes(OCEAN)
    job.path("broken.nc").write_bytes(b"<html> and more")
    (job.data.parent / "aside.nc").rename(job.path("leaving.nc"))
    fifth = job.run()
    assert fifth.code == 1  # broken.nc has changed, and failed again
    assert fifth.states == {"indexed": 5, "indexed_with_problems": 1, "failed": 1}
    assert fifth.attempts == {"broken.nc": 1}
    assert (fifth.results["given_up"], fifth.results["vanished"]) == (0, 0)
    assert fifth.status_code == 1

    job.path("broken.nc").unlink()
    last = job.run()
    assert (last.code, last.status_code, last.is_good) == (0, 0, True)
    assert last.states == {"indexed": 5, "indexed_with_problems": 1}


def test_any_fails_every_run_and_never_fails_none(job: Job) -> None:
    assert [job.run("--fail-on", "never").code, job.run("--fail-on", "never").code] == [0, 0]
    again = job.run("--fail-on", "any")
    assert again.code == 1
    assert f"{job.path('broken.nc')}: not an HDF5 or netCDF file" in again.said
    assert "(given up after 3 attempts, until it changes)" in again.said
    given_up = job.run("--fail-on", "any")
    assert given_up.code == 1
    assert "2 sources given up: tried again after a change, or with --force\n" in given_up.said
    assert given_up.results["failed"] == 0


def test_too_many_failures_are_a_failure_even_if_failures_are_not(job: Job) -> None:
    words = [str(job.data), str(job.out), "--quiet", "--fail-on", "never", "--max-failures", "0"]
    assert main(["index", *words]) == 1
    said = unmarked(job.capfd.readouterr().err)
    assert re.search(r"\nnot finished: too many failures(, \d files? left)?; the next run continues\n$", said)
    assert main(["status", str(job.out)]) == 1
    assert "\nthe last run did not finish; the next run continues\n" in job.capfd.readouterr().out


@pytest.mark.parametrize("later", [(), ("--strict",)], ids=["no longer strict", "strict again"])
def test_strict_makes_problems_a_failure_until_it_is_left_out(later: tuple[str, ...], job: Job) -> None:
    for name in ("broken.nc", "late.nc"):
        job.path(name).unlink()
    assert job.run().states == {"indexed": 4, "indexed_with_problems": 1}
    strict = job.run("--strict")
    assert (strict.code, strict.states) == (1, {"indexed": 4, "stale": 1})
    assert "it has problems, and --strict: /ragged: " in strict.said
    assert (strict.results["changed"], strict.results["unchanged"]) == (1, 4)  # all others are left in peace
    after = job.run(*later)
    assert after.code == 0
    assert after.states == ({"indexed": 4, "stale": 1} if later else {"indexed": 4, "indexed_with_problems": 1})


def test_strict_from_the_start_writes_no_references_for_a_file_with_problems(job: Job) -> None:
    night = job.run("--strict")
    assert (night.code, night.catalog["partly.nc"]) == (1, "failed")
    assert not list(job.out.rglob("partly.nc*"))
    assert "failed: it has problems, and --strict: /ragged: " in night.status


def test_a_rebuilt_catalog_has_the_same_states(job: Job) -> None:
    for name in ("broken.nc", "late.nc"):
        job.path(name).unlink()
    before = job.run().catalog
    (job.out / CATALOG).unlink()
    assert job.run("--rebuild-catalog").catalog == before


def _cut_classic(path: Path) -> None:
    path.write_bytes((SAMPLES / "classic_several_records.nc").read_bytes()[:-1])


def _cut_header(path: Path) -> None:
    path.write_bytes(OCEAN[:60])


def _without_bytes(path: Path) -> None:
    path.write_bytes(b"")


def _only_sequences(path: Path) -> None:
    shutil.copy(SAMPLES / "types_sequences_latest.h5", path)


def _damaged_root(path: Path) -> None:
    """Write a file whose root group has a name for an array, and nothing behind the name."""
    with h5py.File(path, "w", libver="earliest") as file:
        file["values"] = [1, 2, 3]
        address = h5py.h5o.get_info(file["values"].id).addr
    content = bytearray(path.read_bytes())
    content[address] = 255  # the version of its header
    path.write_bytes(content)


FAILURES: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated netCDF-3": (_cut_classic, "truncated: "),
    "truncated in the header": (_cut_header, ""),
    "empty": (_without_bytes, ""),
    "nothing that Zarr can hold": (_only_sequences, "unreadable: nothing in it can be read: /"),
    "nothing behind the root group": (_damaged_root, "unreadable: nothing in it can be read: /values: "),
}


@pytest.mark.parametrize(("make", "reason"), FAILURES.values(), ids=FAILURES)
def test_a_file_in_which_nothing_can_be_read_has_failed(
    make: Callable[[Path], None], reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "file.nc")
    assert main(["index", str(tmp_path / "file.nc"), str(tmp_path / "refs")]) == 1
    (row,) = pq.read_table(tmp_path / "refs" / CATALOG).to_pylist()
    assert (row["status"], row["arrays"]) == ("failed", 0)
    assert row["reason"].startswith(reason)
    assert row["remedy"]
    assert not list((tmp_path / "refs").glob("*.json"))
    assert "0 files indexed, 1 failed" in capfd.readouterr().err
