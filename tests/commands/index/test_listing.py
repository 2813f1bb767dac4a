"""Patterns, directories and lists, near and far, find what is there, under names that open it."""

from __future__ import annotations

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pytest

import h5zarr
from h5zarr.commands.catalog.listing import Listing, list_named, list_sources, read_names
from h5zarr.commands.catalog.rows import Status
from h5zarr.errors import SourceError, SourceGone
from tests.commands.index.jobs import SAMPLES, rows_of
from tests.servers import RangeServer

SMALL = (SAMPLES / "links_compact.h5").read_bytes()
ODD = ("a b.nc", "per%20cent%.nc", "hash#1.nc", "question?.nc", "[1].nc", "{x}.nc", "new\nline.nc", "größe.nc", "-.nc")


def paths(listing: Listing) -> list[str]:
    return [one.path for one in listing.sources]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.nc", "b.h5", "c.txt", "2024/d.nc", "2024/01/e.NC", ".hidden/f.nc"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return tmp_path / "tree"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", [".hidden/f.nc", "2024/01/e.NC", "2024/d.nc", "a.nc", "b.h5"]),
        ("/", [".hidden/f.nc", "2024/01/e.NC", "2024/d.nc", "a.nc", "b.h5"]),
        ("/2024", ["01/e.NC", "d.nc"]),
        ("/*.nc", ["a.nc"]),
        ("/**/*.nc", ["2024/d.nc", "a.nc"]),
        ("/2024/**/*.*", ["01/e.NC", "d.nc"]),
        ("/20??/[d-e].nc", ["2024/d.nc"]),
        ("/c.txt", ["c.txt"]),
        ("/*.zip", []),
    ],
)
def test_a_local_pattern_finds_files_below_its_first_directories(tree: Path, pattern: str, expected: list[str]) -> None:
    for prefix in ("", "file://"):
        found = list_sources(f"{prefix}{tree}{pattern}")
        assert sorted(paths(found)) == sorted(expected)
        assert all(Path(one.url).read_bytes() == b"12345" for one in found.sources)
        assert all(one.identity is not None and one.identity.nbytes == 5 for one in found.sources)


def test_a_relative_pattern_finds_absolute_paths(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert [one.url for one in list_sources("*.nc").sources] == [str(tree / "a.nc")]


def test_a_directory_or_a_file_whose_name_looks_like_a_pattern_is_taken_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "[x]").mkdir()
    (tmp_path / "[x]" / "a*.nc").write_bytes(b"")
    (tmp_path / "[x]" / "ab.nc").write_bytes(b"")
    assert paths(list_sources(str(tmp_path / "[x]"))) == ["a*.nc", "ab.nc"]
    assert paths(list_sources(str(tmp_path / "[x]" / "a*.nc"))) == ["a*.nc"]


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    for name in (tmp_path / "none", tmp_path / "none.nc"):
        with pytest.raises(SourceGone, match="no such file or directory"):
            list_sources(str(name))


def test_a_link_that_leads_nowhere_and_a_directory_that_matches_are_passed_over(tree: Path) -> None:
    (tree / "gone.nc").symlink_to(tree / "nowhere")
    (tree / "directory.nc").mkdir()
    assert paths(list_sources(f"{tree}/*.nc")) == ["a.nc"]


def test_local_names_with_special_letters_are_indexed(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    data, out = tmp_path / "data", tmp_path / "refs"
    data.mkdir()
    for name in ODD:
        (data / name).write_bytes(SMALL)
    report = h5zarr.index(data, out, executor=threads)
    assert [row.reason for row in report.failed] == []
    assert {Path(source).name for source in rows_of(out)} == set(ODD)
    assert h5zarr.index(str(data / "*.nc"), out, executor=threads).unchanged_count == len(ODD)
    for source, row in rows_of(out).items():
        h5zarr.translate(source, tmp_path / "expected.json")
        assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes()


def test_a_local_name_that_is_not_utf8_does_not_end_a_job(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    data, out = tmp_path / "data", tmp_path / "refs"
    data.mkdir()
    (data / "good.nc").write_bytes(SMALL)
    Path(os.fsdecode(os.fsencode(data) + b"/a\xff.nc")).write_bytes(SMALL)
    first = h5zarr.index(data, out, executor=threads)
    assert first.indexed_count + first.failed_count == 2
    rows = rows_of(out)
    assert set(rows) == {str(data / "good.nc"), str(data / "a\\udcff.nc")}
    assert rows[str(data / "good.nc")].status is Status.INDEXED
    again = h5zarr.index(data, out, executor=threads)
    assert (again.new_count, again.vanished) == (0, [])
    assert again.unchanged_count + again.retried_count == 2


def test_memory_is_listed_and_indexed_within_a_process(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    root = f"/{tmp_path.name}{os.getpid()}"
    filesystem = fsspec.filesystem("memory")
    for name in ("data/a.nc", "data/2024/b.nc", "data/2024/Ü [1]%20#?.nc", "data/c.txt"):
        filesystem.pipe_file(f"{root}/{name}", SMALL)
    pattern, out = f"memory:/{root}/data/**/*.nc", f"memory:/{root}/refs"
    assert sorted(paths(list_sources(pattern))) == ["2024/b.nc", "2024/Ü [1]%20#?.nc", "a.nc"]
    assert paths(list_sources(f"memory:/{root}/data")) == paths(list_sources(pattern))
    report = h5zarr.index(pattern, out, executor=threads)
    assert [row.reason for row in report.failed] == []
    assert report.indexed_count == 3
    assert h5zarr.index(pattern, out, executor=threads).unchanged_count == 3
    filesystem.rm_file(f"{root}/data/2024/Ü [1]%20#?.nc")
    assert h5zarr.index(pattern, out, executor=threads, prune=True).pruned_count == 1
    found = {name.removeprefix(f"{root}/refs/") for name in filesystem.find(f"{root}/refs")}
    assert found == {"a.nc.json", "2024/b.nc.json", "_h5zarr/catalog.parquet", "_h5zarr/last_run"}


def test_what_is_in_an_archive_is_found_through_a_chain(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    archive, out = tmp_path / "all files.zip", tmp_path / "refs"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("a.nc", "2024/b.nc", "c.txt"):
            made.writestr(name, SMALL)
    pattern = f"zip://**/*.nc::file://{archive}"
    found = list_sources(pattern)
    assert sorted(one.url for one in found.sources) == [
        f"zip://{name}::file://{archive}" for name in ("2024/b.nc", "a.nc")
    ]
    report = h5zarr.index(pattern, out, executor=threads)
    assert [row.reason for row in report.failed] == []
    assert {row.output for row in rows_of(out).values()} == {"a.nc.json", "2024/b.nc.json"}
    assert h5zarr.index(pattern, out, executor=threads).unchanged_count == 2


def test_a_directory_of_a_web_server_is_listed(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    page = b'<a href="/d/a.nc">a</a> <a href="b%20c.nc">b</a> <a href="notes.txt">n</a> <a href="../up.nc">up</a>'
    files = {"/d/": page, "/d": page, "/d/a.nc": SMALL, "/d/b c.nc": SMALL, "/d/notes.txt": b"no", "/up.nc": SMALL}
    with RangeServer(files) as server:
        server.headers = {"Content-Type": "text/html"}
        pattern = server.url("/d/*.nc")
        assert sorted(one.url for one in list_sources(pattern).sources) == [
            server.url("/d/a.nc"),
            server.url("/d/b%20c.nc"),
        ]
        report = h5zarr.index(pattern, tmp_path / "refs", executor=threads)
        assert [row.reason for row in report.failed] == []
        assert report.indexed_count == 2
        assert h5zarr.index(pattern, tmp_path / "refs", executor=threads).unchanged_count == 2


def test_a_protocol_or_a_server_that_is_not_there_is_an_error() -> None:
    for pattern in ("nonsense://bucket/*.nc", "http://127.0.0.1:1/*.nc"):
        with pytest.raises(SourceError) as caught:
            list_sources(pattern)
        assert caught.value.remedy


def test_a_list_is_asked_for_the_states_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"123")
    with RangeServer({"/b.nc": b"1234"}) as server:
        names = [str(tmp_path / "a.nc"), server.url("/b.nc"), server.url("/none.nc"), str(tmp_path / "none.nc")]
        found = list_named([*names, names[0]], "my list")
    assert [one.url for one in found.sources] == names
    assert [one.identity and one.identity.nbytes for one in found.sources] == [3, 4, None, None]
    assert found.sources[0].path == str(tmp_path / "a.nc").lstrip("/")
    assert found.sources[1].path.endswith("/b.nc")


def test_a_list_that_is_left_asks_for_nothing_more() -> None:
    with RangeServer({"/a.nc": b"1"}) as server:
        list_named([server.url("/a.nc")], "my list", is_stopped=lambda: True)
        assert server.counts.heads == 0


def test_lines_of_a_list_are_names_unless_they_are_empty_or_remarks() -> None:
    assert read_names([" a.nc\n", "\n", "# all of them\n", "s3://b/c#1.nc\r\n", "  "]) == ["a.nc", "s3://b/c#1.nc"]
