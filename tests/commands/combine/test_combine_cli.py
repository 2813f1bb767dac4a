"""The command: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.cli import main
from tests.commands.combine.files import concatenated, open_combined, write_days

Captured = pytest.CaptureFixture[str]


def write_archive(folder: Path, count: int = 3) -> list[Path]:
    return [
        write_days(folder / f"{n}.nc", range(3 * n, 3 * n + 3), chunksizes=(1, 600), zlib=True) for n in range(count)
    ]


def test_files_become_one_dataset(tmp_path: Path, capsys: Captured) -> None:
    paths = write_archive(tmp_path)
    assert main(["combine", *map(str, paths), str(tmp_path / "cube.json")]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "dimension time: 9 in 3 parts" in said.err
    assert "3 files joined · 3 arrays, 9 chunks referenced" in said.err
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "cube.json", engine="h5zarr").load(), concatenated(paths))


def test_a_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path, capsys: Captured) -> None:
    paths = write_archive(tmp_path, 2)
    write_days(tmp_path / "9.nc", range(30, 33), chunksizes=(1, 600), zlib=True)
    before = sorted(tmp_path.iterdir())
    for out in ([], [str(tmp_path / "cube.json")]):
        assert main(["combine", *map(str, paths), str(tmp_path / "9.nc"), *out, "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert f"{tmp_path / '1.nc'}: time 3 to 5" in said
        assert "1 gap: 2000-01-06 to 2000-01-31" in said
        assert "/v joined" in said
        assert "/x constant" in said
        assert "3 files can be joined" in said
    assert sorted(tmp_path.iterdir()) == before


def test_a_refusal_lists_every_variable_that_cannot_be_joined(tmp_path: Path, capsys: Captured) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", [n], x0=n, names=("v", "w"), attributes={"units": "Km"[n]}) for n in range(2)
    ]
    report = tmp_path / "report.json"
    assert main(["combine", *map(str, paths), str(tmp_path / "cube.json"), "--report", str(report)]) == 2
    said = capsys.readouterr().err
    for path in ("/x", "/v", "/w"):
        assert f"{path} refused: " in said
    assert "--constant first" in said
    assert said.endswith("h5zarr: nothing was written: 3 variables refused\n")
    assert not (tmp_path / "cube.json").exists()
    told = json.loads(report.read_text())
    assert [one["path"] for one in told["variables"] if one["how"] == "refused"] == ["/x", "/v", "/w"]


def test_a_broken_file_stops_the_job_or_is_left_out(tmp_path: Path, capsys: Captured) -> None:
    paths = write_archive(tmp_path)
    paths[1].write_bytes(b"<html>nothing here</html>" * 100)
    words = ["combine", *map(str, paths), str(tmp_path / "cube.json")]
    assert main(words) == 2
    assert "1.nc" in capsys.readouterr().err
    assert main([*words, "--skip-broken"]) == 1
    assert "1.nc is left out: " in capsys.readouterr().err
    with pytest.warns(h5zarr.ProblemWarning, match=r"1\.nc is left out: "):
        opened = xr.open_dataset(tmp_path / "cube.json", engine="h5zarr").load()
    xr.testing.assert_equal(opened, concatenated([paths[0], paths[2]]))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["only.nc"], "give at least one source, and then OUT, such as cube.json"),
        (["a.nc", "out.json", "--files-from", "list.txt"], "give either sources or --files-from FILE, and then OUT"),
        (["a.nc", "b.nc"], "the name of an output ends in"),
        (["--files-from", "none.txt", "out.json"], "none.txt: No such file or directory"),
        (
            ["a.nc", "out.json", "--on-duplicate", "oldest"],
            "'oldest' is not one of refuse, first, last, newest: did you mean last?",
        ),
        (["none.nc", "out.json"], "none.nc: there is no such file"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    words: list[str], what: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_archive(tmp_path, 1)[0].rename(tmp_path / "a.nc")
    assert main(["combine", *words]) == 2
    assert what in capsys.readouterr().err


def test_an_index_is_joined_without_reading_its_files_again(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "data").mkdir()
    paths = write_archive(tmp_path / "data")
    h5zarr.index(paths, tmp_path / "refs", workers=1)
    expected = concatenated(paths)
    for path in paths:
        path.rename(path.with_suffix(".away"))
    cube = h5zarr.combine(tmp_path / "refs", tmp_path / "cube.json")
    assert cube.hierarchy.urls == tuple(map(str, paths))
    for path in paths:
        path.with_suffix(".away").rename(path)
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "cube.json", engine="h5zarr").load(), expected)


def test_a_file_that_failed_in_the_index_stops_the_job_or_is_left_out(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "data").mkdir()
    paths = write_archive(tmp_path / "data")
    paths[1].write_bytes(b"<html>")
    h5zarr.index(paths, tmp_path / "refs", workers=1)
    with pytest.raises(h5zarr.H5ZarrError, match=r"1\.nc: it is failed in the index"):
        h5zarr.combine(tmp_path / "refs")
    cube = h5zarr.combine(tmp_path / "refs", skip_broken=True)
    assert cube.axes[0].length == 6
    assert "1.nc is left out: it is failed in the index" in cube.problems[0].message


@pytest.mark.parametrize("how", ["first", "drop-conflicts", "strict"])
def test_attributes_that_differ(how: str, tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / f"{n}.nc", [n], attributes={"title": f"day {n}", "source": "model"}) for n in range(2)
    ]
    with netCDF4.Dataset(paths[1], "a") as file:
        file["v"].comment = "new"
    if how == "strict":
        with pytest.raises(h5zarr.NotJoinable, match=r"/v: the attribute title differs between .*0\.nc and .*1\.nc"):
            h5zarr.combine(paths, attributes=how)
        return
    expected = {"first": {"title": "day 0", "source": "model"}, "drop-conflicts": {"source": "model", "comment": "new"}}
    cube = h5zarr.combine(paths[::-1], attributes=how)
    assert cube.arrays()["/v"].attributes == expected[how]
    assert ("attributes that differ are left out: title" in str(cube)) == (how == "drop-conflicts")


def test_times_that_are_packed_and_counted_in_different_units_are_joined(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        path = write_days(tmp_path / f"{number}.nc", [number])
        with netCDF4.Dataset(path, "a") as file:
            made = file.createVariable("when", "i2", ("time", "x"))
            made.units, made.scale_factor = f"seconds since 200{number}-01-01", 0.5
            made[:] = np.arange(600)[None]
        paths.append(path)
    xr.testing.assert_identical(open_combined(paths, tmp_path / "cube.json"), concatenated(paths))
