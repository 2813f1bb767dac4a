"""The effects of the writing and selection options. Each function shows one effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pytest
import xarray
from fsspec.implementations.memory import MemoryFileSystem

import h5zarr
from h5zarr.commands.verify import spreading
from tests.options.bench import Bench, arrays_in, read_references
from tests.options.files import make_file, make_ragged
from tests.options.reading import checked


def group(bench: Bench, command: str) -> None:
    """The group becomes the root."""
    assert arrays_in(bench.write(command, make_file(bench.folder / "file.h5"), group="/g")) == {"h/deep"}


def include(bench: Bench, command: str) -> None:
    """Only arrays that match are written."""
    assert arrays_in(bench.write(command, make_file(bench.folder / "file.h5"), include=["short", "l*"])) == {
        "short",
        "long",
    }


def exclude(bench: Bench, command: str) -> None:
    """Arrays that match are left out."""
    found = bench.write(command, make_file(bench.folder / "file.h5"), exclude=["short", "l*"])
    assert arrays_in(found) == {"g/h/deep"}


def group_in_check(bench: Bench, command: str) -> None:
    assert checked(bench, make_file(bench.folder / "file.h5"), group="/g") == {"/h/deep"}


def include_in_check(bench: Bench, command: str) -> None:
    assert checked(bench, make_file(bench.folder / "file.h5"), include=["short", "l*"]) == {"/short", "/long"}


def exclude_in_check(bench: Bench, command: str) -> None:
    assert checked(bench, make_file(bench.folder / "file.h5"), exclude=["short", "l*"]) == {"/g/h/deep"}


def group_in_verify(bench: Bench, command: str) -> None:
    """References to a group are compared with that group."""
    h5zarr.translate(make_file(bench.folder / "file.h5"), bench.out, group="/g")
    assert bench.run(command, bench.out).told["not_in_source"] == ["/h/deep"]
    assert bench.run(command, bench.out, group="/g").told["right"]


def group_in_engine(bench: Bench, command: str) -> None:
    """The group is the one that is opened."""
    path = make_file(bench.folder / "file.h5")
    opened = getattr(xarray, command)(path, engine="h5zarr", group="g/h")
    found = opened["/"] if command != "open_dataset" else opened
    assert set(found.data_vars) == {"deep"}
    found.close()


def strict(bench: Bench, command: str) -> None:
    """Nothing is written if something must be left out."""
    path = make_ragged(bench.folder / "file.h5")
    assert "nothing was written" in bench.run(command, path, strict=True).error
    assert not bench.out.exists()
    assert not bench.run(command, path).error


def strict_in_index(bench: Bench, command: str) -> None:
    """A file is a failure if something must be left out."""
    path = make_ragged(bench.folder / "file.h5")
    assert "it has problems, and strict=True: /ragged" in json.dumps(bench.run(command, path, strict=True).told)
    assert not list(bench.index.rglob("*.json"))
    assert not bench.run(command, path).error
    assert list(bench.index.rglob("*.json"))


def strict_in_convert(bench: Bench, command: str) -> None:
    """Nothing is written if version 2 cannot hold something."""
    refs, chosen = _make_transposed(bench.folder), {"zarr_format": 2}
    assert "nothing was written" in bench.run(command, refs, strict=True, **chosen).error
    assert not bench.out.exists()
    assert not bench.run(command, refs, **chosen).error


def _make_transposed(folder: Path) -> Path:
    array = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "<i4", "fill_value": 0, "order": "F"}
    array |= {"filters": None, "compressor": None}
    (folder / "f.json").write_text(json.dumps({"v/.zarray": array, "v/0.0": ["s3://bucket/raw", 0, 16]}))
    h5zarr.convert(folder / "f.json", folder / "transposed.json")
    return folder / "transposed.json"


def zarr_format(bench: Bench, command: str) -> None:
    """Metadata are of version 2."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), zarr_format=2)
    assert {".zgroup", "long/.zarray"} <= set(refs)
    assert "zarr.json" not in refs


def zarr_format_in_convert(bench: Bench, command: str) -> None:
    """References of version 3 become those of version 2."""
    h5zarr.translate(make_file(bench.folder / "file.h5"), bench.folder / "refs.json")
    assert not bench.run(command, bench.folder / "refs.json", zarr_format=2).error
    assert "long/.zarray" in read_references(bench.out)


def nz(bench: Bench, command: str) -> None:
    """The convention is declared."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), nz=True)
    assert "zarr_conventions" in refs["zarr.json"]["attributes"]


def nz_in_validate(bench: Bench, command: str) -> None:
    """The rules of the convention are checked, too."""
    h5zarr.translate(make_file(bench.folder / "file.h5"), bench.out)
    is_checked = [
        any(rule.startswith("nz/") for rule in bench.run(command, bench.out, **chosen).told["rules"])
        for chosen in ({}, {"nz": True})
    ]
    assert is_checked == [False, True]


def chunk_bytes(bench: Bench, command: str) -> None:
    """A contiguous array of 16 kB has chunks of 4 kB."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), chunk_bytes=4000)
    assert refs["long/zarr.json"]["chunk_grid"]["configuration"]["chunk_shape"] == [1000]


def inline_bytes(bench: Bench, command: str) -> None:
    """A long array is inlined."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), inline_bytes=20_000)
    assert isinstance(refs["long/c/0"], str)


def max_inline_bytes(bench: Bench, command: str) -> None:
    """A short array, which is inlined otherwise, is referenced."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), max_inline_bytes=10)
    assert isinstance(refs["short/c/0"], list)


def max_inline_bytes_in_combine(bench: Bench, command: str) -> None:
    """The same, in an array with a new dimension."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), max_inline_bytes=10)
    assert isinstance(refs["short/c/0/0"], list)


def along(bench: Bench, command: str) -> None:
    """The dimension is the one along which files are joined."""
    told = bench.run(command, make_file(bench.folder / "file.h5"), along="other").told
    assert command == "check" or told["axes"][0]["name"] == "other"
    pair = [make_file(bench.folder / name) for name in ("a.h5", "b.h5")]
    if command == "check":
        assert h5zarr.check(pair, along="other").to_json()["combining"]["along"] == "other"


def dry_run(bench: Bench, command: str) -> None:
    """Nothing is written."""
    assert not bench.run(command, make_file(bench.folder / "file.h5"), dry_run=True).error
    assert not bench.out.exists()
    assert not list(bench.folder.rglob("*.parquet"))


def joinable(bench: Bench, command: str) -> None:
    """A contiguous array is not cut, because the chunks would depend on its length."""
    refs = bench.write(command, make_file(bench.folder / "file.h5"), chunk_bytes=4000, joinable=True)
    assert refs["long/zarr.json"]["chunk_grid"]["configuration"]["chunk_shape"] == [4000]


class RecordingFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A file system in memory that records the options it is made with."""

    protocol = "recorded"
    made_with: list[dict[str, Any]] = []  # noqa: RUF012
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        self.made_with.append(options)
        super().__init__()


def output_options(bench: Bench, command: str) -> None:
    """The file system that is written to is made with the options."""
    fsspec.register_implementation("recorded", RecordingFileSystem, clobber=True)
    bench.monkeypatch.setattr(RecordingFileSystem, "made_with", [])
    RecordingFileSystem.clear_instance_cache()
    path = make_file(bench.folder / "file.h5")
    if command == "convert":
        h5zarr.translate(path, path := bench.folder / "refs.json")
    out = "recorded://index" if command == "index" else "recorded://out.json"
    assert not bench.run(command, path, out, output_options={"token": "mine"}).error
    assert {one.get("token") for one in RecordingFileSystem.made_with} == {"mine"}


def overwrite(bench: Bench, command: str) -> None:
    """A file that is not references is replaced."""
    path, out = make_file(bench.folder / "file.h5"), bench.out
    if command == "convert":
        h5zarr.translate(path, path := bench.folder / "refs.json")
    chosen = {}
    if command == "index":
        out, chosen = bench.index / "file.json", {"name": "{stem}"}
        out.parent.mkdir()
    out.write_text('{"mine": 1}')
    assert "did not write" in bench.run(command, path, **chosen).error
    assert out.read_text() == '{"mine": 1}'
    assert not bench.run(command, path, overwrite=True, **chosen).error
    assert "zarr.json" in read_references(out)


def branch(bench: Bench, command: str) -> None:
    """The branch is created, and has the commit."""
    repository = _commit(bench, command, branch="other")
    assert set(repository.list_branches()) == {"main", "other"}
    assert len(list(repository.ancestry(branch="other"))) == 2


def message(bench: Bench, command: str) -> None:
    """The commit has the message."""
    repository = _commit(bench, command, message="as of May")
    assert next(iter(repository.ancestry(branch="main"))).message == "as of May"


def _commit(bench: Bench, command: str, **options: Any) -> Any:
    icechunk = pytest.importorskip("icechunk")
    path = make_file(bench.folder / "file.h5")
    if command == "convert":
        h5zarr.translate(path, path := bench.folder / "refs.json")
    out = bench.folder / "repository"
    assert not bench.run(command, path, f"icechunk+file://{out}", **options).error
    return icechunk.Repository.open(icechunk.local_filesystem_storage(str(out)))


def workers_of_index(bench: Bench, command: str) -> None:
    """As many processes are asked for."""
    assert not bench.run(command, make_file(bench.folder / "file.h5"), workers=3).error
    assert bench.hired == [3]


def workers_of_verify(bench: Bench, command: str) -> None:
    """As many processes are started."""
    started = []

    class Processes(spreading.Processes):
        def __init__(self, count: int, *arguments: Any) -> None:
            started.append(count)
            super().__init__(count, *arguments)

    bench.monkeypatch.setattr(spreading, "Processes", Processes)
    h5zarr.translate(make_file(bench.folder / "file.h5"), bench.out)
    for count in (1, 2):
        assert bench.run(command, bench.out, workers=count).told["right"]
    assert started == [2]
