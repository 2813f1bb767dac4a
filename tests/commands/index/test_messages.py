"""The messages of `index` and `status`, word by word, for one thing and for several."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.cli.common import phrase
from h5zarr.cli.index_log import RunLog, Voice
from h5zarr.commands.catalog.catalog import CATALOG, Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index import lease
from h5zarr.commands.index.dispatch import WorkerDied
from h5zarr.commands.index.index_report import IndexReport
from h5zarr.commands.index.index_text import end_lines, failure_lines
from h5zarr.commands.index.lease import LEASE, Lease
from h5zarr.commands.index.planning import Plan, Task
from h5zarr.commands.index.work import Unexpected
from h5zarr.commands.status.status import NoIndex, Summary, summary_lines
from h5zarr.errors import Problem
from h5zarr.processes import WorkersLost
from tests.commands.index.jobs import SAMPLES, unmarked

# One of several things, where the number does not match the word: "1 files", "2 file".
ODD_PLURAL = re.compile(r"(?<![\d,.])1 (?:\w+ )?(?:files|sources|outputs|arrays|chunks|requests|problems|reasons)\b")
RAGGED = Problem("/ragged", "unrepresentable", "Zarr has no such type", "Use exclude=[PATTERN].")
DEEP = Problem("/deep", "malformed", "it is broken", "Copy it again.")


def row(name: str = "a.nc", **changes: Any) -> Row:
    made = Row(
        source=f"/data/{name}",
        found_by="/data",
        identity=None,
        output=f"{name}.json",
        settings="",
        status=Status.INDEXED,
        time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    return replace(made, **changes)


FAILED = row("f.nc", status=Status.FAILED, reason="source: /data/f.nc: no answer", remedy="Try wait=5.", attempts=1)


def ended(*rows: Row, how: str = "finished", **changes: Any) -> IndexReport:
    """Return the report of a run with these results."""
    report = IndexReport(out="refs")
    for one in rows:
        report.take_row(one, None)
    for name, value in changes.items():
        setattr(report, name, value)
    report.end(how)
    report.seconds = 1.5
    return report


ENDS: dict[str, tuple[IndexReport, list[str]]] = {
    "one file": (
        ended(row(arrays=1, chunks=1, bytes_read=1)),
        ["1 file indexed, 0 failed · 1 chunk in 1 array · 1 byte read · 1.50 s"],
    ),
    "two files": (
        ended(row(arrays=2, chunks=1000), row("b.nc", arrays=1, chunks=500, bytes_read=2_000_000)),
        ["2 files indexed, 0 failed · 1,500 chunks in 3 arrays · 2.00 MB read · 1.50 s"],
    ),
    "a remote file": (
        ended(row(source="s3://b/a.nc", arrays=1, chunks=1, requests=1, bytes_read=3)),
        ["1 file indexed, 0 failed · 1 chunk in 1 array · 1 request, 3 bytes read · 1.50 s"],
    ),
    "problems": (
        ended(row(status=Status.INDEXED_WITH_PROBLEMS, arrays=2, chunks=2)),
        [
            "0 files indexed, 1 indexed with problems, 0 failed · 2 chunks in 2 arrays · 0 bytes read · 1.50 s",
            "h5zarr status refs shows the problems",
        ],
    ),
    "one failure": (ended(FAILED), ["0 files indexed, 1 failed · 1.50 s"]),
    "an old and a new failure": (
        ended(FAILED, replace(FAILED, attempts=2)),
        ["0 files indexed, 2 failed (1 for the first time) · 1.50 s"],
    ),
    "nothing to do": (ended(unchanged_count=1), ["nothing to do: 1 source unchanged"]),
    "nothing to do, with problems": (
        ended(unchanged_count=2, states=Counter({Status.INDEXED_WITH_PROBLEMS: 1})),
        ["nothing to do: 2 sources unchanged, 1 of them with problems"],
    ),
    "a plan": (ended(how="planned"), ["nothing was written: --dry-run"]),
    "too many failures": (
        ended(FAILED, how="too many failures"),
        ["0 files indexed, 1 failed · 1.50 s", "not finished: too many failures; the next run continues"],
    ),
    "one vanished": (
        ended(vanished=["/data/a.nc"], unchanged_count=3),
        [
            "1 source vanished: it is kept; --prune removes it",
            "  /data/a.nc",
            "nothing to do: 3 sources unchanged",
        ],
    ),
    "two vanished": (
        ended(vanished=["/data/a.nc", "/data/b.nc"]),
        [
            "2 sources vanished: they are kept; --prune removes them",
            "  /data/a.nc",
            "  /data/b.nc",
            "nothing to do: 0 sources unchanged",
        ],
    ),
    "one pruned": (
        ended(vanished=["/data/a.nc"], pruned_count=1),
        ["1 source vanished: 1 removed", "  /data/a.nc", "nothing to do: 0 sources unchanged"],
    ),
    "many pruned": (
        ended(vanished=[f"/data/{number}.nc" for number in range(22)], pruned_count=22),
        [
            "22 sources vanished: 22 removed",
            *(f"  /data/{number}.nc" for number in range(20)),
            "  and 2 more",
            "nothing to do: 0 sources unchanged",
        ],
    ),
    "one given up": (
        ended(given_up=[replace(FAILED, attempts=5)]),
        [
            "1 source given up: tried again after a change, or with --force",
            "  /data/f.nc: no answer",
            "nothing to do: 0 sources unchanged",
        ],
    ),
}


@pytest.mark.parametrize(("report", "expected"), ENDS.values(), ids=ENDS)
def test_the_end_of_a_run(report: IndexReport, expected: list[str]) -> None:
    lines = end_lines(report, phrase=phrase)
    assert lines == expected
    assert not [line for line in lines if ODD_PLURAL.search(line)]
    assert str(report) == "\n".join(end_lines(report))


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        (1, "/data/f.nc: no answer"),
        (2, "/data/f.nc: no answer (attempt 2 of 3)"),
        (3, "/data/f.nc: no answer (given up after 3 attempts, until it changes)"),
    ],
)
def test_a_failure_says_whether_the_file_is_tried_again(attempts: int, expected: str) -> None:
    assert failure_lines(replace(FAILED, attempts=attempts), 3, phrase) == [expected, "  Try --wait 5."]


def test_a_failure_at_the_only_attempt_is_the_end() -> None:
    (line,) = failure_lines(replace(FAILED, remedy=""), 1)
    assert line == "/data/f.nc: no answer (given up after 1 attempt, until it changes)"


def test_a_progress_line_counts_files() -> None:
    for count, expected in ((1, "1 of 1 file, 1 failed, "), (1200, "1 of 1,200 files, 1 failed, ")):
        log = RunLog(Voice("night-1", as_json=False), quiet=True, fail_on="new", max_attempts=5)
        log.plan(Plan(new=[Task("/data/f.nc", "/data/f.nc", None, "")] * count))
        log.row(replace(FAILED, attempts=2))
        assert log.line().startswith(expected)
        assert re.search(r"\d a second, [\d:]+ left$", log.line())


def test_a_summary_groups_sources_by_reason() -> None:
    partly = [row(f"{n}.nc", status=Status.INDEXED_WITH_PROBLEMS, problems=(RAGGED,)) for n in range(7)]
    both = row("both.nc", status=Status.INDEXED_WITH_PROBLEMS, problems=(RAGGED, DEEP))
    stale = row("s.nc", status=Status.STALE, reason="truncated: the file is truncated", remedy="Copy it.", attempts=3)
    others = [*partly, both, FAILED, stale, row("gone.nc", status=Status.VANISHED)]
    summary = Summary(counts=Counter(one.status for one in others), others=others, arrays=1, chunks=2, empty_count=1)
    assert list(summary_lines(summary, phrase=phrase)) == [
        "0 indexed, 8 indexed with problems, 1 failed, 1 stale, 1 vanished",
        "2 chunks in 1 array; 1 file without arrays",
        "",
        "failed: no answer",
        "  /data/f.nc",
        "  Try --wait 5.",
        "",
        "stale: the file is truncated",
        "  /data/s.nc (failed 3 times)",
        "  Copy it.",
        "",
        "indexed with problems: /ragged: Zarr has no such type",
        *(f"  /data/{number}.nc" for number in range(5)),
        "  and 3 more",
        "  Use --exclude PATTERN.",
        "",
        "indexed with problems: /deep: it is broken",
        "  /data/both.nc",
        "  Copy it again.",
        "",
        "vanished: the source was no longer found",
        "  /data/gone.nc",
        "  h5zarr index --prune removes it.",
    ]
    everything = list(summary_lines(summary, show_all=True))
    assert all(f"  {one.source}" in {line.partition(" (failed")[0] for line in everything} for one in others)
    assert not [line for line in everything if " more" in line]


@pytest.mark.parametrize(("count", "expected"), [(10, None), (11, "and 1 more reason"), (12, "and 2 more reasons")])
def test_a_summary_of_many_reasons_is_short(count: int, expected: str | None) -> None:
    others = [replace(FAILED, source=f"/data/{n}.nc", reason=f"source: reason {n}") for n in range(count)]
    lines = list(summary_lines(Summary(others=others)))
    assert len([line for line in lines if line.startswith("failed: reason")]) == 10
    assert [line for line in lines if "more reason" in line] == ([f"failed: {expected}"] if expected else [])
    assert sum("failed: reason" in line for line in summary_lines(Summary(others=others), show_all=True)) == count


# --- jobs that cannot run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    shutil.copy(SAMPLES / "ocean.nc", tmp_path / "data" / "a.nc")
    return tmp_path / "data"


def _damage_catalog(data: Path) -> None:
    (data.parent / "refs" / CATALOG).parent.mkdir(parents=True)
    (data.parent / "refs" / CATALOG).write_bytes(b"PAR1")


def _nothing(data: Path) -> None:
    pass


REBUILD = "To rebuild it from the outputs, run the index with --rebuild-catalog."
PATTERN = "Check the pattern, and quote it for the shell; ** matches any number of directories."
SEE_HELP = "h5zarr index --help shows examples."
REFUSALS: dict[str, tuple[Callable[[Path], None], list[str], str, str]] = {
    "no source": (
        _nothing,
        ["index", "{out}"],
        "give at least one source, and then OUT, the directory for the references",
        SEE_HELP,
    ),
    "sources twice": (
        _nothing,
        ["index", "--files-from", "x", "{data}", "{out}"],
        "give either sources or --files-from FILE, and then OUT",
        SEE_HELP,
    ),
    "no match": (_nothing, ["index", "{data}/*.h5", "{out}"], "{data}/*.h5: no file was found", PATTERN),
    "one pattern without a match": (
        _nothing,
        ["index", "{data}/a.nc", "{data}/*.h5", "{out}"],
        "{data}/*.h5: no file was found",
        PATTERN,
    ),
    "no directory": (
        _nothing,
        ["index", "{data}/none", "{out}"],
        "{data}/none: there is no such file or directory",
        "Check the path.",
    ),
    "no list": (
        _nothing,
        ["index", "--files-from", "{data}/none", "{out}"],
        "{data}/none: No such file or directory",
        "Check --files-from.",
    ),
    "a file for OUT": (
        _nothing,
        ["index", "{data}", "{data}/a.nc"],
        "{data}/a.nc: this is a file, but an index is written to a directory",
        "Give the directory for the references after the sources.",
    ),
    "a damaged catalog": (
        _damage_catalog,
        ["index", "{data}", "{out}"],
        f"{{out}}/{CATALOG}: this is not a catalog (ArrowInvalid)",
        REBUILD,
    ),
    "status of a damaged catalog": (
        _damage_catalog,
        ["status", "{out}"],
        f"{{out}}/{CATALOG}: this is not a catalog (ArrowInvalid)",
        REBUILD,
    ),
    "status of nothing": (_nothing, ["status", "{out}"], "{out}: no index found", "Create one with h5zarr index."),
}


@pytest.mark.parametrize(("prepare", "words", "message", "remedy"), REFUSALS.values(), ids=REFUSALS)
def test_a_command_that_cannot_run_says_what_where_and_what_to_do(
    prepare: Callable[[Path], None],
    words: list[str],
    message: str,
    remedy: str,
    data: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    prepare(data)
    places = {"data": data, "out": data.parent / "refs"}
    assert main([word.format(**places) for word in words]) == 2
    assert unmarked(capfd.readouterr().err).splitlines() == [f"h5zarr: {message.format(**places)}", f"  {remedy}"]


def test_a_catalog_that_may_not_be_read_is_named(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _damage_catalog(data)

    def refuse(*args: Any, **choices: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("h5zarr.commands.catalog.place.open", refuse, raising=False)
    assert main(["status", str(data.parent / "refs")]) == 2
    assert capfd.readouterr().err.splitlines() == [
        f"h5zarr: {data.parent}/refs/{CATALOG}: this cannot be read (Permission denied)",
        "  Check the permissions of the file and its directory.",
    ]
    with pytest.raises(PermissionError):
        h5zarr.status(data.parent / "refs")


def test_an_active_run_is_named_even_if_its_lease_says_little(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(data.parent / "refs")
    monkeypatch.setattr(Lease, "_is_still", lambda self, found: False)
    place.create(lease.LEASE, b"{}")
    with pytest.raises(lease.LeaseHeld) as caught:
        Lease(place).__enter__()
    assert str(caught.value) == f"{place.shown}: another run is working there (process ? on an unknown machine)"
    assert phrase(caught.value.remedy) == "To wait until it has finished, use --wait SECONDS."


def test_wrong_values_in_python_name_the_option(data: Path) -> None:
    with pytest.raises(ValueError, match="fail_on is 'old', but must be one of new, any, never"):
        h5zarr.index(data, data.parent / "refs", fail_on="old")
    with pytest.raises(ValueError, match="the list of sources is empty"):
        h5zarr.index([], data.parent / "refs")


@pytest.mark.parametrize("kind", [WorkerDied, Unexpected, WorkersLost])
def test_remedies_are_in_terms_of_the_command_line(kind: type[h5zarr.H5ZarrError]) -> None:
    told = phrase(kind("a.nc").remedy)
    assert not re.search(r"\w=", told)
    assert kind is not WorkerDied or "use fewer processes (--workers NUMBER)" in told


def test_a_stopped_run_says_what_is_left_even_if_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    log = RunLog(Voice("night-1", as_json=False), quiet=True, fail_on="new", max_attempts=5)
    log.end(ended(new_count=1500, indexed_count=183, how="stopped"))
    assert capfd.readouterr().err == "[night-1] not finished: stopped, 1,317 files left; the next run continues\n"
    log.end(ended(new_count=2, indexed_count=1, how="another run took over"))
    assert capfd.readouterr().err == ""


def test_status_says_whether_a_run_is_active(tmp_path: Path) -> None:
    place = Place(tmp_path / "refs")
    with Lease(place), pytest.raises(NoIndex, match=r"refs: no index found: a run is active \(process "):
        h5zarr.status(tmp_path / "refs")
    catalog = Catalog(place)
    catalog.add(FAILED)
    catalog.flush()
    assert h5zarr.status(tmp_path / "refs").run == "the last run did not finish; the next run continues"
    catalog.fold()
    assert h5zarr.status(tmp_path / "refs").run == ""
    with Lease(place):
        content = place.read(LEASE)
        run = h5zarr.status(tmp_path / "refs").run
        assert re.fullmatch(r"a run is active \(process \d+ on .+\)", run)
        assert run in str(h5zarr.status(tmp_path / "refs")).splitlines()
        assert h5zarr.status(tmp_path / "refs").to_json()["run"] == run
    assert content is not None
    killed = {**json.loads(content), "began": "another time"}
    place.write(LEASE, json.dumps(killed).encode())
    run = h5zarr.status(tmp_path / "refs").run
    assert re.fullmatch(r"the last run was killed \(process \d+ on .+\); the next run continues", run)
    place.write(LEASE, b'{"holder": "x", "process": 7, "host": "elsewhere"}')
    run = h5zarr.status(tmp_path / "refs").run
    assert run == "a run is active, or was killed (process 7 on elsewhere)"
