"""The catalog returns every added row, also with concurrent writers and for every version of its format."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.commands.catalog.catalog import CATALOG, PARTS, Catalog
from h5zarr.commands.catalog.catalog_table import SCHEMA
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status, writable
from h5zarr.commands.status.status import status
from h5zarr.errors import OutputError, Problem
from h5zarr.io.source import Identity
from tests.collections_of_files import SAMPLES

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)


def row(source: str, **changes: Any) -> Row:
    made = Row(
        source=source,
        found_by="s3://bucket/*.nc",
        identity=Identity(nbytes=12, etag='"a"'),
        output=f"{source}.json",
        settings="abc",
        status=Status.INDEXED,
        time=NOW,
    )
    return replace(made, **changes)


def sources(place: Place) -> dict[str, int]:
    return {one.source: one.chunks for one in Catalog(place).rows()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "refs")


TEXTS = st.text(max_size=20)
ROWS = st.builds(
    Row,
    source=TEXTS,
    found_by=TEXTS,
    identity=st.none() | st.builds(Identity, nbytes=st.integers(0, 2**62), etag=st.none() | TEXTS.filter(bool)),
    output=TEXTS,
    settings=TEXTS,
    status=st.sampled_from(Status),
    reason=TEXTS,
    remedy=TEXTS,
    attempts=st.integers(0, 1000),
    problems=st.lists(st.builds(Problem, path=TEXTS, kind=TEXTS, message=TEXTS, remedy=TEXTS), max_size=2).map(tuple),
    arrays=st.integers(0, 2**62),
    seconds=st.floats(0, 1e9),
    time=st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC)),
)


@settings(max_examples=25)
@given(st.lists(ROWS, unique_by=lambda one: one.source, max_size=8), st.booleans())
def test_rows_are_read_as_they_were_written(rows: list[Row], is_folded: bool) -> None:
    place = Place(f"memory://catalog{os.getpid()}")
    place.remove("")
    catalog = Catalog(place)
    for one in rows:
        catalog.add(one)
    catalog.fold() if is_folded else catalog.flush()
    assert sorted(Catalog(place).rows(), key=lambda one: one.source) == sorted(rows, key=lambda one: one.source)


def test_what_was_flushed_is_found_and_the_newest_counts(place: Place) -> None:
    for number in range(12):
        catalog = Catalog(place)  # another run each time
        catalog.add(row("a", chunks=number))
        catalog.add(row(f"b{number}", chunks=number))
        catalog.flush()
    assert len(place.names(PARTS)) == 12
    assert sources(place) == {"a": 11, **{f"b{number}": number for number in range(12)}}
    Catalog(place).fold()
    assert place.names(PARTS) == []
    assert sources(place)["a"] == 11
    assert len(Catalog(place).sources()) == 13


def test_what_was_removed_is_gone_when_it_is_folded(place: Place) -> None:
    catalog = Catalog(place)
    catalog.add(row("a"))
    catalog.add(row("b"))
    catalog.fold()
    catalog.remove("a")
    assert catalog.sources() == {"b"}
    catalog.flush()
    assert set(sources(place)) == {"a", "b"}  # until it is folded
    catalog.fold()
    assert set(sources(place)) == {"b"}


def test_nothing_is_written_where_there_is_nothing_new(place: Place) -> None:
    Catalog(place).flush()
    Catalog(place).fold()
    assert place.names() == []


def test_two_runs_that_fold_lose_no_more_than_rows_of_one_of_them(place: Place) -> None:
    first, second = Catalog(place), Catalog(place)
    for catalog, name in ((first, "a"), (second, "b")):
        catalog.add(row(name))
        catalog.flush()
    first.fold()
    assert set(sources(place)) == {"a", "b"}  # what the other one has flushed is still there
    second.fold()
    assert {"b"} <= set(sources(place)) <= {"a", "b"}
    assert place.names(PARTS) == []


def test_many_that_add_and_fold_at_once_leave_a_catalog_that_can_be_read(place: Place) -> None:
    def work(number: int) -> None:
        catalog = Catalog(place)
        for step in range(5):
            catalog.add(row(f"{number}", chunks=step))
            catalog.flush() if step % 2 else catalog.fold()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    found = sources(place)
    assert set(found) <= {str(number) for number in range(8)}
    assert found


def test_a_part_that_is_folded_while_it_is_read_is_found_in_the_table(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(place)
    catalog.add(row("a"))
    catalog.flush()
    read, folded = Place.read, list[str]()

    def read_late(self: Place, name: str) -> bytes | None:
        content = read(self, name)
        if name == CATALOG and not folded:
            folded.append(name)
            catalog.fold()  # after the table was read, and before the parts are
        return content

    monkeypatch.setattr(Place, "read", read_late)
    assert set(sources(place)) == {"a"}


def test_a_part_that_is_named_and_never_there_does_not_hold_a_run_up(place: Place, tmp_path: Path) -> None:
    catalog = Catalog(place)
    catalog.add(row("a"))
    catalog.fold()
    (tmp_path / "refs" / PARTS).mkdir()
    (tmp_path / "refs" / PARTS / "000000000001-abc.parquet").symlink_to(tmp_path / "nowhere")
    assert set(sources(place)) == {"a"}


def test_other_files_than_parts_are_left_alone(place: Place) -> None:
    place.write(f"{PARTS}/notes.parquet", b"not a table")
    place.write(f"{PARTS}/notes.txt", b"not a table")
    catalog = Catalog(place)
    catalog.add(row("a"))
    catalog.flush()
    catalog.fold()
    assert place.names(PARTS) == [f"{PARTS}/notes.parquet", f"{PARTS}/notes.txt"]


def write_table(place: Place, table: Any) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    place.write(CATALOG, sink.getvalue())


def test_a_catalog_of_an_earlier_version_lacks_columns(place: Place) -> None:
    write_table(place, pa.table({"source": ["a", "b"], "status": ["indexed", "failed"]}))
    found = {one.source: one for one in Catalog(place).rows()}
    assert (found["a"].status, found["b"].status) == (Status.INDEXED, Status.FAILED)
    assert found["a"].identity is None
    assert status(place.url).counts


def test_a_catalog_of_a_later_version_has_other_columns_types_and_statuses(place: Place) -> None:
    catalog = Catalog(place)
    catalog.add(row("a"))
    catalog.fold()
    table = pq.read_table(io.BytesIO(place.read(CATALOG) or b""))
    later = table.set_column(table.column_names.index("status"), "status", pa.array(["postponed"]))
    later = later.append_column("mood", pa.array([{"x": 1}]))
    later = later.set_column(later.column_names.index("source"), "source", later["source"].cast(pa.large_string()))
    later = later.set_column(later.column_names.index("attempts"), "attempts", later["attempts"].cast(pa.int64()))
    write_table(place, later.select(later.column_names[::-1]))
    (found,) = Catalog(place).rows()
    assert found == row("a", status=Status.FAILED)
    again = Catalog(place)
    again.add(row("b"))
    again.fold()
    assert pq.read_table(io.BytesIO(place.read(CATALOG) or b"")).schema.names == SCHEMA.names


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (pa.table({"name": ["a"]}), "rows have no source or no status"),
        (pa.table({"source": [None], "status": ["x"]}), "rows have no source or no status"),
        (pa.table({"source": [[1]], "status": [3]}), "Arrow"),
    ],
)
def test_other_tables_are_not_taken_for_catalogs(table: Any, why: str, place: Place) -> None:
    write_table(place, table)
    with pytest.raises(OutputError, match=rf"this is not a catalog \({why}") as caught:
        Catalog(place)
    assert "rebuild_catalog=True" in caught.value.remedy


def test_others_can_query_it(place: Place, tmp_path: Path) -> None:
    catalog = Catalog(place)
    catalog.add(row("a", problems=(Problem(path="/x", kind="filter", message="unknown", remedy="none"),)))
    catalog.add(row("b", status=Status.FAILED, reason="not-hdf5: no"))
    catalog.fold()
    frame = pytest.importorskip("pandas").read_parquet(tmp_path / "refs" / CATALOG)
    assert list(frame.query("status == 'failed'").source) == ["b"]
    assert str(frame.time.dtype) == "datetime64[us, UTC]"
    assert frame.problems[0][0]["kind"] == "filter"


def test_a_name_that_is_not_utf8_can_be_written(place: Place) -> None:
    name = os.fsdecode(b"/data/a\xff.nc")
    catalog = Catalog(place)
    catalog.add(row(writable(name), reason=f"gone: {name} \ud800: no", found_by=name))
    catalog.fold()
    (found,) = Catalog(place).rows()
    assert found.source == found.found_by == writable(name) == "/data/a\\udcff.nc"
    assert found.reason == "gone: /data/a\\udcff.nc \\ud800: no"


def test_reading_a_catalog_does_not_import_pandas(tmp_path: Path) -> None:
    """It takes longer than everything else that `combine` does with a small index."""
    h5zarr.index(str(SAMPLES / "sst_*.nc"), tmp_path / "refs")
    code = "import sys, h5zarr; print(len(h5zarr.combine(sys.argv[1]).sources)); assert 'pandas' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "refs")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
