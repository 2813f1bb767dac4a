"""A job that is run again and again does what there is to do, and no more."""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.commands.catalog.catalog import CATALOG, Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index.index_text import failure_lines
from h5zarr.commands.index.lease import LEASE
from h5zarr.commands.index.run_record import RUN
from h5zarr.errors import H5ZarrError, OutputError, SourceGone
from h5zarr.io.location import Location
from tests.servers import RangeServer


def rows(out: Path) -> dict[str, Row]:
    """The rows of a catalog, by the name of the file."""
    return {Path(row.source).name: row for row in Catalog(Place(out)).rows()}


def run(data: Path | str, out: Path, threads: ThreadPoolExecutor, **choices: Any) -> h5zarr.IndexReport:
    return h5zarr.index(str(data), out, executor=threads, **choices)


def touch(path: Path) -> None:
    """Change when a file was changed, by more than any file system rounds."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 2_000_000_000))


def test_each_file_gets_the_references_that_translate_writes(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    report = run(data, tmp_path / "refs", threads)
    assert report.is_good
    assert report.counts()["indexed"] == 3
    for name in ("ocean.nc", "links.h5", "later/ocean.nc"):
        h5zarr.translate(data / name, tmp_path / "expected.json")
        assert (tmp_path / "refs" / f"{name}.json").read_bytes() == (tmp_path / "expected.json").read_bytes()


def test_a_second_run_does_nothing(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    out = tmp_path / "refs"
    run(data, out, threads)

    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path != out / RUN}

    before = written()
    report = run(data, out, threads)
    assert report.is_good
    assert (report.indexed_count, report.unchanged_count, report.requests) == (0, 3, 0)
    assert written() == before


def test_only_what_has_changed_is_read_again(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    touch(data / "ocean.nc")
    shutil.copy(data / "links.h5", data / "new.h5")
    report = run(data, tmp_path / "refs", threads)
    assert (report.new_count, report.changed_count, report.unchanged_count) == (1, 1, 2)
    assert run(data, tmp_path / "refs", threads).unchanged_count == 4


def test_a_broken_file_is_recorded_with_the_reason_and_given_up_in_the_end(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    (data / "broken.nc").write_bytes(b"<html>")
    first = run(data, out, threads, max_attempts=2)
    assert not first.is_good
    assert (first.indexed_count, first.failed_count) == (3, 1)
    row = rows(out)["broken.nc"]
    assert (row.status, row.attempts) == (Status.FAILED, 1)
    assert "not an HDF5 or netCDF file" in row.reason
    assert row.remedy
    assert run(data, out, threads, max_attempts=2).retried_count == 1
    third = run(data, out, threads, max_attempts=2)
    assert (third.retried_count, len(third.given_up)) == (0, 1)
    assert not third.is_good
    shutil.copy(data / "links.h5", data / "broken.nc")
    assert run(data, out, threads, max_attempts=2).indexed_count == 1
    assert rows(out)["broken.nc"].attempts == 0


def test_a_file_whose_references_cannot_be_written_is_never_given_up(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    out.mkdir()
    (out / "links.h5.json").write_text("not references")
    for attempt in (1, 2, 3):
        report = run(data, out, threads, max_attempts=1)
        assert (report.failed_count, report.given_up, report.is_failure) == (1, [], attempt == 1)
        assert failure_lines(report.failed[0], 1)[0].endswith("this is a file that h5zarr did not write")
    assert rows(out)["links.h5"].attempts == 3
    (out / "links.h5.json").unlink()
    assert run(data, out, threads, max_attempts=1).indexed_count == 1
    assert run(data, out, threads, max_attempts=1).unchanged_count == 3


def test_a_run_ends_when_too_many_files_have_failed(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    for number in range(200):
        (data / f"broken{number}.nc").write_bytes(b"no")
    report = run(data, tmp_path / "refs", threads, max_failures=3)
    assert report.ended == "too many failures"
    assert 3 < report.failed_count < 200
    assert not report.is_good


def test_references_of_a_file_that_changed_and_broke_are_stale(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    run(data, tmp_path / "refs", threads)
    (data / "links.h5").write_bytes(b"broken")
    assert not run(data, tmp_path / "refs", threads).is_good
    assert rows(tmp_path / "refs")["links.h5"].status is Status.STALE


def test_vanished_sources_are_reported_and_kept(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    (data / "links.h5").unlink()
    report = run(data, tmp_path / "refs", threads)
    assert report.vanished == [str(data / "links.h5")]
    assert rows(tmp_path / "refs")["links.h5"].status is Status.VANISHED
    assert (tmp_path / "refs" / "links.h5.json").exists()


def test_vanished_sources_are_removed_if_that_is_wanted(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    run(data, tmp_path / "refs", threads)
    (data / "links.h5").unlink()
    assert run(data, tmp_path / "refs", threads, prune=True).pruned_count == 1
    assert "links.h5" not in rows(tmp_path / "refs")
    assert not (tmp_path / "refs" / "links.h5.json").exists()
    assert (tmp_path / "refs" / "ocean.nc.json").exists()


def test_what_had_vanished_and_is_back_is_indexed(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    (data / "links.h5").rename(tmp_path / "aside.h5")
    run(data, tmp_path / "refs", threads)
    (tmp_path / "aside.h5").rename(data / "links.h5")
    assert run(data, tmp_path / "refs", threads).is_good
    assert rows(tmp_path / "refs")["links.h5"].status is Status.INDEXED


def test_an_empty_listing_is_an_error_and_prunes_nothing(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    pattern = str(data / "*.nc")
    run(pattern, tmp_path / "refs", threads)
    (data / "ocean.nc").unlink()
    with pytest.raises(SourceGone, match="no file was found"):
        run(pattern, tmp_path / "refs", threads, prune=True)
    assert (tmp_path / "refs" / "ocean.nc.json").exists()


def test_two_patterns_share_an_index_without_missing_each_others_files(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    run(str(data / "*.nc"), out, threads)
    report = run(str(data / "*.h5"), out, threads, prune=True)
    assert report.vanished == []
    assert set(rows(out)) == {"ocean.nc", "links.h5"}


def test_a_dry_run_writes_nothing(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    plans: list[Any] = []
    report = run(data, tmp_path / "refs", threads, dry_run=True, on_plan=plans.append)
    assert report.new_count == 3
    assert sorted(task.output for task in plans[0].tasks) == ["later/ocean.nc.json", "links.h5.json", "ocean.nc.json"]
    assert not (tmp_path / "refs").exists()


def test_another_format_takes_the_place_of_the_first(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    out = tmp_path / "refs"
    run(data, out, threads)
    report = run(data, out, threads, format="parquet")
    assert report.changed_count == 3
    assert not list(out.rglob("*.json"))
    assert (out / "ocean.nc.parquet" / ".zmetadata").exists()
    assert run(data, out, threads, format="parquet").unchanged_count == 3


def test_other_options_index_everything_anew(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    assert run(data, tmp_path / "refs", threads, zarr_format=2).changed_count == 3


def test_force_indexes_everything_anew(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    assert run(data, tmp_path / "refs", threads, force=True).indexed_count == 3


@pytest.mark.parametrize("form", ["json", "json.zst", "parquet"])
def test_a_lost_catalog_is_made_anew_from_the_outputs(
    form: str, data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    run(data, out, threads, format=form)
    before = {name: (row.source, row.identity, row.output, row.chunks, row.problems) for name, row in rows(out).items()}
    (out / CATALOG).unlink()
    (out / "note.txt").write_text("not ours")
    (out / "else.json").write_text("{}")
    report = run(data, out, threads, format=form, rebuild_catalog=True)
    assert (report.indexed_count, report.unchanged_count) == (0, 3)
    now = {name: (row.source, row.identity, row.output, row.chunks, row.problems) for name, row in rows(out).items()}
    assert now == before
    assert (out / "note.txt").exists()


def test_a_catalog_that_is_made_anew_does_not_prune_what_others_have_found(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    run(str(data / "*.nc"), out, threads)
    run(str(data / "*.h5"), out, threads)
    (out / CATALOG).unlink()
    assert run(str(data / "*.nc"), out, threads, rebuild_catalog=True, prune=True).vanished == []
    assert (out / "links.h5.json").exists()
    assert run(str(data / "*.h5"), out, threads).unchanged_count == 1
    (data / "links.h5").rename(data / "other.h5")
    assert run(str(data / "*.h5"), out, threads, prune=True).pruned_count == 1
    assert not (out / "links.h5.json").exists()


def test_an_output_is_replaced_by_one_of_another_form_when_the_catalog_says_so(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "refs"
    run(data, out, threads)
    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "flush", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(data, out, threads, format="parquet")
    assert run(data, out, threads).unchanged_count == 3
    assert all((out / row.output).exists() for row in rows(out).values())


def test_a_catalog_that_cannot_be_read_is_an_error_that_says_what_to_do(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    run(data, out, threads)
    (out / CATALOG).write_bytes(b"PAR1 and then nothing")
    with pytest.raises(OutputError, match="not a catalog") as caught:
        run(data, out, threads)
    assert "rebuild_catalog=True" in caught.value.remedy
    assert run(data, out, threads, rebuild_catalog=True).unchanged_count == 3


def test_a_list_of_files_is_indexed_under_their_whole_paths(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    out = tmp_path / "refs"
    names = [str(data / "ocean.nc"), str(data / "missing.nc")]
    report = h5zarr.index(names, out, executor=threads, found_by="my list")
    assert (report.indexed_count, report.failed_count) == (1, 1)
    assert (out / f"{data}/ocean.nc.json".lstrip("/")).exists()
    assert "no such file" in rows(out)["missing.nc"].reason


def test_problems_of_a_file_are_in_its_row(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    samples = Path(__file__).resolve().parents[3] / "sample_data"
    report = run(samples, tmp_path / "refs", threads)
    found = rows(tmp_path / "refs")
    assert report.with_problems_count > 0
    name, row = next((name, row) for name, row in found.items() if row.problems)
    assert row.problems == h5zarr.translate(row.source).problems, name


def test_nothing_is_left_of_the_lease_and_the_parts(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    run(data, tmp_path / "refs", threads)
    left = {path.name for path in (tmp_path / "refs" / "_h5zarr").rglob("*") if path.is_file()}
    assert left == {"catalog.parquet", "last_run"}
    assert not (tmp_path / "refs" / LEASE).exists()


def test_a_run_that_is_stopped_records_what_was_finished(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    for number in range(100):
        shutil.copy(data / "links.h5", data / f"copy{number}.h5")
    seen: list[Row] = []
    started = time.monotonic()
    report = run(data, tmp_path / "refs", threads, on_row=seen.append, is_stopped=lambda: len(seen) > 5)
    assert time.monotonic() - started < 5
    assert report.ended == "stopped"
    assert len(rows(tmp_path / "refs")) == len(seen)
    after = run(data, tmp_path / "refs", threads)
    assert after.unchanged_count == len(seen)
    assert after.new_count == 103 - len(seen)


def test_what_the_report_says_is_json_and_metrics(data: Path, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    (data / "broken.nc").write_bytes(b"no")
    report = run(data, tmp_path / "refs", threads)
    told = json.loads(json.dumps(report.to_json()))
    assert (told["indexed"], told["failed"], told["ended"]) == (3, 1, "finished")
    assert told["failures"][0]["source"].endswith("broken.nc")
    assert len(told["slowest"]) == 4
    lines = report.to_metrics().splitlines()
    assert 'h5zarr_index_sources{state="indexed"} 3' in lines
    assert "h5zarr_index_success 0" in lines


def test_an_unexpected_error_fails_only_one_file(
    data: Path, tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from h5zarr.commands.index import work

    run_one = work.run_translation

    def fail_once(location: Location, *rest: Any, **choices: Any) -> Any:
        if location.text.endswith("links.h5"):
            raise RecursionError("token=hush")
        return run_one(location, *rest, **choices)

    monkeypatch.setattr(work, "run_translation", fail_once)
    report = run(data, tmp_path / "refs", threads)
    assert (report.indexed_count, report.failed_count) == (2, 1)
    assert "RecursionError" in report.failed[0].reason
    assert "hush" not in report.failed[0].reason


def test_an_executor_that_is_neither_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"dask\.distributed"):
        h5zarr.index(str(data), tmp_path / "refs", executor=3)
    with pytest.raises((H5ZarrError, TypeError)):
        h5zarr.index(str(data), tmp_path / "refs", executor=object())


def test_outputs_below_the_sources_are_not_indexed_themselves(data: Path, threads: ThreadPoolExecutor) -> None:
    pattern, out = str(data / "**" / "*.*"), data / "refs"
    assert run(pattern, out, threads).indexed_count == 3
    assert run(pattern, out, threads).listed_count == 3


def test_files_of_a_list_are_asked_for_their_state_only_once_they_are_known(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    samples = Path(__file__).resolve().parents[3] / "sample_data"
    with RangeServer({"/ocean.nc": (samples / "ocean.nc").read_bytes(), "/broken.nc": b"<html>"}) as server:
        names = [server.url("/ocean.nc"), server.url("/broken.nc")]
        for attempts in (1, 2, 3):
            report = h5zarr.index(names, tmp_path / "refs", executor=threads)
            assert rows(tmp_path / "refs")["broken.nc"].attempts == attempts
            assert report.retried_count == (attempts > 1)
            assert server.counts.heads == 2 * attempts - 1  # of the first run, one for what failed
        assert report.unchanged_count == 1
