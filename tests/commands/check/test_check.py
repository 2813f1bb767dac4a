"""The whole check, and its command: sources, reports, exit codes."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.errors import SourceGone
from tests.collections_of_files import PROJECT, SAMPLES
from tests.commands.combine.files import write_days
from tests.made_files import make_ocean, make_plain
from tests.servers import RangeServer


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files that are alike, and one that cannot be read."""
    paths = [make_plain(tmp_path / f"{name}.h5") for name in "ab"]
    (tmp_path / "c.h5").write_bytes(b"<html>not found</html>")
    return [*paths, tmp_path / "c.h5"]


def test_a_pattern_and_a_directory_name_all_files_in_them(files: list[Path]) -> None:
    directory = files[0].parent
    for sources in (str(directory / "*.h5"), directory, [directory / "[abc].h5", files[0]]):
        report = h5zarr.check(sources)
        assert [file.source for file in report.files] == [str(path) for path in files[:2]]
        assert [one.source for one in report.unreadable] == [str(files[2])]


def test_what_a_relative_pattern_finds_is_relative(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files[0].parent)
    for sources in ("*.h5", "."):
        assert [file.source for file in h5zarr.check(sources).files] == ["a.h5", "b.h5"]


def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(files: list[Path]) -> None:
    report = h5zarr.check([files[0], "nowhere.h5", files[1], files[2]])
    assert [one.source for one in report.unreadable] == ["nowhere.h5", str(files[2])]
    assert all(one.remedy for one in report.unreadable)
    assert not report.is_virtualisable
    assert report.combining is not None
    assert report.combining.is_possible
    assert report.combining.count == 2


def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceGone, match="no file was found"):
        h5zarr.check(tmp_path / "*.nc")


def test_a_name_that_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    path = make_plain(tmp_path / "a[1]*.h5")
    (file,) = h5zarr.check(path).files
    assert file.source == str(path)


def test_files_are_reported_when_they_are_done(files: list[Path]) -> None:
    told: list[tuple[str, int]] = []
    h5zarr.check(files, on_file=lambda source, count: told.append((source, count)))
    assert sorted(told) == [(str(path), 3) for path in files]


def test_a_file_on_a_server_costs_what_was_asked_of_it(tmp_path: Path) -> None:
    path = make_ocean(tmp_path / "ocean.h5")
    with RangeServer({"/ocean.h5": path.read_bytes()}) as server:
        (far,) = h5zarr.check(server.url("/ocean.h5") + "?token=hush1234").files
    (near,) = h5zarr.check(path).files
    assert far.variables == near.variables
    assert far.metadata == near.metadata
    assert "hush1234" not in repr(far)
    assert "hush1234" not in json.dumps(far.to_json())


def test_one_file_is_not_compared_with_itself(tmp_path: Path) -> None:
    assert h5zarr.check(make_plain(tmp_path / "a.h5")).combining is None


# --- the command


def test_the_page_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    page = (PROJECT / "docs" / "check.md").read_text()
    shown = re.findall(r"^```sh\nh5zarr ([^\n]*)\n```\n\n```text\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert shown
    for command, expected in shown:
        assert main(command.split()) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize(("sample", "code"), [("ocean.nc", 0), ("types_sequences_latest.h5", 1), ("README.md", 2)])
def test_the_exit_code_tells(sample: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SAMPLES / sample)]) == code
    said = capsys.readouterr().out
    assert {0: "everything can be virtualised", 1: "5 variables cannot", 2: "1 file cannot be read"}[code] in said


def test_files_that_combine_refuses_are_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(write_days(tmp_path / f"{number}.nc", [number, 5])) for number in range(2)]
    assert main(["check", *names]) == 1
    said = capsys.readouterr().out
    assert "the files cannot be combined as they are" in said
    assert "h5zarr combine refuses them:" in said
    assert "both have the same part of /v, at time 2" in said
    assert "--on-duplicate first" in said
    assert main(["check", "--each", *names]) == 0
    assert "combining" not in capsys.readouterr().out


def test_files_that_only_combine_joins_are_not_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.h5"
    shutil.copy(SAMPLES / "layout_contiguous_latest.h5", other)
    names = [str(make_plain(tmp_path / "plain.h5")), str(other)]
    assert main(["check", *names]) == 0
    said = capsys.readouterr().out
    assert f"missing in {other}" in said
    assert "h5zarr combine joins them:" in said
    assert "  /x constant" in said
    assert said.endswith("everything can be virtualised · the files can be combined, but not by every tool\n")


def test_the_plan_is_in_the_report_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(write_days(tmp_path / f"{number}.nc", [number])) for number in range(2)]
    assert main(["check", "--json", *names]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["possible"]
    assert {one["path"]: one["how"] for one in plan["variables"]} == {
        "/time": "inlined",
        "/v": "joined",
        "/x": "constant",
    }
    assert [piece["at"] for piece in plan["pieces"]] == [{"/time": [[0, 0, 1]]}, {"/time": [[1, 0, 1]]}]
    write_days(Path(names[0]), [1])
    assert main(["check", "--json", *names]) == 1
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert not plan["possible"]
    assert "both have the same part of /v" in plan["message"]


def test_json_has_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(make_ocean(tmp_path / f"{name}.h5")) for name in "ab"]
    assert main(["check", names[0], "--along", "time", "--json", names[1]]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [file["source"] for file in report["files"]] == names
    assert report["combining"]["along"] == "time"
    assert report["combining"]["possible"]
    verdicts = {one["path"]: one["verdict"] for one in report["files"][0]["variables"]}
    assert verdicts == {"/time": "inlined", "/grid/temp": "referenced", "/ragged": "refused"}
    assert set(report["files"][0]["metadata"]) >= {"rounds", "requests", "bytes", "places", "is_paged"}


def test_names_can_come_from_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(make_plain(tmp_path / f"{name}.h5")) for name in "ab"]
    text = "# both\n\n" + "\n".join(names)
    (tmp_path / "list.txt").write_text(text)
    assert main(["check", "--files-from", str(tmp_path / "list.txt")]) == 0
    assert "combining 2 files" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["check", "--files-from", "-"]) == 0
    assert "combining 2 files" in capsys.readouterr().out
    assert main(["check", "--files-from", str(tmp_path / "none.txt")]) == 2
    assert "none.txt: No such file or directory" in capsys.readouterr().err


def test_nothing_to_check_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 2
    assert "--files-from" in capsys.readouterr().err


def test_what_is_left_out_is_not_checked(tmp_path: Path) -> None:
    path = str(make_ocean(tmp_path / "ocean.h5"))
    assert main(["check", path]) == 1
    assert main(["check", path, "--exclude", "ragged"]) == 0


def test_all_files_are_shown_in_full_only_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(make_ocean(tmp_path / f"{number}.h5")) for number in range(22)]
    main(["check", *names])
    said = capsys.readouterr().out
    assert "22 files" in said
    assert said.count("/ragged: Zarr has no type") == 1
    main(["check", "--all", *names])
    assert capsys.readouterr().out.count("/ragged: Zarr has no type") == 22


def test_a_name_cannot_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_plain(tmp_path / "a\x1b[2J.h5")
    main(["check", str(path)])
    assert "\x1b" not in capsys.readouterr().out
