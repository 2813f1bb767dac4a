"""`h5zarr convert`: exit codes, what is said where, and what is written; and what other commands say to references."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from h5zarr.cli import main
from h5zarr.cli.convert import fill_value
from h5zarr.commands.translate.translate import translate
from tests.made_files import make_ocean, make_plain

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def refs(tmp_path: Path) -> str:
    translate(make_plain(tmp_path / "plain.h5"), tmp_path / "refs.json")
    return str(tmp_path / "refs.json")


@pytest.fixture
def sparse(tmp_path: Path) -> str:
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": None, "order": "C"}
    entries = {"v/.zarray": {**array, "filters": None, "compressor": None}, "v/0": ["s3://bucket/raw", 0, 8]}
    (tmp_path / "sparse.json").write_text(json.dumps(entries))
    return str(tmp_path / "sparse.json")


def fill_of(path: Path) -> object:
    return json.loads(json.loads(path.read_text())["refs"]["v/zarr.json"])["fill_value"]


def test_all_done_gives_zero_and_one_line(refs: str, tmp_path: Path, capsys: Captured) -> None:
    assert main(["convert", refs, str(tmp_path / "out.json.gz")]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("1 array, 1 chunk referenced, 0 bytes inlined in 0 arrays, 0 problems · ")


def test_a_repository_gets_a_branch_and_a_message_and_is_read_at_it(refs: str, tmp_path: Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    place = f"icechunk+file://{tmp_path}/repository"
    assert main(["convert", refs, place, "--branch", "trial", "--message", "as of May"]) == 0
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(tmp_path / "repository")))
    assert next(iter(repository.ancestry(branch="trial"))).message == "as of May"
    assert main(["convert", place, str(tmp_path / "back.json"), "--at", "trial"]) == 0
    assert (tmp_path / "back.json").read_bytes() == Path(refs).read_bytes()
    assert main(["convert", place, str(tmp_path / "none.json"), "--at", "other"]) == 2


def test_problems_give_one_and_are_in_the_report(tmp_path: Path, capsys: Captured) -> None:
    translate(make_ocean(tmp_path / "ocean.h5"), tmp_path / "refs.json")
    out, report = str(tmp_path / "v2.json"), tmp_path / "report.json"
    arguments = ["convert", str(tmp_path / "refs.json"), out, "--zarr-format", "2", "--report", str(report)]
    assert main(arguments) == 1
    assert "/ragged: Zarr has no type" in capsys.readouterr().err
    told = json.loads(report.read_text())
    assert (told["arrays"], [problem["path"] for problem in told["problems"]]) == (2, ["/ragged"])


def test_references_are_written_to_standard_output(refs: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["convert", refs, "-", "--quiet"]) == 0
    assert capfdbinary.readouterr().out == Path(refs).read_bytes()


def test_nothing_is_written_onto_what_is_read(refs: str, tmp_path: Path, capsys: Captured) -> None:
    before = Path(refs).read_bytes()
    assert main(["convert", refs, refs]) == 2
    assert "the output would replace the input file" in capsys.readouterr().err
    assert main(["convert", refs, str(tmp_path / "b.json"), "--report", refs]) == 2
    assert Path(refs).read_bytes() == before


def test_a_fill_value_is_wanted_and_taken(sparse: str, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out.json"
    assert main(["convert", sparse, str(out)]) == 2
    error = capsys.readouterr().err
    assert "/v: fill_value is null" in error
    assert "--fill-value" in error
    assert not out.exists()
    assert main(["convert", sparse, str(out), "--fill-value", "7"]) == 0
    assert fill_of(out) == 7
    assert main(["convert", sparse, str(out), "--fill-value", "7", "--fill-value", "/v=-9"]) == 0
    assert fill_of(out) == -9


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "expected"), [("5\n", 5), ("\n", 0)])
def test_a_fill_value_is_asked_for_at_a_terminal(
    sparse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, expected: int
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["convert", sparse, str(tmp_path / "out.json")]) == 0
    assert "/v, int32: fill_value is null" in screen.getvalue()
    assert "Fill value for them? [0] " in screen.getvalue()
    assert fill_of(tmp_path / "out.json") == expected


def test_who_leaves_the_terminal_gets_nothing(sparse: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["convert", sparse, str(tmp_path / "out.json")]) == 2
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", ("**", 0)),
        ("/g/v=-9.5", ("/g/v", -9.5)),
        ("v=NaN", ("v", "NaN")),
        ('v="NaN"', ("v", "NaN")),
        ("a=b=1", ("a=b", 1)),
        ("v=QUI=", ("v", "QUI=")),
        ("QQ==", ("**", "QQ==")),
        ("z=[1, 2]", ("z", [1, 2])),
    ],
)
def test_a_fill_value_is_json_or_text_behind_a_pattern(text: str, expected: object) -> None:
    assert fill_value(text) == expected


@pytest.mark.parametrize("text", ["", "=1"])
def test_an_invalid_fill_value_is_refused(
    refs: str, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", refs, str(tmp_path / "out.json"), "--fill-value", text]) == 2
    assert "expected VALUE or PATTERN=VALUE" in capsys.readouterr().err


# --- references where a file is expected


@pytest.mark.parametrize("name", ["refs.json", "refs.json.gz", "refs.json.zst", "refs.parquet", "v2.json"])
def test_references_in_place_of_a_file_are_reported(name: str, tmp_path: Path, capsys: Captured) -> None:
    translate(make_plain(tmp_path / "plain.h5"), tmp_path / name, zarr_format=2 if "2" in name else 3)
    assert main(["translate", str(tmp_path / name), str(tmp_path / "out.json")]) == 2
    error = capsys.readouterr().err
    assert "these are references, not the file that they refer to" in error
    assert "h5zarr convert" in error


def test_a_repository_in_place_of_a_file_is_reported(tmp_path: Path, capsys: Captured) -> None:
    assert main(["translate", f"icechunk+file://{tmp_path}", str(tmp_path / "out.json")]) == 2
    assert "these are references" in capsys.readouterr().err


def test_an_unknown_file_gives_the_general_error(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert main(["inspect", str(tmp_path / "notes.txt")]) == 2
    assert "references" not in capsys.readouterr().err
