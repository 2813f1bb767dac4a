"""The effects of the options that only the command line has: output, and lists of files."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np

import h5zarr
from tests.options.bench import HAVE_OUTPUT, Bench
from tests.options.files import make_file


def _places(bench: Bench, command: str) -> list[Path]:
    """Return the arguments of a command that succeeds."""
    path, refs = make_file(bench.folder / "file.h5"), bench.folder / "refs.json"
    if command in ("convert", "verify", "validate"):
        h5zarr.translate(path, refs)
        path = refs
    if command == "status":
        h5zarr.index([path], bench.index)
        return [bench.index]
    made = [path, *([bench.index if command == "index" else bench.out] if command in HAVE_OUTPUT else [])]
    return [*made, Path("--along=run")] if command == "combine" else made


def report(bench: Bench, command: str) -> None:
    """A report is written as JSON."""
    place = bench.folder / "told.json"
    assert bench.prompt(command, *_places(bench, command), is_told=False, report=place).code == 0
    assert "seconds" in json.loads(place.read_text())


def overwrite(bench: Bench, command: str) -> None:
    """A report replaces a file that is not a report."""
    place, places = bench.folder / "told.json", _places(bench, command)
    place.write_text("mine")
    assert bench.prompt(command, *places, is_told=False, report=place).code == 2
    assert place.read_text() == "mine"
    assert bench.prompt(command, *places, is_told=False, report=place, overwrite=True).code == 0
    assert json.loads(place.read_text())["h5zarr_report"] == command


def quiet(bench: Bench, command: str) -> None:
    """Nothing is printed by a command that succeeds."""
    places = _places(bench, command)
    assert bench.prompt(command, *places, is_told=False).shown
    ran = bench.prompt(command, *places, is_told=False, quiet=True)
    assert (ran.code, ran.shown) == (0, "")


def in_json(bench: Bench, command: str) -> None:
    """What is printed is JSON."""
    ran = bench.prompt(command, *_places(bench, command), is_told=False, json=True)
    assert ran.code == 0
    assert isinstance(json.loads(ran.shown), dict)


def files_from(bench: Bench, command: str) -> None:
    """The files of a list are read."""
    paths = [make_file(bench.folder / name) for name in ("a.h5", "b.h5")]
    (bench.folder / "list.txt").write_text("# two files\n" + "\n".join(map(str, paths)))
    out = {"index": [bench.index], "combine": [bench.out, "--along=run"]}.get(command, [])
    told = bench.prompt(command, *out, files_from=bench.folder / "list.txt").told
    found = told.get("files", told.get("pieces"))
    assert (told["indexed"] if command == "index" else len(found)) == 2


def prune(bench: Bench, command: str) -> None:
    """Files that have vanished are removed."""
    (bench.folder / "data").mkdir()
    paths = [make_file(bench.folder / "data" / name) for name in ("a.h5", "b.h5")]
    pattern = str(bench.folder / "data" / "*.h5")
    if command == "combine":
        assert bench.prompt(command, pattern, bench.out, along="run").code == 0
        paths[1].unlink()
        assert len(bench.prompt(command, update=bench.out).told["vanished"]) == 1
        assert len(bench.prompt(command, update=bench.out, prune=True).told["removed"]) == 1
        return
    bench.prompt(command, pattern, bench.index)
    paths[1].unlink()
    assert bench.prompt(command, pattern, bench.index).told["pruned"] == 0
    assert bench.prompt(command, pattern, bench.index, prune=True).told["pruned"] == 1


def along_in_index(bench: Bench, command: str) -> None:
    """Cubes are joined along this dimension."""
    path = make_file(bench.folder / "file.h5")
    assert bench.prompt(command, path, bench.index, cube=bench.out, along="run").code == 0
    assert list(json.loads(bench.out.read_text())["h5zarr"]["cube"]["axes"]) == ["/run"]


def all_in_inspect(bench: Bench, command: str) -> None:
    """A long value is shown in full."""
    path = bench.folder / "file.h5"
    with h5py.File(path, "w") as file:
        file.attrs["history"] = "x" * 5000
    shown = [bench.prompt(command, path, is_told=False, **chosen).shown for chosen in ({}, {"all": True})]
    assert ["x" * 5000 in "".join(one.split()) for one in shown] == [False, True]


def all_in_check(bench: Bench, command: str) -> None:
    """The variables of each of several files are shown."""
    paths = [bench.folder / name for name in ("a.h5", "b.h5")]
    for path in paths:
        with h5py.File(path, "w") as file:
            file["values"] = np.arange(3)
    shown = [bench.prompt(command, *paths, is_told=False, **chosen).shown for chosen in ({}, {"all": True})]
    assert shown[1].count("values") >= shown[0].count("values") + 2


def all_in_status(bench: Bench, command: str) -> None:
    """Every file that failed is shown."""
    paths = [bench.folder / f"{number}.h5" for number in range(30)]
    for path in paths:
        path.write_bytes(b"<html>")
    h5zarr.index(paths, bench.index)
    shown = [bench.prompt(command, bench.index, is_told=False, **chosen).shown for chosen in ({}, {"all": True})]
    assert [sum(f"  {path}\n" in one for path in paths) for one in shown] == [5, 30]
    assert ["and 25 more" in one for one in shown] == [True, False]
    assert ["--all shows everything." in one for one in shown] == [True, False]


def _archive(bench: Bench) -> Path:
    """Write a configuration file with two collections."""
    for name in ("a", "b"):
        (bench.folder / name).mkdir()
        make_file(bench.folder / name / "file.h5")
    tables = [f'[collection.{name}]\nsources = "{name}"\nout = "refs/{name}"\n' for name in ("a", "b")]
    (bench.folder / "archive.toml").write_text("".join(tables))
    return bench.folder / "archive.toml"


def config(bench: Bench, command: str) -> None:
    """All collections of the file are used."""
    path = _archive(bench)
    assert bench.prompt("index", is_told=False, config=path).code == 0
    shown = bench.prompt(command, is_told=False, config=path).shown
    assert shown.count("1 source unchanged" if command == "index" else "1 indexed, ") == 2


def collection(bench: Bench, command: str) -> None:
    """Only one collection of the file is used."""
    path = _archive(bench)
    assert bench.prompt("index", is_told=False, config=path).code == 0
    shown = bench.prompt(command, is_told=False, config=path, collection="b").shown
    assert shown.count("1 source unchanged" if command == "index" else "1 indexed, ") == 1
