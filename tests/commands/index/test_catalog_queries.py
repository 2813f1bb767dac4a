"""DuckDB, pandas and Polars read the catalog that a run wrote, with the same types, and give the same answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli.index import EXAMPLES
from h5zarr.commands.catalog.catalog import CATALOG
from h5zarr.commands.catalog.catalog_table import SCHEMA, encode_table, make_table
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.io.source import Identity
from tests.commands.index.jobs import SAMPLES, rows_of, served
from tests.servers import RangeServer

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

Query = Callable[[str], list[tuple[Any, ...]]]
TEXTS = [field.name for field in SCHEMA if str(field.type) == "string"]
NUMBERS = {field.name: str(field.type) for field in SCHEMA if str(field.type) in ("int32", "int64", "double")}
BEGAN = datetime.now(UTC)


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """The catalog of three runs over local and remote files. Some failed, have problems, are stale or are gone."""
    data, out = tmp_path / "data", tmp_path / "refs"
    for name, sample in {
        "2025/a.nc": "ocean.nc",
        "2025/b.nc": "ocean.nc",
        "2025/gone.nc": "ocean.nc",
        "2026/a.nc": "ocean.nc",
        "2026/types.nc": "netcdf4_types.nc",
        "2026/types.h5": "types_sequences_latest.h5",
    }.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / sample, data / name)
    (data / "2026" / "päge.nc").write_text("<html>")
    with ThreadPoolExecutor(2) as pool, RangeServer(served(2), latency=0) as server:
        h5zarr.index(data, out, executor=pool)
        (data / "2025" / "gone.nc").unlink()
        (data / "2025" / "b.nc").write_text("<html>")
        h5zarr.index(data, out, executor=pool)
        urls = [*map(server.url, server.files), server.url("/d/none.nc")]
        h5zarr.index(urls, out, executor=pool, found_by="urls")
    return str(out / CATALOG)


def in_duckdb(statement: str) -> Query:
    def ask(catalog: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'Asia/Kolkata'")  # that of the machine must not matter
            found: list[tuple[Any, ...]] = connection.sql(statement.format(catalog=catalog)).fetchall()
            return found

    return ask


def in_polars(choose: Callable[[Any], Any]) -> Query:
    return lambda catalog: choose(polars.scan_parquet(catalog)).collect().rows()


def in_pandas(choose: Callable[[Any], Any]) -> Query:
    return lambda catalog: list(choose(pandas.read_parquet(catalog)).itertuples(index=False, name=None))


def by_hand(choose: Callable[[list[Row]], Any]) -> Query:
    """Return what the rows say that h5zarr itself reads."""
    return lambda catalog: choose(sorted(rows_of(Path(catalog).parent.parent).values(), key=lambda row: row.source))


def count_by_directory(rows: list[Row]) -> list[tuple[Any, ...]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        if row.status == "indexed":
            found.setdefault(row.output.rpartition("/")[0], []).append(row.chunks)
    return [(name, len(counts), sum(counts)) for name, counts in sorted(found.items())]


QUERIES: dict[str, dict[str, Query]] = {
    "sources that failed, with the reason": {
        "h5zarr": by_hand(
            lambda rows: [
                (row.source, str(row.status), row.reason) for row in rows if row.status in ("failed", "stale")
            ]
        ),
        "duckdb": in_duckdb(
            "SELECT source, status, reason FROM '{catalog}' WHERE status IN ('failed', 'stale') ORDER BY source"
        ),
        "polars": in_polars(
            lambda rows: (
                rows.filter(polars.col("status").is_in(["failed", "stale"]))
                .sort("source")
                .select("source", "status", "reason")
            )
        ),
        "pandas": in_pandas(
            lambda rows: rows.query("status in ('failed', 'stale')").sort_values("source")[
                ["source", "status", "reason"]
            ]
        ),
    },
    "sources with problems": {
        "h5zarr": by_hand(
            lambda rows: [(row.output, len(row.problems)) for row in rows if row.status == "indexed with problems"]
        ),
        "duckdb": in_duckdb(
            "SELECT output, len(problems) FROM '{catalog}' WHERE status = 'indexed with problems' ORDER BY source"
        ),
        "polars": in_polars(
            lambda rows: (
                rows.filter(polars.col("status") == "indexed with problems")
                .sort("source")
                .select("output", polars.col("problems").list.len())
            )
        ),
        "pandas": in_pandas(
            lambda rows: (
                rows[rows.status == "indexed with problems"]
                .sort_values("source")[["output", "problems"]]
                .assign(problems=lambda some: some.problems.map(len))
            )
        ),
    },
    "chunks for each directory": {
        "h5zarr": by_hand(count_by_directory),
        "duckdb": in_duckdb(
            "SELECT regexp_replace(output, '/[^/]*$', '') AS directory, count(*), sum(chunks)::BIGINT FROM '{catalog}' "
            "WHERE status = 'indexed' GROUP BY directory ORDER BY directory"
        ),
        "polars": in_polars(
            lambda rows: (
                rows.filter(polars.col("status") == "indexed")
                .group_by(polars.col("output").str.replace("/[^/]*$", "").alias("directory"))
                .agg(polars.len().alias("files"), polars.col("chunks").sum())
                .sort("directory")
            )
        ),
        "pandas": in_pandas(
            lambda rows: (
                rows[rows.status == "indexed"]
                .assign(directory=lambda some: some.output.str.replace("/[^/]*$", "", regex=True))
                .groupby("directory", as_index=False)
                .agg(files=("output", "size"), chunks=("chunks", "sum"))
            )
        ),
    },
    "problems, one on a line": {
        "h5zarr": by_hand(lambda rows: [(row.source, one.path, one.kind) for row in rows for one in row.problems]),
        "duckdb": in_duckdb(
            "SELECT source, problem.path, problem.kind FROM '{catalog}', unnest(problems) AS several(problem) "
            "ORDER BY source, problem.path"
        ),
        "polars": in_polars(
            lambda rows: (
                rows.filter(polars.col("problems").list.len() > 0)
                .select("source", "problems")
                .explode("problems")
                .unnest("problems")
                .select("source", "path", "kind")
                .sort("source", "path")
            )
        ),
        "pandas": in_pandas(
            lambda rows: (
                rows[["source", "problems"]]
                .explode("problems")
                .dropna()
                .assign(
                    path=lambda some: [one["path"] for one in some.problems],
                    kind=lambda some: [one["kind"] for one in some.problems],
                )
                .drop(columns="problems")
                .sort_values(["source", "path"])
            )
        ),
    },
    "what the store did not tell": {
        "h5zarr": by_hand(
            lambda rows: [(row.source,) for row in rows if row.identity is None or row.identity.etag is None]
        ),
        "duckdb": in_duckdb("SELECT source FROM '{catalog}' WHERE etag IS NULL ORDER BY source"),
        "polars": in_polars(lambda rows: rows.filter(polars.col("etag").is_null()).sort("source").select("source")),
        "pandas": in_pandas(lambda rows: rows[rows.etag.isna()].sort_values("source")[["source"]]),
    },
    "when it was": {
        "h5zarr": by_hand(lambda rows: [(row.source, row.time.replace(tzinfo=None)) for row in rows]),
        "duckdb": in_duckdb("SELECT source, time AT TIME ZONE 'UTC' FROM '{catalog}' ORDER BY source"),
        "polars": in_polars(
            lambda rows: rows.sort("source").select("source", polars.col("time").dt.replace_time_zone(None))
        ),
        "pandas": in_pandas(
            lambda rows: rows.sort_values("source")[["source", "time"]].assign(
                time=lambda some: some.time.dt.tz_localize(None)
            )
        ),
    },
}


@pytest.mark.parametrize("what", QUERIES)
def test_all_give_the_same_answer(what: str, catalog: str) -> None:
    expected, *others = (ask(catalog) for ask in QUERIES[what].values())
    assert expected
    for answer in others:
        assert answer == expected


def test_a_run_has_written_all_there_is_to_ask_for(catalog: str) -> None:
    """Else the answers would be equal for want of rows."""
    rows = rows_of(Path(catalog).parent.parent).values()
    assert {row.status for row in rows} == set(Status)
    assert {len(row.problems) > 1 for row in rows} == {True, False}
    assert {row.identity is not None and row.identity.etag is not None for row in rows} == {True, False}
    assert any(row.identity is None for row in rows)
    assert any(not row.source.isascii() for row in rows)


def test_the_query_that_the_help_shows_finds_what_failed(catalog: str) -> None:
    (statement,) = (line.strip() for line in EXAMPLES.splitlines() if line.strip().startswith("SELECT "))
    expected = by_hand(lambda rows: [(row.source, row.reason) for row in rows if row.status == "failed"])(catalog)
    assert sorted(in_duckdb(statement.replace("refs/_h5zarr/catalog.parquet", "{catalog}"))(catalog)) == expected


@pytest.mark.parametrize("name", ["nbytes", "etag", "mtime", "version"])
def test_nulls_are_found_among_equal_values(name: str, tmp_path: Path) -> None:
    identity = Identity(nbytes=12, etag='"a"', mtime="2026", version="1")
    about: dict[str, Any] = {"found_by": "", "settings": "", "status": Status.INDEXED, "time": BEGAN}
    rows = [
        Row(source=str(number), identity=identity if number % 2 else None, output=f"{number}.json", **about)
        for number in range(6)
    ]
    path = str(tmp_path / "catalog.parquet")
    Path(path).write_bytes(encode_table(make_table(rows)))
    asked = {
        "duckdb": in_duckdb(f"SELECT source FROM '{{catalog}}' WHERE {name} IS NULL ORDER BY source"),
        "polars": in_polars(lambda some: some.filter(polars.col(name).is_null()).select("source").sort("source")),
        "pandas": in_pandas(lambda some: some[some[name].isna()][["source"]]),
    }
    assert {tool: ask(path) for tool, ask in asked.items()} == {tool: [("0",), ("2",), ("4",)] for tool in asked}


def test_types_are_those_of_duckdb(catalog: str) -> None:
    relation = duckdb.sql(f"SELECT * FROM '{catalog}'")
    found = dict(zip(relation.columns, map(str, relation.types), strict=True))
    assert list(found) == SCHEMA.names
    assert {found[name] for name in TEXTS} == {"VARCHAR"}
    assert {name: found[name] for name in NUMBERS} == {
        name: {"int32": "INTEGER", "int64": "BIGINT", "double": "DOUBLE"}[kind] for name, kind in NUMBERS.items()
    }
    assert found["problems"] == "STRUCT(path VARCHAR, kind VARCHAR, message VARCHAR, remedy VARCHAR)[]"
    assert found["time"] == "TIMESTAMP WITH TIME ZONE"


def test_types_are_those_of_polars(catalog: str) -> None:
    found = polars.read_parquet_schema(catalog)
    kinds = {"int32": polars.Int32, "int64": polars.Int64, "double": polars.Float64}
    assert list(found) == SCHEMA.names
    assert {found[name] for name in TEXTS} == {polars.String}
    assert {name: found[name] for name in NUMBERS} == {name: kinds[kind] for name, kind in NUMBERS.items()}
    problem = polars.Struct(dict.fromkeys(("path", "kind", "message", "remedy"), polars.String))
    assert found["problems"] == polars.List(problem)
    assert found["time"] == polars.Datetime("us", "UTC")


def test_types_are_those_of_pandas(catalog: str) -> None:
    frame = pandas.read_parquet(catalog)
    assert list(frame.columns) == SCHEMA.names
    assert all(pandas.api.types.is_string_dtype(frame[name].dropna()) for name in TEXTS)
    kinds = {"int32": "int32", "int64": "int64", "double": "float64"}
    whole = [name for name in NUMBERS if name != "nbytes"]
    assert {name: str(frame[name].dtype) for name in whole} == {name: kinds[NUMBERS[name]] for name in whole}
    assert str(frame.nbytes.dtype) == "float64"  # for want of the size of what was never there, as pandas has it
    assert str(frame.time.dtype) == "datetime64[us, UTC]"


def test_moments_are_those_of_the_run(catalog: str) -> None:
    newest = polars.scan_parquet(catalog).select(polars.col("time").max()).collect().item()
    assert newest.utcoffset() == timedelta(0)
    assert BEGAN <= newest <= datetime.now(UTC)
    assert pandas.read_parquet(catalog).time.max() == newest
    asked = "SELECT epoch_us(max(time)) FROM '{catalog}'"
    assert in_duckdb(asked)(catalog) == [((newest - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1),)]


def test_parts_of_a_run_that_was_stopped_are_asked_together_with_the_catalog(tmp_path: Path) -> None:
    """The parts have the same form, so a query during a run can read both."""
    for number in range(3):
        shutil.copy(SAMPLES / "ocean.nc", tmp_path / f"{number}.nc")
    seen: list[Row] = []
    with ThreadPoolExecutor(1) as pool:
        h5zarr.index(str(tmp_path / "0.nc"), tmp_path / "refs", executor=pool)
        stopping = {"on_row": seen.append, "is_stopped": lambda: len(seen) > 1}
        h5zarr.index(str(tmp_path / "*.nc"), tmp_path / "refs", executor=pool, at_once=1, **stopping)
    state = os.fspath((tmp_path / "refs" / CATALOG).parent)
    assert list((tmp_path / "refs" / CATALOG).parent.glob("parts/*.parquet"))
    rows = len(rows_of(tmp_path / "refs"))
    both = f"['{state}/catalog.parquet', '{state}/parts/*.parquet']"
    assert duckdb.sql(f"SELECT count(DISTINCT source) FROM read_parquet({both})").fetchall() == [(rows,)]
    scanned = polars.scan_parquet([f"{state}/catalog.parquet", f"{state}/parts/*.parquet"])
    assert scanned.select(polars.col("source").n_unique()).collect().item() == rows
