"""Runs a command at the prompt or in Python, so that one test shows the effect of an option in both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import xarray
import zarr

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.index.workers import ExecutorWorkers
from h5zarr.kerchunk import NetCDF3ToZarr, SingleHdf5ToZarr

HAVE_REPORT = ("translate", "convert", "combine", "index", "verify", "validate")
HAVE_JSON = ("inspect", "check", "status")
HAVE_OUTPUT = ("translate", "convert", "combine", "index")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command did: its error or "", its report for machines, and what it printed."""

    error: str
    told: Mapping[str, Any] = field(default_factory=dict)
    code: int = 0
    shown: str = ""


@dataclass(frozen=True)
class Bench:
    """Runs commands in `folder`, `at_prompt` or in Python."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    at_prompt: bool = False
    hired: list[int | None] = field(default_factory=list)
    """How many processes each index asked for. Threads do their work, because processes take a second to start."""

    def __post_init__(self) -> None:
        self.monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", self._hire)

    def _hire(self, count: int | None) -> ExecutorWorkers:
        self.hired.append(count)
        return ExecutorWorkers(ThreadPoolExecutor(1), count)

    @property
    def out(self) -> Path:
        return self.folder / "out.json"

    @property
    def index(self) -> Path:
        return self.folder / "out"

    def run(self, command: str, source: Any, *out: Any, **options: Any) -> Ran:
        """Run a command on `source`. A command that writes does so to `out` or, if there is none, to `self.out`."""
        places = [source, *out]
        if command in HAVE_OUTPUT and not out:
            places.append(self.index if command == "index" else self.out)
        if command == "combine":
            options.setdefault("along", "run")
        if not self.at_prompt:
            return _call(command, *([[source], *places[1:]] if command == "index" else places), **options)
        if command == "index":
            (self.folder / "list.txt").write_text(f"{places.pop(0)}\n")
            options["files_from"] = self.folder / "list.txt"
        return self.prompt(command, *places, **options)

    def prompt(self, command: str, *places: Any, is_told: bool = True, **options: Any) -> Ran:
        """Run a command at the prompt. With `is_told`, its report for machines is asked for, too."""
        report, words = self.folder / "report.json", [command, *map(str, places), *_words(options)]
        if is_told:
            words += ["--report", str(report)] if command in HAVE_REPORT else ["--json"]
        self.capsys.readouterr()
        code = main(words)
        out, err = self.capsys.readouterr()
        told = {}
        if is_told and code < 2:
            told = json.loads(report.read_text() if command in HAVE_REPORT else out)
        failed = code == 2 or (command == "index" and code)
        return Ran(error=out + err if failed else "", told=told, code=code, shown=out + err)

    def write(self, command: str, source: Path | str, **options: Any) -> dict[str, Any]:
        """Return the references that a command writes for a file, with all metadata decoded."""
        if command == "translate_many":
            (outcome,) = h5zarr.translate_many([source], **options)
            assert outcome.translation is not None, outcome.error
            outcome.translation.write(self.out)
        else:
            assert not self.run(command, source, **options).error
        (path,) = self.index.rglob("*.json") if command == "index" else [self.out]
        return read_references(path)


def read_references(path: Path) -> dict[str, Any]:
    """Return the references in a JSON file, with all metadata decoded."""
    refs = json.loads(path.read_text())
    return {key: _decoded(key, value) for key, value in refs.get("refs", refs).items()}


def _decoded(key: str, value: Any) -> Any:
    is_metadata = key.rpartition("/")[2] in ("zarr.json", ".zarray", ".zattrs", ".zgroup")
    return json.loads(value) if is_metadata and isinstance(value, str) else value


def arrays_in(refs: Mapping[str, Any]) -> set[str]:
    """Return the paths of the arrays in decoded references of version 3."""
    arrays = (key for key, value in refs.items() if isinstance(value, dict) and value.get("node_type") == "array")
    return {key.removesuffix("/zarr.json") for key in arrays}


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield options as words of a command line."""
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        match value:
            case True:
                yield flag
            case list():
                yield from (word for one in value for word in (flag, str(one)))
            case dict():
                for key, one in value.items():
                    yield from (flag, f"{key}={one if isinstance(one, str) else json.dumps(one)}")
            case _:
                yield from (flag, str(value))


def _call(command: str, *places: Any, **options: Any) -> Ran:
    """Run a command, or a function that has no command, in Python."""
    function = FUNCTIONS.get(command) or getattr(h5zarr, command)
    try:
        found = function(*places, **options)
    except h5zarr.H5ZarrError as error:
        return Ran(error=f"{error} {error.remedy}")
    told = found.to_json() if hasattr(found, "to_json") else {}
    failures = [*told.get("unreadable", []), *told.get("failures", [])] if command in ("check", "index") else []
    return Ran(error=json.dumps(failures) if failures else "", told=told)


def _translate_many(source: Any, **options: Any) -> None:
    (outcome,) = h5zarr.translate_many([source], **options)
    if outcome.error is not None:
        raise outcome.error


def _open_store(source: Any, **options: Any) -> None:
    """Open a store, and read everything in it."""
    store = h5zarr.open_store(source, **options)
    try:
        for _, array in zarr.open_group(store, mode="r").members(max_depth=None):
            if isinstance(array, zarr.Array):
                array[...]
    finally:
        store.close()


def _open_dataset(source: Any, **options: Any) -> None:
    with xarray.open_dataset(source, engine="h5zarr", **options) as opened:
        opened.load()


def _open_datatree(source: Any, **options: Any) -> None:
    with xarray.open_datatree(source, engine="h5zarr", **options) as opened:
        opened.load()


def _open_groups(source: Any, **options: Any) -> None:
    for dataset in xarray.open_groups(source, engine="h5zarr", **options).values():
        with dataset:
            dataset.load()


def _parse(source: Any, **options: Any) -> None:
    """Read a file with the parser for VirtualiZarr, through fsspec."""
    from obspec_utils.registry import ObjectStoreRegistry

    from h5zarr.virtualizarr import Parser

    Parser(**options)(str(source), ObjectStoreRegistry())


def _scan_like_kerchunk(source: Any, **options: Any) -> None:
    SingleHdf5ToZarr(source, **options).translate()


def _scan_classic_like_kerchunk(source: Any, **options: Any) -> None:
    NetCDF3ToZarr(source, **options).translate()


FUNCTIONS = {
    "SingleHdf5ToZarr": _scan_like_kerchunk,
    "NetCDF3ToZarr": _scan_classic_like_kerchunk,
    "Parser": _parse,
    "translate_many": _translate_many,
    "scan": partial(h5zarr.scan),
    "open_store": _open_store,
    "open_dataset": _open_dataset,
    "open_datatree": _open_datatree,
    "open_groups": _open_groups,
}
