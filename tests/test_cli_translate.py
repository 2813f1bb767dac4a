"""`h5zarr translate`: exit codes, what is said where, and what is written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zstandard

from h5zarr.cli import main
from tests.collections_of_files import PROJECT
from tests.made_files import make_ocean, make_plain

SECRET = "hunter2"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def ocean(tmp_path: Path) -> str:
    return str(make_ocean(tmp_path / "ocean.h5"))


@pytest.fixture
def plain(tmp_path: Path) -> str:
    return str(make_plain(tmp_path / "plain.h5"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "refs.json"


def arrays(path: Path) -> set[str]:
    entries: dict[str, Any] = json.loads(path.read_text())["refs"]
    return {key.removesuffix("/zarr.json") for key, text in entries.items() if '"node_type":"array"' in text[:60]}


def test_all_done_gives_zero_and_one_line(plain: str, out: Path, capsys: Captured) -> None:
    assert main(["translate", plain, str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("1 array, 1 chunk referenced, 0 bytes inlined in 0 arrays, 0 problems · ")
    assert arrays(out) == {"x"}


def test_problems_give_one_and_are_named_with_path_and_remedy(ocean: str, out: Path, capsys: Captured) -> None:
    assert main(["translate", ocean, str(out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{ocean}:/ragged: Zarr has no type for variable-length sequences"
    assert any(line.startswith(f"warning: {ocean}:/grid/temp: _FillValue nan") for line in lines)
    assert ", 1 problem · " in lines[-1]
    assert arrays(out) == {"time", "grid/temp"}


def test_quiet_says_nothing_but_problems(ocean: str, plain: str, out: Path, capsys: Captured) -> None:
    assert main(["translate", plain, str(out), "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["translate", ocean, str(out), "--quiet"]) == 1
    assert "warning" not in (told := capsys.readouterr().err)
    assert "/ragged" in told


def test_strict_gives_two_and_writes_nothing(ocean: str, out: Path, capsys: Captured) -> None:
    assert main(["translate", ocean, str(out), "--strict"]) == 2
    assert not out.exists()
    told = capsys.readouterr().err
    assert "/ragged: Zarr has no type" in told
    assert "nothing was written" in told


def test_include_exclude_and_group_choose(ocean: str, out: Path) -> None:
    assert main(["translate", ocean, str(out), "--include", "temp"]) == 0
    assert arrays(out) == {"time", "grid/temp"}
    assert main(["translate", ocean, str(out), "--exclude", "ragged", "--exclude", "/grid"]) == 0
    assert arrays(out) == {"time"}
    assert main(["translate", ocean, str(out), "--group", "grid"]) == 0
    assert arrays(out) == {"temp"}


@pytest.mark.parametrize("choice", [["--include", "salt"], ["--group", "/none"]])
def test_choosing_nothing_gives_two(choice: list[str], ocean: str, out: Path, capsys: Captured) -> None:
    assert main(["translate", ocean, str(out), *choice]) == 2
    assert capsys.readouterr().err.startswith(f"h5zarr: {ocean}: ")
    assert not out.exists()


def test_the_report_is_json(ocean: str, out: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["translate", ocean, str(out), "--report", str(report)]) == 1
    told = json.loads(report.read_text())
    assert told["source"] == ocean
    assert (told["arrays"], told["chunks"]) == (2, 4)
    assert [problem["path"] for problem in told["problems"]] == ["/ragged"]
    assert [warning["kind"] for warning in told["warnings"]] == ["fill value"]


def test_a_job_that_fails_leaves_a_report_too(tmp_path: Path, out: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["translate", str(tmp_path / "none.h5"), str(out), "--report", str(report)]) == 2
    assert json.loads(report.read_text())["source"].endswith("none.h5")


def test_the_target_url_is_what_references_refer_to(plain: str, out: Path) -> None:
    assert main(["translate", plain, str(out), "--target-url", "s3://bucket/plain.h5"]) == 0
    assert json.loads(out.read_text())["refs"]["x/c/0"][0] == "s3://bucket/plain.h5"


def test_inline_bytes_are_obeyed(ocean: str, out: Path) -> None:
    for limit, is_inline in (("0", False), ("32", True)):
        main(["translate", ocean, str(out), "--inline-bytes", limit])
        assert isinstance(json.loads(out.read_text())["refs"]["time/c/0"], str) is is_inline


def test_zarr_format_2_has_its_own_keys(plain: str, out: Path) -> None:
    assert main(["translate", plain, str(out), "--zarr-format", "2"]) == 0
    assert {".zgroup", ".zmetadata", "x/.zarray", "x/0"} <= json.loads(out.read_text())["refs"].keys()


def test_standard_output_has_the_references_and_nothing_else(plain: str) -> None:
    command = [sys.executable, "-m", "h5zarr", "translate", plain, "-"]
    done = subprocess.run(command, capture_output=True, cwd=PROJECT, check=True)
    assert "x/c/0" in json.loads(done.stdout)["refs"]
    assert b"1 array" in done.stderr


def test_the_suffix_chooses_the_compression(plain: str, out: Path, tmp_path: Path) -> None:
    main(["translate", plain, str(out)])
    for suffix, expand in ((".gz", gzip.decompress), (".zst", lambda content: zstandard.decompress(content, 1 << 20))):
        packed = tmp_path / f"refs.json{suffix}"
        assert main(["translate", plain, str(packed)]) == 0
        assert expand(packed.read_bytes()) == out.read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.h5"],
        ["x.h5", "y.json", "--inline-bytes", "-1"],
        ["x.h5", "y.json", "--inline-bytes", "many"],
        ["x.h5", "y.json", "--zarr-format", "4"],
        ["x.h5", "y.json", "--storage-options", "novalue"],
        ["x.h5", "y.json", "--fast"],
    ],
)
def test_wrong_usage_gives_two(arguments: list[str], capsys: Captured) -> None:
    assert main(["translate", *arguments]) == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"CDF\1" + bytes(8), ""),
        (b"a text\n" * 100, ""),
    ],
)
def test_unreadable_input_is_reported_without_a_traceback(
    content: bytes | None, words: str, tmp_path: Path, out: Path, capsys: Captured
) -> None:
    path = tmp_path / "input.nc"
    if content is not None:
        path.write_bytes(content)
    assert main(["translate", str(path), str(out)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"h5zarr: {path}: ")
    assert words in told
    assert "Traceback" not in told
    assert not out.exists()


def test_a_directory_is_neither_read_nor_written(plain: str, tmp_path: Path, out: Path, capsys: Captured) -> None:
    assert main(["translate", str(tmp_path), str(out)]) == 2
    assert main(["translate", plain, str(tmp_path)]) == 2
    assert "directory" in capsys.readouterr().err
    assert main(["translate", plain, str(tmp_path / "none" / "refs.json")]) == 2
    assert "its directory does not exist" in capsys.readouterr().err


def test_the_source_is_not_replaced(plain: str, capsys: Captured) -> None:
    before = Path(plain).read_bytes()
    assert main(["translate", plain, plain]) == 2
    assert Path(plain).read_bytes() == before


def test_secrets_reach_no_output(plain: str, tmp_path: Path, out: Path, capsys: Captured) -> None:
    memory = fsspec.filesystem("memory")
    name = f"/plain.h5?X-Amz-Signature={SECRET}"
    memory.pipe_file(name, Path(plain).read_bytes())
    report = tmp_path / "report.json"
    arguments = ["--report", str(report), "--storage-options", f"token={SECRET}"]
    try:
        assert main(["translate", f"memory:/{name}", str(out), *arguments]) == 0
        assert main(["translate", f"memory:/{name}x", str(tmp_path / "other.json"), *arguments]) == 2
    finally:
        memory.store.clear()
    captured = capsys.readouterr()
    assert "secret" in captured.err
    for text in (captured.out, captured.err, out.read_text(), report.read_text()):
        assert SECRET not in text
