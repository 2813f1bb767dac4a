"""Messages for damaged references: each is raised by references or a manifest with exactly that damage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import h5zarr
from h5zarr.containers.chunk_runs import Run, join_runs
from h5zarr.containers.icechunk import listing
from h5zarr.containers.icechunk.flatbuffers import Tables
from h5zarr.containers.icechunk.listing import _from_batch
from h5zarr.containers.icechunk.manifest_file import NATIVE, ListedChunks, decode_manifest
from h5zarr.containers.parquet import parquet_index, parquet_writing, part_files
from h5zarr.containers.references import Document, assemble
from h5zarr.errors import MalformedFile, OutputError
from h5zarr.zarr_model.chunk_keys import KeyLayout
from tests.collections_of_files import SAMPLES
from tests.containers.icechunk.test_manifest_file import PLAIN, header

OCEAN = SAMPLES / "ocean.nc"
LAYOUT = KeyLayout(path="/v", mark="c", separator="/", rank=1)
GROUP = '{"zarr_format": 3, "node_type": "group"}'


def run_of(*index: int) -> Run:
    numbers = np.zeros(len(index), np.int64)
    rows = np.array(index, np.int64).reshape(-1, 1)
    return Run(layout=LAYOUT, index=rows, address=numbers, nbytes=numbers, source=0, urls=("a.nc",))


def test_a_chunk_that_occurs_twice_is_malformed() -> None:
    for runs, inline in (((run_of(0, 0),), {}), ((run_of(0), run_of(0)), {}), ((run_of(0),), {(0,): b"a"})):
        with pytest.raises(MalformedFile, match=r"^/v: a chunk occurs twice"):
            join_runs(runs, inline)


def test_chunks_of_no_array_are_malformed() -> None:
    with pytest.raises(MalformedFile, match="there are chunk references outside any array"):
        assemble(Document(entries={"zarr.json": GROUP}, runs=(run_of(0),)))


# --- manifests of Icechunk


def damaged(at: int, byte: int) -> bytes:
    return header() + PLAIN[:at] + bytes([byte]) + PLAIN[at + 1 :]


@pytest.mark.parametrize(
    ("at", "byte", "message"),
    [
        (0, 0, "m lacks a field that every manifest has"),
        (0, 1, "m points outside the file"),
        (32, 1, "m ends within a list"),
        (40, 0, "m is truncated"),
        (72, 0, "m has chunks without a location"),
        (96, 0, "m has chunks of one array with different numbers of coordinates"),
        (116, 3, "m has a location that is not UTF-8"),
        (127, 128, "m has a number of more than 63 bits"),
    ],
)
def test_a_damaged_manifest_says_what_is_wrong(at: int, byte: int, message: str) -> None:
    with pytest.raises(MalformedFile) as caught:
        decode_manifest(damaged(at, byte), "m")
    assert str(caught.value) == message


def test_a_manifest_with_too_many_coordinates_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Tables.integers

    def integers(self: Tables, at: Any, nbytes: int) -> Any:
        found = honest(self, at, nbytes)
        return found if len(at) < 5 or set(found.tolist()) != {2} else found + len(PLAIN)

    monkeypatch.setattr(Tables, "integers", integers)
    with pytest.raises(MalformedFile, match="m ends within the coordinates of a chunk"):
        decode_manifest(header() + PLAIN, "m")


def test_numbers_of_icechunk_that_are_too_large_are_malformed() -> None:
    one = np.zeros(1, np.uint64)
    for address, nbytes in ((one + 2**63, one), (one, one + 2**63)):
        with pytest.raises(MalformedFile, match="a reference needs more than 63 bits"):
            _from_batch((one.reshape(1, 1), one.astype(np.uint8), ["s3://a/b"], address, nbytes, {}))


def test_a_chunk_that_the_repository_has_lost_is_malformed() -> None:
    async def get(key: str, prototype: object) -> None:
        return None

    zeros = np.zeros(1, np.int64)
    kind = np.full(1, NATIVE, np.uint8)
    columns = {"address": zeros, "nbytes": zeros, "source": zeros.astype(np.int32), "urls": (), "inline": {}}
    chunks = ListedChunks(index=np.array([[3]]), kind=kind, **columns)
    reading = listing._Reading({"/v": {}}, {"/v": chunks}, None)
    with pytest.raises(MalformedFile, match=r"^v/c/3: a chunk is missing in the repository"):
        asyncio.run(reading.hold(SimpleNamespace(get=get)))


# --- Parquet


def test_chunks_that_need_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "_MOST_FILES", 1)
    with pytest.raises(OutputError, match="the chunks are so far apart that they need more than 1 files") as caught:
        h5zarr.translate(OCEAN, tmp_path / "refs.parquet")
    assert caught.value.remedy == "Write JSON instead: a name that ends in .json.zst."


def rewrite_part(directory: Path, change: Callable[[Any], Any]) -> Path:
    """Change the table of the first file with references, but not its token, and return its path."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = next(directory.rglob("refs.0.parq"))
    table = pq.read_table(path)
    kept = table.schema.metadata
    token = pq.ParquetFile(path).metadata.metadata
    pq.write_table(change(table).replace_schema_metadata({**(kept or {}), **token}), path)
    return path


def test_a_file_of_references_with_too_few_or_too_many_rows_is_malformed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "refs.parquet"
    h5zarr.translate(OCEAN, out)
    rewrite_part(out, lambda table: table.slice(0, 0))
    with pytest.raises(MalformedFile, match=r"refs\.0\.parq has 0 rows instead of [1-9]"):
        h5zarr.convert(out, tmp_path / "refs.json")
    rewrite_part(out, lambda table: table)
    monkeypatch.setattr(part_files, "_MOST_ROWS", 0)
    with pytest.raises(MalformedFile, match=r"refs\.0\.parq has \d+ rows, which are more than h5zarr reads at a time"):
        h5zarr.convert(out, tmp_path / "refs.json")


def test_an_array_in_too_many_files_is_malformed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5zarr.translate(OCEAN, tmp_path / "refs.parquet")
    monkeypatch.setattr(parquet_index, "_MOST_PARTS", 0)
    with pytest.raises(MalformedFile, match=r"its \d+ chunks, \d+ in a file, take more than 0 files"):
        h5zarr.convert(tmp_path / "refs.parquet", tmp_path / "refs.json")
