"""Several sources, as the shell passes them on: patterns, directories and files."""

from __future__ import annotations

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.listing import list_several
from h5zarr.commands.catalog.rows import Status
from h5zarr.errors import OutputError, SourceGone
from tests.commands.index.jobs import OWN_FILES, SAMPLES, files_below, rows_of, unmarked
from tests.servers import RangeServer

OCEAN = SAMPLES / "ocean.nc"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.nc", "b.nc", "[c].nc", "2025/a.nc", "2026/d.nc", "2026/deep/e.nc"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(OCEAN, path)
    return tmp_path / "tree"


def outputs(out: Path) -> set[str]:
    return {row.output for row in rows_of(out).values()}


def test_each_source_is_listed_as_if_it_were_alone(tree: Path) -> None:
    listing = list_several([f"{tree}/a.nc", f"{tree}/[c].nc", f"{tree}/2026", f"{tree}/202?/a.nc"])
    found = {one.path: one.found_by.removeprefix(f"{tree}/") for one in listing.sources}
    assert found == {"a.nc": "a.nc", "[c].nc": "[c].nc", "d.nc": "2026", "deep/e.nc": "2026", "2025/a.nc": "202?/a.nc"}
    assert all(one.identity is not None for one in listing.sources)
    assert listing.found_by == {f"{tree}/a.nc", f"{tree}/[c].nc", f"{tree}/2026", f"{tree}/202?/a.nc"}


def test_remote_files_are_not_looked_for_and_directories_are() -> None:
    page = b'<a href="x.nc">x</a>'
    with RangeServer({"/d/": page, "/d/x.nc": OCEAN.read_bytes(), "/e.nc": b"1"}) as server:
        server.headers = {"Content-Type": "text/html"}
        signed = server.url("/e.nc?X-Amz-Signature=hunter2")
        listing = list_several([signed, server.url("/d/")], is_known=lambda url: False)
        assert [one.url for one in listing.sources] == [server.url("/d/x.nc"), signed]
        assert not any("e.nc" in url for url in server.counts.urls)
        assert not any("hunter2" in one.found_by for one in listing.sources)


def test_a_pattern_without_a_match_is_an_error_and_a_file_that_is_missing_is_one_failure(
    tree: Path, threads: ThreadPoolExecutor
) -> None:
    out = tree.parent / "refs"
    with pytest.raises(SourceGone, match=r"z\*\.nc: no file was found"):
        h5zarr.index([tree / "a.nc", tree / "z*.nc"], out, executor=threads)
    report = h5zarr.index([tree / "a.nc", tree / "none.nc"], out, executor=threads)
    assert (report.indexed_count, report.failed_count) == (1, 1)
    assert report.failed[0].reason == "source: there is no such file"


def test_a_reason_does_not_repeat_a_relative_name(
    tree: Path, threads_for_command: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tree)
    (tree.parent / "list.txt").write_text("none.nc\n")
    assert main(["index", "--files-from", "../list.txt", "../refs", "--quiet"]) == 1
    assert unmarked(capfd.readouterr().err).splitlines()[0] == f"{tree}/none.nc: there is no such file"


@pytest.mark.parametrize("words", [["*.nc"], ["a.nc", "b.nc", "[c].nc"]], ids=["quoted", "expanded"])
def test_what_the_shell_expands_gets_the_names_that_a_pattern_gives(
    words: list[str], tree: Path, threads_for_command: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    assert main(["index", *words, "../refs"]) == 0
    assert outputs(tree.parent / "refs") == {"a.nc.json", "b.nc.json", "%5Bc%5D.nc.json"}
    assert main(["index", *words, "../refs", "--quiet"]) == 0
    assert files_below(tree.parent / "refs") == outputs(tree.parent / "refs") | OWN_FILES


def test_files_of_the_same_name_do_not_overwrite_each_other(tree: Path, threads: ThreadPoolExecutor) -> None:
    out = tree.parent / "refs"
    report = h5zarr.index([tree / "a.nc", tree / "2025" / "a.nc", tree], out, executor=threads)
    assert report.indexed_count == 6
    assert len(outputs(out)) == 6


def test_a_file_that_is_no_longer_named_has_not_vanished_but_one_of_a_directory_has(
    tree: Path, threads: ThreadPoolExecutor
) -> None:
    out = tree.parent / "refs"
    h5zarr.index([tree / "a.nc", tree / "b.nc", tree / "2026"], out, executor=threads)
    (tree / "2026" / "d.nc").unlink()
    report = h5zarr.index([tree / "a.nc", tree / "2026"], out, executor=threads, prune=True)
    assert report.vanished == [str(tree / "2026" / "d.nc")]
    assert +report.states == {Status.INDEXED: 2}
    assert (out / "b.nc.json").exists()


def test_sources_may_be_in_the_directory_of_the_index(tree: Path, threads: ThreadPoolExecutor) -> None:
    for _ in range(2):
        report = h5zarr.index(str(tree / "**" / "*.*"), tree, executor=threads)
        assert (report.listed_count, report.failed_count) == (6, 0)
    assert (tree / "2025" / "a.nc.json").exists()


@pytest.mark.parametrize("name", ["b.nc", "new.nc", "new.H5"])
def test_a_data_file_is_not_taken_for_the_directory_of_the_index(
    name: str, tree: Path, threads: ThreadPoolExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files_below(tree)
    with pytest.raises(OutputError, match="an index is written to a directory"):
        h5zarr.index(tree / "a.nc", tree / name, executor=threads)
    assert main(["index", str(tree / "a.nc"), str(tree / "[c].nc"), str(tree / name)]) == 2
    said = unmarked(capfd.readouterr().err).splitlines()
    assert said[0].startswith(f"h5zarr: {tree / name}: this is ")
    assert said[1] == "  Give the directory for the references after the sources."
    assert files_below(tree) == before


def test_a_file_that_is_no_data_is_not_taken_for_it_either(tree: Path, threads: ThreadPoolExecutor) -> None:
    (tree / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="this is a file, but an index is written to a directory"):
        h5zarr.index(tree / "a.nc", tree / "notes.txt", executor=threads)
    assert (tree / "notes.txt").read_text() == "mine"


def test_the_log_has_the_start_the_progress_and_the_end(
    tree: Path, threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    (tree / "broken.nc").write_bytes(b"<html>")
    out = tree.parent / "refs"
    with caplog.at_level(logging.INFO, logger="h5zarr"):
        h5zarr.index(tree, out, executor=threads)
    told = [unmarked(record.getMessage()) for record in caplog.records if record.levelno == logging.INFO]
    assert told[0] == f"index {out}: listing the sources"
    assert told[1] == f"index {out}: 7 new, 0 changed, 0 tried again, 0 unchanged"
    assert told[2:-1] == [
        f"index {out}: {count} of 7 files, {failed} failed"
        for count, failed in enumerate((int("1 failed" in one) for one in told[2:-1]), 1)
    ]
    assert told[-2] == f"index {out}: 7 of 7 files, 1 failed"
    assert told[-1].startswith(f"index {out}: finished after ")
    assert "'indexed': 6" in told[-1]
    (warning,) = [unmarked(record.getMessage()) for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith(f"{tree / 'broken.nc'}: ")
    assert "not an HDF5 or netCDF file" in warning


def test_a_long_run_logs_its_progress_about_twenty_times(
    tmp_path: Path, threads: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data").mkdir()
    for number in range(103):
        (tmp_path / "data" / f"{number}.nc").write_bytes(b"<html>")
    with caplog.at_level(logging.INFO, logger="h5zarr"):
        h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=threads)
    steps = [text for text in caplog.messages if " of 103 files" in text]
    assert len(steps) == 21
    assert steps[-1].endswith("103 of 103 files, 103 failed")


def test_python_prints_nothing_if_nobody_has_configured_the_log(
    tree: Path, threads: ThreadPoolExecutor, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "broken.nc").write_bytes(b"<html>")
    logger = logging.getLogger("h5zarr")
    logger.propagate = False  # away from the handlers of pytest
    try:
        h5zarr.index(tree, tree.parent / "refs", executor=threads)
    finally:
        logger.propagate = True
    assert capfd.readouterr() == ("", "")


def test_one_file_on_a_web_server_is_a_source(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with RangeServer({"/d/x.nc": OCEAN.read_bytes()}) as server:
        for expected in ("finished, 1 indexed", "finished, 0 indexed"):
            report = h5zarr.index(server.url("/d/x.nc"), tmp_path / "refs", executor=threads)
            assert expected in repr(report)
        assert outputs(tmp_path / "refs") == {"x.nc.json"}
        with pytest.raises(SourceGone, match="there is no such file"):
            h5zarr.index(server.url("/d/y.nc"), tmp_path / "refs", executor=threads)


@pytest.mark.parametrize("places", [["notes"], ["notes", "a.nc"]], ids=["alone", "several"])
def test_a_directory_without_data_files_says_which_names_count(
    places: list[str], tree: Path, threads: ThreadPoolExecutor
) -> None:
    (tree / "notes").mkdir()
    (tree / "notes" / "read.me").touch()
    sources = [tree / place for place in places]
    with pytest.raises(SourceGone, match="notes: no file was found") as caught:
        h5zarr.index(sources if len(sources) > 1 else sources[0], tree.parent / "refs", executor=threads)
    assert ".hdf5 or .he5. For other names, give a quoted pattern" in caught.value.remedy


def test_an_empty_list_is_not_a_wrong_pattern(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with pytest.raises(SourceGone, match="--files-from x: no file was found") as caught:
        h5zarr.index([], tmp_path / "refs", found_by="--files-from x", executor=threads)
    assert caught.value.remedy == "Check the command that made the list."
