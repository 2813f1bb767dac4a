"""What an update does with files that are new, have changed, vanished, or do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.errors import ArgumentError, NotJoinable, OutputChanged, SourceGone
from tests.commands.combine.files import concatenated, write_days
from tests.commands.combine.test_combine import pack
from tests.commands.index.jobs import PROJECT, environment

HOW: dict[str, Any] = {"chunksizes": (5, 600), "zlib": True}


def write_month(folder: Path, number: int, **how: Any) -> Path:
    return write_days(folder / f"{number}.nc", range(30 * number, 30 * number + 30), **{**HOW, **how})


def make(folder: Path, count: int = 2, **how: Any) -> Path:
    for number in range(count):
        write_month(folder, number)
    h5zarr.combine(str(folder / "*.nc"), folder / "cube.json", **how)
    return folder / "cube.json"


def open_cube(out: Any) -> xr.Dataset:
    with xr.open_dataset(out, engine="h5zarr") as opened:
        return opened.load()


def test_a_cube_remembers_its_sources_and_options(tmp_path: Path) -> None:
    out = make(tmp_path, on_duplicate="newest", exclude=["nothing"])
    cube = json.loads(out.read_text())["h5zarr"]["cube"]
    assert cube["recipe"] == {
        "along": ["time"],
        "sources": [str(tmp_path / "*.nc")],
        "on_duplicate": "newest",
        "exclude": ["nothing"],
    }


def test_nothing_is_written_if_nothing_has_changed(tmp_path: Path) -> None:
    out = make(tmp_path)
    before = out.stat().st_mtime_ns
    done = h5zarr.update(out)
    assert (done.has_changed, done.is_written, done.cube) == (False, False, None)
    assert out.stat().st_mtime_ns == before
    assert str(done).startswith(f"{out}: up to date, 2 files")


def test_only_new_and_changed_files_are_read(tmp_path: Path) -> None:
    out = make(tmp_path, 3)
    write_month(tmp_path, 2, attributes={"revision": 2})
    write_month(tmp_path, 3)
    seen: list[str] = []
    done = h5zarr.update(out, on_file=lambda name, count: seen.append(Path(name).name))
    assert sorted(seen) == ["2.nc", "3.nc"]
    assert [Path(name).name for name in done.added + done.replaced] == ["3.nc", "2.nc"]
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / f"{n}.nc" for n in range(4)]))


def test_a_late_file_is_inserted(tmp_path: Path) -> None:
    for number in (0, 2):
        write_month(tmp_path, number)
    h5zarr.combine(str(tmp_path / "*.nc"), tmp_path / "cube.json")
    write_month(tmp_path, 1)
    h5zarr.update(tmp_path / "cube.json")
    xr.testing.assert_identical(
        open_cube(tmp_path / "cube.json"), concatenated([tmp_path / f"{n}.nc" for n in range(3)])
    )


def test_a_file_that_vanished_stays_unless_it_is_pruned(tmp_path: Path) -> None:
    out = make(tmp_path, 3)
    (tmp_path / "0.nc").unlink()
    done = h5zarr.update(out)
    assert [Path(name).name for name in done.vanished] == ["0.nc"]
    assert "vanished, and still in the cube unless prune=True" in str(done)
    assert len(json.loads(out.read_text())["h5zarr"]["cube"]["pieces"]) == 3
    done = h5zarr.update(out, prune=True)
    assert [Path(name).name for name in done.removed] == ["0.nc"]
    # Attributes and constants now come from another file.
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / "1.nc", tmp_path / "2.nc"]))
    assert "0.nc" not in out.read_text()


def test_files_that_are_named_do_not_make_others_vanish(tmp_path: Path) -> None:
    out = make(tmp_path, 2)
    new = write_month(tmp_path, 2)
    (tmp_path / "0.nc").rename(tmp_path / "0.hidden")
    done = h5zarr.update(out, [new], prune=True)
    assert ([Path(name).name for name in done.added], done.removed, done.vanished) == (["2.nc"], (), ())
    done = h5zarr.update(out, tmp_path / "0.nc", prune=True)  # an event that says it was deleted
    assert [Path(name).name for name in done.removed] == ["0.nc"]


def test_a_directory_and_a_list_of_patterns_are_sources(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    write_month(tmp_path / "a", 0)
    h5zarr.combine([tmp_path / "a"], tmp_path / "cube.json", along="time")
    write_month(tmp_path / "b", 1)
    done = h5zarr.update(tmp_path / "cube.json", [tmp_path / "a", str(tmp_path / "b" / "*.nc")])
    assert len(done.added) == 1
    (tmp_path / "a" / "0.nc").unlink()
    assert h5zarr.update(tmp_path / "cube.json", str(tmp_path / "b" / "[0-9].nc"), prune=True).cube is None
    assert len(h5zarr.update(tmp_path / "cube.json", [tmp_path / "a"], prune=True).removed) == 1


def test_the_last_file_does_not_leave(tmp_path: Path) -> None:
    out = make(tmp_path, 1)
    (tmp_path / "0.nc").unlink()
    with pytest.raises(NotJoinable, match="no file would be left in the cube"):
        h5zarr.update(out, prune=True)


@pytest.mark.parametrize("kind", ["duplicate", "other grid", "broken", "new regime"])
def test_misfits_are_recorded_with_the_reason(kind: str, tmp_path: Path) -> None:
    out = make(tmp_path)
    odd = tmp_path / "odd.nc"
    match kind:
        case "duplicate":
            write_days(odd, [5], **HOW)
            expected = f"{tmp_path}/0.nc and {odd}: both have the same part of /v, at time 2000-01-06"
        case "other grid":
            write_days(odd, [70], x0=7, **HOW)
            expected = "its values"
        case "broken":
            odd.write_bytes((tmp_path / "0.nc").read_bytes()[:5000])
            expected = "truncated"
        case _:
            for number in range(2, 30):  # too many to be encoded again
                write_month(tmp_path, number, dtype="f8")
            odd = tmp_path / "2.nc"
            expected = "/v: it is stored differently, so the variable would consist of 2 parts"
    done = h5zarr.update(out)
    misfit = next(one for one in done.misfits if one.url == str(odd))
    assert expected in misfit.reason or expected == misfit.kind
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / "0.nc", tmp_path / "1.nc"]))
    again = h5zarr.update(out)
    assert (again.misfits, again.cube) == ((), None)
    assert str(odd) in [one.url for one in again.known_misfits]
    assert "left out before, and unchanged" in str(again)
    shown = h5zarr.inspect(out)
    assert f"{odd} is left out: " in str(shown)
    assert str(odd) in [one["url"] for one in shown.to_json()["cube"]["misfits"]]
    with pytest.raises(NotJoinable):
        h5zarr.update(out, retry=True, on_misfit="fail")
    if kind == "new regime":
        assert len(h5zarr.update(out, retry=True, on_misfit="new-regime").added) == 28
        xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / f"{n}.nc" for n in range(30)]))


def test_a_duplicate_takes_the_place_of_a_file_that_leaves(tmp_path: Path) -> None:
    out = make(tmp_path)
    write_days(tmp_path / "other.nc", range(30), attributes={"from": "other"}, **HOW)
    assert len(h5zarr.update(out).misfits) == 1
    (tmp_path / "0.nc").unlink()
    done = h5zarr.update(out, prune=True)
    assert [Path(name).name for name in done.added] == ["other.nc"]
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / "other.nc", tmp_path / "1.nc"]))


def test_the_newest_file_wins_if_the_cube_was_made_so(tmp_path: Path) -> None:
    import os

    out = make(tmp_path, on_duplicate="newest")
    newer = write_days(tmp_path / "newer.nc", range(10, 20), attributes={"from": "newer"}, **HOW)
    os.utime(newer, (2_000_000_000, 2_000_000_000))
    h5zarr.update(out)
    assert len(open_cube(out).time) == 60
    xr.testing.assert_equal(open_cube(out).isel(time=slice(10, 20)), concatenated([newer]))
    newer.unlink()
    h5zarr.update(out, prune=True)
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / "0.nc", tmp_path / "1.nc"]))


def test_files_with_their_own_packing_are_added_and_removed(tmp_path: Path) -> None:
    paths = [pack(tmp_path / f"{n}.nc", n, 0.25 / (n + 1), n) for n in range(4)]
    out = tmp_path / "cube.json"
    h5zarr.combine(paths[:2], out)
    h5zarr.update(out, str(tmp_path / "*.nc"))
    xr.testing.assert_identical(open_cube(out), concatenated(paths))
    paths[1].unlink()
    h5zarr.update(out, str(tmp_path / "*.nc"), prune=True)
    xr.testing.assert_identical(open_cube(out), concatenated([paths[0], *paths[2:]]))


def test_a_new_dimension_grows(tmp_path: Path) -> None:
    for member in range(3):
        data = xr.Dataset({"v": ("x", np.arange(600.0) + member)}, {"x": np.arange(600)})
        data.to_netcdf(tmp_path / f"run_{member:02}.nc")
    out = tmp_path / "cube.json"
    h5zarr.combine([tmp_path / "run_00.nc"], out, along=r"run=name:run_(\d+)")
    h5zarr.update(out, str(tmp_path / "*.nc"))
    found = open_cube(out)
    assert found.run.values.tolist() == [0, 1, 2]
    assert found.v.isel(x=0).values.tolist() == [0, 1, 2]


def test_tiles_are_added_and_replaced(tmp_path: Path) -> None:
    def tile(t: int, x: int, **how: Any) -> Path:
        days = range(3 * t, 3 * t + 3)
        return write_days(tmp_path / f"{t}{x}.nc", days, x0=600 * x, chunksizes=(3, 600), zlib=True, **how)

    out = tmp_path / "cube.json"
    h5zarr.combine([tile(0, 0), tile(0, 1), tile(1, 0)], out, along=["time", "x"])
    tile(1, 1)
    tile(0, 0, attributes={"revision": 2})
    h5zarr.update(out, str(tmp_path / "*.nc"))
    h5zarr.combine(str(tmp_path / "*.nc"), tmp_path / "whole.json", along=["time", "x"])
    xr.testing.assert_identical(open_cube(out), open_cube(tmp_path / "whole.json"))
    assert h5zarr.verify(out).is_right


def test_an_index_is_a_source_of_updates(tmp_path: Path) -> None:
    for number in range(2):
        write_month(tmp_path, number)
    h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", workers=1)
    out = tmp_path / "cube.json"
    h5zarr.combine(tmp_path / "refs", out, along="time")
    write_month(tmp_path, 2)
    write_month(tmp_path, 1, attributes={"revision": 2})
    h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", workers=1)
    done = h5zarr.update(out)
    assert (len(done.added), len(done.replaced)) == (1, 1)
    xr.testing.assert_identical(open_cube(out), concatenated([tmp_path / f"{n}.nc" for n in range(3)]))


def test_a_function_must_be_given_again(tmp_path: Path) -> None:
    for member in range(2):
        xr.Dataset({"v": ("x", np.arange(600.0))}).to_netcdf(tmp_path / f"{member}.nc")

    def along(name: str) -> int:
        return int(Path(name).stem)

    out = tmp_path / "cube.json"
    h5zarr.combine([tmp_path / "0.nc"], out, along={"run": along})
    with pytest.raises(ArgumentError, match="the coordinates of this cube come from a function, which is not recorded"):
        h5zarr.update(out, tmp_path / "1.nc")
    assert len(h5zarr.update(out, tmp_path / "1.nc", along={"run": along}).added) == 1


def test_what_is_no_cube_is_not_updated(tmp_path: Path) -> None:
    path = write_month(tmp_path, 0)
    h5zarr.translate(path, tmp_path / "one.json")
    with pytest.raises(ArgumentError, match="this is not a cube that can be updated"):
        h5zarr.update(tmp_path / "one.json")
    with pytest.raises(SourceGone):
        h5zarr.update(tmp_path / "none.json")
    out = make(tmp_path)
    with pytest.raises(ArgumentError, match="on_misfit is 'ignore', but must be one of"):
        h5zarr.update(out, on_misfit="ignore")
    with pytest.raises(ArgumentError, match="branch= and message= are for Icechunk"):
        h5zarr.update(out, branch="main")
    with pytest.raises(ArgumentError, match="this is a cube, and a cube is updated from files"):
        h5zarr.update(out, out)
    cube = json.loads(out.read_text())
    del cube["h5zarr"]["cube"]["recipe"]["sources"]
    out.write_text(json.dumps(cube))
    with pytest.raises(ArgumentError, match="it does not say from which sources it was made"):
        h5zarr.update(out)


def test_an_update_is_not_written_over_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If that happens again and again, the update gives up, and the cube is that of the others."""
    from h5zarr.commands.update import updating

    out = make(tmp_path)
    write_month(tmp_path, 2)
    write = updating.write_cube

    def touch(*arguments: Any, **how: Any) -> Any:
        out.write_text(out.read_text() + " ")
        return write(*arguments, **how)

    monkeypatch.setattr(updating, "write_cube", touch)
    with pytest.raises(OutputChanged, match="somebody else has written there in the meantime"):
        h5zarr.update(out)


def test_a_repository_keeps_the_history_of_its_updates(tmp_path: Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    out = f"icechunk+file://{tmp_path}/repository"
    write_month(tmp_path, 0)
    h5zarr.combine(str(tmp_path / "*.nc"), out, along="time")
    write_month(tmp_path, 1)
    h5zarr.update(out)
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(tmp_path / "repository")))
    messages = [one.message for one in repository.ancestry(branch="main")]
    assert f"added 1 file ({tmp_path}/1.nc)" in messages[0]
    before = list(repository.ancestry(branch="main"))[1].id
    with xr.open_dataset(out, engine="h5zarr", at=before) as opened:
        assert opened.sizes["time"] == 30


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "h5zarr", "combine", *map(str, arguments)]
    return subprocess.run(command, env=environment(), cwd=PROJECT, capture_output=True, text=True, check=False)


def test_the_command_updates_a_cube(tmp_path: Path) -> None:
    out = make(tmp_path)
    write_month(tmp_path, 2)
    (tmp_path / "bad.nc").write_text("nothing")
    planned = run("--update", out, "--dry-run")
    assert planned.returncode == 1
    assert "would be added: 1 file" in planned.stderr
    done = run("--update", out, "--report", "-")
    assert done.returncode == 1
    assert "is left out" in done.stderr
    report = json.loads(done.stdout)
    assert (report["files"], len(report["added"]), len(report["misfits"])) == (3, 1, 1)
    again = run("--update", out)
    assert (again.returncode, "up to date" in again.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("--update", "cube.json", "--along", "x"),
            "--along is recorded in the cube, so it is not given with --update",
        ),
        (("--update", "cube.json", "--strict"), "--strict does not go with --update"),
        (("a.nc", "b.json", "--prune"), "--prune goes with --update CUBE"),
        ((), "give at least one source, and then OUT, such as cube.json"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], expected: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert expected in done.stderr


@pytest.mark.parametrize("name", ["cube.json", "cube.parquet"])
def test_an_update_removes_what_killed_ones_left_behind_long_ago(name: str, tmp_path: Path) -> None:
    import os

    (tmp_path / "data").mkdir()
    write_month(tmp_path / "data", 0)
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), tmp_path / name, along="time")
    old, new = tmp_path / f".h5zarr-{'0' * 16}.tmp", tmp_path / f".h5zarr-{'1' * 16}.tmp"
    for one in (old, new):
        one.write_text("half")
    os.utime(old, (1, 1))
    write_month(tmp_path / "data", 1)
    h5zarr.update(tmp_path / name)
    assert (old.exists(), new.exists()) == (False, True)
