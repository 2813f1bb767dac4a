"""The files of a cube are a table beside `.zmetadata`: read when needed, and open to queries."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.containers import file_rows
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.file_rows import encode_blocks, encode_files
from h5zarr.containers.file_table import FileTable, TableBlock, describe_files, digest_of
from h5zarr.containers.parquet.parquet_writing import FILE_TABLE
from h5zarr.containers.parquet.reference_directory import ReferenceDirectory
from h5zarr.containers.piece_columns import CubePieceState, piece_columns
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import MalformedFile, SourceChanged
from h5zarr.io.source import Identity
from h5zarr.opening import open_hierarchy
from tests.commands.combine.files import write_days
from tests.servers import RangeServer

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("pyarrow.parquet")

NAMES = st.sampled_from(["/a.nc", "/b.nc", "s3://bucket/é c.nc", '"quoted".nc', "/odd\udcff.nc", "/d.nc"])
STATES = st.builds(
    SourceState,
    NAMES,
    st.builds(Identity, nbytes=st.integers(0, 2**40), etag=st.none() | st.just('"e"'), mtime=st.none() | st.just("t")),
)
PIECES = st.builds(
    CubePieceState,
    url=NAMES,
    at=st.dictionaries(
        st.sampled_from(["/time", "/g/x"]),
        st.tuples(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))),
    ),
    lacks=st.sampled_from([(), ("/v",), ("/v", "/w")]),
)


def read_back(urls: list[str], provenance: Provenance, layout: CubeLayout, *, in_blocks: bool = False) -> FileTable:
    if in_blocks:
        blocks = list(encode_blocks(urls, provenance, layout))
    else:
        blocks = [TableBlock(encode_files(urls, provenance, layout))]
    told: Any = describe_files(urls, provenance, layout)
    counts = {name: told[name] for name in ("urls", "sources", "pieces")}
    return FileTable(axes=dict(layout.axes), counts=counts, load=lambda: blocks)


@given(st.lists(NAMES), st.lists(STATES), st.lists(PIECES), st.sampled_from([0, 1, 2, 3]))
def test_the_table_has_every_url_state_and_piece(
    urls: list[str], states: list[SourceState], pieces: list[CubePieceState], usual_in_block: int
) -> None:
    """Also if these are not the same files, or some twice. In one file, or in blocks."""
    layout = CubeLayout(axes={"/time": 100, "/g/x": 100}, pieces=piece_columns(pieces))
    provenance = Provenance("1", tuple(states), cube=layout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_rows, "_USUAL_IN_BLOCK", usual_in_block or 1)
        table = read_back(urls, provenance, layout, in_blocks=usual_in_block > 0)
    assert list(table.urls()) == urls
    assert list(table.sources()) == states
    assert list(table.pieces()) == pieces
    assert len(table.expected()) == len(urls)


def test_a_new_file_changes_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is: blocks begin at the same names, and count from their first row."""
    monkeypatch.setattr(file_rows, "_USUAL_IN_BLOCK", 20)

    def blocks(numbers: list[int]) -> dict[bytes, tuple[int, ...]]:
        urls = [f"/{number:04}.nc" for number in numbers]
        states = tuple(SourceState(url, Identity(nbytes=number)) for url, number in zip(urls, numbers, strict=True))
        pieces = [CubePieceState(url=url, at={"/t": ((at, 0, 1),)}) for url, at in zip(urls, numbers, strict=True)]
        layout = CubeLayout(axes={"/t": 500}, pieces=piece_columns(pieces))
        made = encode_blocks(urls, Provenance("1", states, cube=layout), layout)
        return {bytes(block.content): block.firsts for block in made}

    before = blocks([number for number in range(400) if number != 123])
    for numbers in (list(range(400)), [number for number in range(401) if number != 123]):
        after = blocks(numbers)
        assert len(before) > 10
        assert len(after.keys() - before.keys()) in (1, 2)  # two if the new name is one at which a block begins


@settings(max_examples=30)
@given(st.lists(STATES, min_size=1, unique_by=lambda one: one.url))
def test_the_state_of_a_url_is_in_its_row(states: list[SourceState]) -> None:
    urls = [one.url for one in reversed(states)]
    layout = CubeLayout(axes={}, pieces=())
    table = read_back(urls, Provenance("1", tuple(states), cube=layout), layout)
    assert list(table.expected()) == [one.identity for one in reversed(states)]


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for day in range(3):
        write_days(tmp_path / "data" / f"{day}.nc", [2 * day, 2 * day + 1])
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), tmp_path / "cube.parquet", along="time")
    return tmp_path / "cube.parquet"


def test_duckdb_and_pandas_can_query_the_files_of_a_cube(cube: Path) -> None:
    question = f"""
        SELECT parse_filename(url), nbytes, one.axis, one.position, one.length
        FROM (SELECT url, nbytes, unnest("at") AS one FROM '{cube}/files.parquet')
        WHERE one.position >= 2 ORDER BY url"""
    sizes = [(cube.parent / "data" / f"{day}.nc").stat().st_size for day in range(3)]
    found = duckdb.sql(question).fetchall()
    assert found == [("1.nc", sizes[1], "/time", 2, 2), ("2.nc", sizes[2], "/time", 4, 2)]
    table = pytest.importorskip("pandas").read_parquet(cube / FILE_TABLE)
    assert table["nbytes"].tolist() == sizes
    assert table["at"][1][0]["position"] == 2


def test_opening_a_cube_does_not_read_the_table(cube: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = ReferenceDirectory.load

    def load(self: ReferenceDirectory, names: tuple[str, ...]) -> Any:
        read.extend(names)
        return original(self, names)

    monkeypatch.setattr(ReferenceDirectory, "load", load)
    with xr.open_dataset(cube, engine="h5zarr") as opened:
        assert dict(opened.sizes) == {"time": 6, "x": 600}
        assert FILE_TABLE not in read
        assert opened.v.values[3, 5] == 35
        assert read.count(FILE_TABLE) == 1


def test_what_is_pickled_does_not_grow_with_the_number_of_files(cube: Path) -> None:
    opened = open_hierarchy(cube)
    assert opened.hierarchy.urls[0].endswith("0.nc")  # so that the table was read
    assert b"0.nc" not in pickle.dumps(opened.sources)[: -len(str(cube))]
    assert pickle.loads(pickle.dumps(opened.sources)).urls == opened.sources.urls


def test_a_table_of_another_state_is_refused(cube: Path) -> None:
    opened = open_hierarchy(cube)
    h5zarr.combine(str(cube.parent / "data" / "[01].nc"), cube, along="time")
    with pytest.raises(SourceChanged, match=r"files\.parquet does not belong to \.zmetadata"):
        opened.hierarchy.urls[0]


def damage(cube: Path, content: bytes) -> None:
    """Replace the table, with its digest in the metadata."""
    (cube / FILE_TABLE).write_bytes(content)
    metadata = json.loads((cube / ".zmetadata").read_text())
    metadata["h5zarr"]["file_table"]["digest"] = digest_of(content)
    (cube / ".zmetadata").write_text(json.dumps(metadata))


def test_a_table_of_another_form_is_refused(cube: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    whole = (cube / FILE_TABLE).read_bytes()
    table = pyarrow.parquet.read_table(cube / FILE_TABLE)
    for name in set(table.column_names) - {"source"}:  # which is not used by readers
        out = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table.drop_columns([name]), out)
        damage(cube, bytes(out.getvalue()))
        opened = open_hierarchy(cube)
        assert opened.cube is not None
        with pytest.raises(MalformedFile, match="the table of the files of the cube does not have h5zarr's form"):
            _use(opened)
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        damage(cube, whole[:cut])
        with pytest.raises(MalformedFile):
            _use(open_hierarchy(cube))
    random = np.random.default_rng(1)
    for _ in range(200):
        broken = bytearray(whole)
        broken[random.integers(len(whole))] ^= 1 << random.integers(8)
        damage(cube, bytes(broken))
        try:
            _use(open_hierarchy(cube))
        except h5zarr.H5ZarrError:
            continue


def _use(opened: Any) -> None:
    list(opened.hierarchy.urls)
    list(opened.sources.expected)
    list(opened.cube.pieces)


@pytest.mark.parametrize("name", ["urls", "pieces"])
def test_a_table_with_other_rows_than_recorded_is_refused(cube: Path, name: str) -> None:
    metadata = json.loads((cube / ".zmetadata").read_text())
    metadata["h5zarr"]["file_table"][name] = 2
    (cube / ".zmetadata").write_text(json.dumps(metadata))
    with pytest.raises(MalformedFile, match=r"the table of the files of the cube has other rows than \.zmetadata says"):
        _use(open_hierarchy(cube))


@pytest.mark.parametrize("totals", [{"counts": [-1]}, {"nbytes": ["3"]}, {"inlined": [None]}])
def test_totals_that_are_no_numbers_are_refused(cube: Path, totals: dict[str, Any]) -> None:
    metadata = json.loads((cube / ".zmetadata").read_text())
    metadata["h5zarr"]["totals"]["v"] |= totals
    (cube / ".zmetadata").write_text(json.dumps(metadata))
    with pytest.raises(MalformedFile, match="v: the totals of its records are not numbers"):
        open_hierarchy(cube)


@pytest.mark.parametrize("change", [{"urls": -1}, {"urls": "3"}, {"digest": 5}, {"first": None}])
def test_metadata_that_describe_no_table_are_refused(cube: Path, change: dict[str, Any]) -> None:
    metadata = json.loads((cube / ".zmetadata").read_text())
    metadata["h5zarr"]["file_table"] |= change
    (cube / ".zmetadata").write_text(json.dumps(metadata))
    with pytest.raises(MalformedFile, match="the table of the files of the cube is not described in h5zarr's form"):
        open_hierarchy(cube)


def test_a_cube_of_many_files_opens_with_few_requests(cube: Path) -> None:
    files = {f"/cube.parquet/{path.relative_to(cube)}": path.read_bytes() for path in cube.rglob("*") if path.is_file()}
    with RangeServer(files) as server:
        with xr.open_dataset(server.url("/cube.parquet"), engine="h5zarr") as opened:
            assert dict(opened.sizes) == {"time": 6, "x": 600}
            assert opened.time.dt.day.values[5] == 6
        assert server.counts.heads + len(server.counts.gets) <= 5
