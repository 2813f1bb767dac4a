"""Output never destroys data: each way to write × what is at the target × with and without overwrite × each place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.containers.json import json_writing
from h5zarr.errors import OutputError, OutputExists, SourceError
from tests.s3 import s3_server

SOURCE = Path(__file__).parents[1] / "sample_data" / "ocean.nc"
HDF5 = b"\x89HDF\r\n\x1a\n"
ARRAY = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "fill_value": 0, "order": "C"}
ENTRIES = {
    ".zgroup": '{"zarr_format": 2}',
    "v/.zarray": json.dumps({**ARRAY, "filters": None, "compressor": None}),
    "v/0": ["s3://bucket/a.nc", 0, 16],
}
KERCHUNK = json.dumps({"version": 1, "refs": ENTRIES}).encode()


@dataclass(frozen=True)
class Target:
    """A directory at a path or URL, and how to write there."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def filesystem(self) -> Any:
        return fsspec.filesystem(self.url.partition("://")[0] if "://" in self.url else "file", **self.options)

    def put(self, name: str, content: bytes) -> str:
        """Write a file, and return its path or URL."""
        place = f"{self.url}/{name}"
        self.filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(place, content)
        return place

    def read(self, name: str) -> bytes:
        self.filesystem.invalidate_cache()
        content: bytes = self.filesystem.cat_file(f"{self.url}/{name}")
        return content


@pytest.fixture(scope="module")
def bucket() -> Iterator[Mapping[str, Any]]:
    with s3_server() as options:
        # Tests of this module may run in several turns, and the server forgets no bucket while this process runs.
        if not (filesystem := fsspec.filesystem("s3", **options)).exists("matrix"):
            filesystem.mkdir("matrix")
        yield options


@pytest.fixture(params=["local", "memory", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "local":
        return Target(str(tmp_path / "out"))
    if request.param == "memory":
        return Target(f"memory://matrix-{tmp_path.name}")
    return Target(f"s3://matrix/{tmp_path.name}", request.getfixturevalue("bucket"))


# --- ways to write one JSON file; each returns the error, or ""


def _caught(act: Callable[[], Any]) -> str:
    try:
        act()
    except OutputError as error:
        return str(error)
    return ""


def _at_prompt(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main([*words, "--quiet"])
    told = capsys.readouterr().err
    assert code in ((0, 1) if not told else (1, 2)), told
    return told if code == 2 else ""


def _options(target: Target) -> list[str]:
    return [word for key, value in target.options.items() for word in ("--output-options", f"{key}={value}")]


def by_translate(target: Target, name: str, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    words = ["translate", str(SOURCE), f"{target.url}/{name}", *_options(target)]
    return _at_prompt(capsys, *words, *(["--overwrite"] if overwrite else []))


def by_convert(target: Target, name: str, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    place, out = Target("memory://matrix-input").put("kerchunk.json", KERCHUNK), f"{target.url}/{name}"
    return _caught(lambda: h5zarr.convert(place, out, overwrite=overwrite, output_options=target.options))


def by_write(target: Target, name: str, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    made, out = h5zarr.translate(SOURCE), f"{target.url}/{name}"
    return _caught(lambda: made.write(out, overwrite=overwrite, output_options=target.options))


def by_index(target: Target, name: str, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    form = name.partition(".")[2]
    with ThreadPoolExecutor(1) as executor:
        report = h5zarr.index(
            [SOURCE],
            target.url,
            name="{stem}",
            format=form,
            executor=executor,
            overwrite=overwrite,
            output_options=target.options,
        )
    return "".join(row.reason for row in report.failed)


def by_combine(target: Target, name: str, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    words = ["combine", str(SOURCE), f"{target.url}/{name}", "--along", "time", *_options(target)]
    return _at_prompt(capsys, *words, *(["--overwrite"] if overwrite else []))


WAYS = {
    "translate": by_translate,
    "convert": by_convert,
    "combine": by_combine,
    "write": by_write,
    "index": by_index,
}


# --- what is at the target: name of the case -> content, and whether it is replaced without and with overwrite


def _own() -> bytes:
    h5zarr.translate(SOURCE, "memory://matrix-own/refs.json")
    content: bytes = fsspec.filesystem("memory").cat_file("/matrix-own/refs.json")
    return content


REPLACED = {
    "empty": lambda: b"",
    "own": _own,
    "own, compressed": lambda: gzip.compress(_own()),
    "kerchunk": lambda: KERCHUNK,
    "kerchunk, version 0": lambda: json.dumps(ENTRIES, indent=1).encode(),
    "kerchunk, compressed": lambda: gzip.compress(KERCHUNK),
}
WITH_OVERWRITE = {
    "text": lambda: b"mine",
    "JSON": lambda: b'{"mine": 1}',
    "JSON with refs": lambda: b'{"version": 1, "refs": {"heads": ["main"]}}',
    "list": lambda: b"[1, 2]",
    "Zarr metadata": lambda: json.dumps({"metadata": ENTRIES, "zarr_consolidated_format": 1}).encode(),
    "truncated gzip": lambda: gzip.compress(b"mine" * 1000)[:20],
}
NEVER = {
    "HDF5": SOURCE.read_bytes,
    "user block of 512 bytes": lambda: bytes(512) + HDF5,
    "user block of 2048 bytes": lambda: b"{".ljust(2048) + HDF5 + bytes(100),
    "user block of 1 MiB": lambda: bytes(1 << 20) + HDF5,
    "references as the user block": lambda: _own().ljust(1 << 17, b" ") + HDF5,
    "CDF-1": lambda: b"CDF\x01" + bytes(100),
    "CDF-2": lambda: b"CDF\x02" + bytes(100),
    "CDF-5": lambda: b"CDF\x05" + bytes(100),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("case", [*REPLACED, *WITH_OVERWRITE, *NEVER])
def test_a_file_is_replaced_only_by_the_rules(
    case: str, overwrite: bool, way: str, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {**REPLACED, **WITH_OVERWRITE, **NEVER}[case]()
    target.put("ocean.json", content)
    error = WAYS[way](target, "ocean.json", overwrite, capsys)
    if case in REPLACED or (case in WITH_OVERWRITE and overwrite):
        assert not error
        assert target.read("ocean.json") != content or case == "own"
        assert "refs" in json.loads(target.read("ocean.json"))
    else:
        assert "ocean.json: this is a" in error
        assert ("never replaces it" in error) is (case in NEVER)
        assert target.read("ocean.json") == content


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ocean.json", "ocean.json.gz", "ocean.json.zst", "ocean.parquet"])
def test_output_is_written_where_there_is_nothing_and_again(
    name: str, way: str, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    target.put("other.txt", b"mine")
    for _ in range(2):
        assert WAYS[way](target, name, False, capsys) == ""
    assert target.read("other.txt") == b"mine"
    assert target.read(f"{name}/.zmetadata" if name.endswith("parquet") else name)


# --- directories of Parquet files

OTHER_FILES = {
    "another file": ("notes.txt", b"mine"),
    "a file below": ("v/data.h5", b"mine"),
    "a Zarr store": (".zmetadata", b'{"metadata": {}, "zarr_consolidated_format": 1}'),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("case", OTHER_FILES)
def test_a_directory_with_other_files_is_never_emptied(
    case: str, overwrite: bool, way: str, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    name, content = OTHER_FILES[case]
    target.put(f"ocean.parquet/{name}", content)
    assert "never replaces it" in WAYS[way](target, "ocean.parquet", overwrite, capsys)
    assert target.read(f"ocean.parquet/{name}") == content
    assert len(target.filesystem.find(f"{target.url}/ocean.parquet")) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("case", ["table", "HDF5"])
def test_a_file_in_the_place_of_a_directory_is_replaced_only_by_the_rules(
    case: str, overwrite: bool, way: str, target: Target, capsys: pytest.CaptureFixture[str]
) -> None:
    content = b"PAR1 a table" if case == "table" else SOURCE.read_bytes()
    target.put("ocean.parquet", content)
    error = WAYS[way](target, "ocean.parquet", overwrite, capsys)
    if case == "table" and overwrite:
        assert not error
        assert target.read("ocean.parquet/.zmetadata")
    else:
        assert "ocean.parquet: this is a" in error
        assert target.read("ocean.parquet") == content


def test_references_of_kerchunk_in_parquet_are_replaced(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    target.put("ocean.parquet/.zmetadata", json.dumps({"metadata": ENTRIES, "record_size": 10}).encode())
    target.put("ocean.parquet/stray/refs.0.parq", b"PAR1")
    assert by_translate(target, "ocean.parquet", False, capsys) == ""
    assert not target.filesystem.exists(f"{target.url}/ocean.parquet/stray/refs.0.parq")


# --- other targets


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_is_never_replaced_by_a_file(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "refs.json").mkdir()
    with pytest.raises(OutputError, match="a directory"):
        h5zarr.translate(SOURCE, tmp_path / "refs.json", overwrite=overwrite)
    assert (tmp_path / "refs.json").is_dir()


def test_the_target_is_checked_before_the_source_is_read(tmp_path: Path) -> None:
    (tmp_path / "refs.json").write_text("mine")
    with pytest.raises(FileExistsError):
        h5zarr.translate(tmp_path / "missing.nc", tmp_path / "refs.json")
    with pytest.raises(OutputExists):
        h5zarr.convert(tmp_path / "missing.json", tmp_path / "refs.json")


@pytest.mark.parametrize("name", ["refs.json", "refs.parquet"])
def test_a_local_file_that_appears_in_the_meantime_stays(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, function = "h5zarr.containers.output", "find_compressor"
    if name.endswith("parquet"):
        module, function = "h5zarr.containers.parquet.parquet_output", "_settle"
    monkeypatch.setattr(f"{module}.{function}", lambda *_: (tmp_path / name).write_bytes(b"mine") and None)
    with pytest.raises(OutputExists):
        h5zarr.translate(SOURCE, tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_place_that_cannot_be_read_needs_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise SourceError("no permission")

    monkeypatch.setattr("h5zarr.containers.target.open_source", refuse)
    (tmp_path / "refs.json").write_text("mine")
    with pytest.raises(OutputExists, match="cannot tell what the output would replace: no permission"):
        h5zarr.translate(SOURCE, tmp_path / "refs.json")
    h5zarr.translate(SOURCE, tmp_path / "refs.json", overwrite=True)
    assert json_writing.OWN_BEGINNING in (tmp_path / "refs.json").read_bytes()


def test_a_translation_is_not_written_over_its_own_source(tmp_path: Path) -> None:
    source = tmp_path / "odd.json"
    source.write_bytes(SOURCE.read_bytes())
    with pytest.raises(OutputError, match="would replace the input file"):
        h5zarr.translate(source).write(source, overwrite=True)
    assert source.read_bytes() == SOURCE.read_bytes()


# --- reports and metrics

REPORTS = ("translate", "convert", "combine", "index", "verify", "validate", "index --metrics")


def _report(command: str, place: Path, overwrite: bool, capsys: pytest.CaptureFixture[str]) -> str:
    """Write a report or metrics to a place. Return the error, or "" if there is none."""
    folder = place.parent
    if not (folder / "refs.json").exists():
        h5zarr.translate(SOURCE, folder / "refs.json")
    command, _, option = command.partition(" ")
    places = {
        "translate": [SOURCE, folder / "out.json"],
        "convert": [folder / "refs.json", folder / "out.json"],
        "combine": [SOURCE, folder / "out.json", "--along", "time"],
        "index": [SOURCE, folder / "index"],
    }.get(command, [folder / "refs.json"])
    words = [command, *map(str, places), option or "--report", str(place), "--quiet"]
    code = main([*words, *(["--workers", "1"] if command == "index" else []), *(["--overwrite"] if overwrite else [])])
    told = capsys.readouterr().err
    assert (code == 2) is ((bool(told) and "never replaces" in told) or "did not write" in told), told
    return told if code == 2 else ""


@pytest.mark.parametrize("command", REPORTS)
@pytest.mark.parametrize("case", ["references", "text", "HDF5"])
def test_a_report_is_replaced_only_by_the_rules(
    command: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"references": KERCHUNK, "text": b"mine", "HDF5": SOURCE.read_bytes()}[case]
    place = tmp_path / "told.json"
    place.write_bytes(content)
    assert "told.json: this is a" in _report(command, place, False, capsys)
    assert place.read_bytes() == content
    assert not (tmp_path / "out.json").exists()  # nothing else is done either
    assert bool(_report(command, place, True, capsys)) is (case == "HDF5")
    assert (place.read_bytes() == content) is (case == "HDF5")
    if case != "HDF5":
        assert _report(command, place, False, capsys) == ""  # now it is a report


def test_a_report_does_not_replace_what_the_command_reads_or_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    h5zarr.translate(SOURCE, tmp_path / "refs.json")
    before = (tmp_path / "refs.json").read_bytes()
    assert main(["verify", str(tmp_path / "refs.json"), "--report", str(tmp_path / "refs.json"), "--overwrite"]) == 2
    assert main(["validate", str(tmp_path / "refs.json"), "--report", str(tmp_path / "refs.json"), "--overwrite"]) == 2
    out = str(tmp_path / "out.json")
    assert main(["translate", str(SOURCE), out, "--report", out, "--overwrite"]) == 2
    assert "also reads or writes it" in capsys.readouterr().err
    assert (tmp_path / "refs.json").read_bytes() == before
    assert not (tmp_path / "out.json").exists()


# --- what index removes


def test_prune_keeps_a_file_that_has_taken_the_place_of_an_output(tmp_path: Path) -> None:
    folder, out = tmp_path / "data", tmp_path / "refs"
    folder.mkdir()
    for name in ("a.nc", "b.nc", "c.nc"):
        (folder / name).write_bytes(SOURCE.read_bytes())
    with ThreadPoolExecutor(1) as executor:
        h5zarr.index(folder, out, name="{stem}", executor=executor)
        (out / "a.json").write_text("mine")
        (folder / "a.nc").unlink()
        (folder / "b.nc").unlink()
        assert h5zarr.index(folder, out, name="{stem}", executor=executor, prune=True).pruned_count == 1
    assert (out / "a.json").read_text() == "mine"
    assert not (out / "b.json").exists()


def test_a_rebuilt_catalog_does_not_replace_a_data_file(tmp_path: Path) -> None:
    catalog = tmp_path / "refs" / "_h5zarr" / "catalog.parquet"
    catalog.parent.mkdir(parents=True)
    catalog.write_bytes(SOURCE.read_bytes())
    with ThreadPoolExecutor(1) as executor, pytest.raises(OutputError, match="an HDF5 file"):
        h5zarr.index([SOURCE], tmp_path / "refs", executor=executor, rebuild_catalog=True)
    assert catalog.read_bytes() == SOURCE.read_bytes()
