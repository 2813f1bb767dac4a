"""The catalog of an index: a table of rows as Parquet, which any tool for tables can query.

While a run goes on, what is finished is added in small files of the same form, its *parts*; in the end, and now and
then, they are folded into the catalog. So whatever ends a run, the next one knows what was finished: it reads both. A
part has a name of its own, and is removed only by those who have folded it in: two runs at once lose nothing but time.
"""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from h5zarr.errors import OutputError, Problem
from h5zarr.indexing.place import STATE, Place
from h5zarr.indexing.rows import Known, Row, Status, writable
from h5zarr.io.source import Identity

T = TypeVar("T", Row, Known)
CATALOG = f"{STATE}/catalog.parquet"
PARTS = f"{STATE}/parts"
_MOST_READS = 10  # while others fold: then what was read has to do, and something is done twice
_PART = re.compile(rf"{PARTS}/\d+-\w+\.parquet")
_PROBLEM = pa.struct([(name, pa.string()) for name in ("path", "kind", "message", "remedy")])
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("found_by", pa.string()),
        pa.field("nbytes", pa.int64()),
        pa.field("etag", pa.string()),
        pa.field("mtime", pa.string()),
        pa.field("version", pa.string()),
        pa.field("output", pa.string()),
        pa.field("settings", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("remedy", pa.string()),
        pa.field("attempts", pa.int32()),
        pa.field("problems", pa.list_(_PROBLEM)),
        pa.field("arrays", pa.int64()),
        pa.field("chunks", pa.int64()),
        pa.field("requests", pa.int64()),
        pa.field("bytes_read", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("tool_version", pa.string()),
        pa.field("time", pa.timestamp("us", "UTC")),
    ]
)
_BATCH_ROWS = 10_000
_UNKNOWN = {"found_by": "", "output": "", "settings": "", "time": datetime.fromtimestamp(0, UTC)}
_STATUSES = frozenset(Status)
_IDENTITY = ("nbytes", "etag", "mtime", "version")
_KNOWN = ("source", "found_by", "output", "settings", "status", "attempts", *_IDENTITY)


class Catalog:
    """All rows, by source. What is added is written by `flush`, and folded into the one table by `fold`.

    Given `rows`, it is a new one, and what was there is only looked at to be removed. What has been written is kept as
    it stands in the files, which takes a tenth of the memory.
    """

    def __init__(self, place: Place, rows: Iterable[Row] | None = None) -> None:
        self._place = place
        self._added: dict[str, Row | None] = {row.source: row for row in rows or ()}  # None where one was taken out
        self._stored = _Stored(None, CATALOG)
        self._parts = {name: _Stored(None, name) for name in self._find_parts()}
        if rows is None:
            for _ in range(_MOST_READS):
                if self._read():
                    break

    def _find_parts(self) -> list[str]:
        """Return the names of the parts, in the order in which they were written."""
        return sorted(name for name in self._place.names(PARTS) if _PART.fullmatch(name))

    def _read(self) -> bool:
        """Read the table and the parts that are not in it yet. Return False where somebody has folded one meanwhile."""
        names = self._find_parts()
        self._stored = self._open(CATALOG)
        self._parts = {name: self._open(name) for name in names}
        return all(part.is_there for part in self._parts.values())  # else its rows are in a newer table than this one

    def _open(self, name: str) -> _Stored:
        stored = _Stored(self._place.read(name), f"{self._place.shown}/{name}")
        stored.check()
        return stored

    def rows(self) -> Iterator[Row]:
        """Yield all rows; those of files are made as they are asked for."""
        yield from (row for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.rows())

    def known(self) -> Iterator[Known]:
        """Yield of all rows what it takes to make a plan: much less than the rows themselves."""
        yield from (row.known for row in self._added.values() if row is not None)
        yield from self._newest(lambda stored: stored.known())

    def _newest(self, read: Callable[[_Stored], Iterator[T]]) -> Iterator[T]:
        """Yield what is in files, and in none that is newer."""
        seen = set(self._added)
        for part in reversed(self._parts.values()):
            found = [one for one in read(part) if one.source not in seen]
            yield from found
            seen.update(one.source for one in found)
        yield from (one for one in read(self._stored) if one.source not in seen)

    def sources(self) -> set[str]:
        """Return the names of all sources."""
        return {one.source for one in self.known()}

    def find(self, sources: Iterable[str]) -> list[Row]:
        """Return the rows of some sources."""
        wanted = set(sources)
        return [row for row in self.rows() if row.source in wanted] if wanted else []

    def add(self, row: Row) -> None:
        """Put a row in the place of what was known of its source."""
        self._added[row.source] = row

    def remove(self, source: str) -> None:
        """Take out what is known of a source: only `fold` writes that."""
        self._added[source] = None

    @property
    def unwritten_count(self) -> int:
        return len(self._added)

    @property
    def part_count(self) -> int:
        return len(self._parts)

    def flush(self) -> None:
        """Write what was added since the last time, as a part."""
        rows = [row for row in self._added.values() if row is not None]
        if not rows:
            return
        # Names sort as they were written, by whatever run: a clock that is wrong costs a row that is old, and no more.
        last = max((int(name.rpartition("/")[2].partition("-")[0]) for name in self._parts), default=0)
        name = f"{PARTS}/{last + 1:012d}-{secrets.token_hex(6)}.parquet"
        content = _encode(_table(rows))
        self._place.write(name, content)
        self._parts[name] = _Stored(content, name)
        self._added = {source: None for source, row in self._added.items() if row is None}

    def fold(self) -> None:
        """Write the one table, with all that was added, and remove the parts that are in it."""
        if not self._added and not self._parts:
            return
        tables = [_table(row for row in self._added.values() if row is not None)]
        seen = set(self._added)
        for stored in (*reversed(self._parts.values()), self._stored):
            table = stored.table()
            sources = table["source"].to_pylist()
            tables.append(table.filter(pa.array([source not in seen for source in sources], pa.bool_())))
            seen.update(sources)
        content = _encode(pa.concat_tables(tables).sort_by("source"))
        self._place.write(CATALOG, content)
        self._stored = _Stored(content, self._stored.shown)
        parts, self._parts, self._added = self._parts, {}, {}
        for name in parts:
            self._place.remove(name)


class _Stored:
    """The rows in a file, of which as much is decoded as is asked for; none where there is no file."""

    def __init__(self, content: bytes | None, shown: str) -> None:
        self._content = content
        self.shown = shown

    @property
    def is_there(self) -> bool:
        return self._content is not None

    def check(self) -> None:
        """Raise OutputError unless this is a table, each row of which has a source and a status."""
        for batch in self._batches(("source", "status")):
            with self._told():
                batch.validate(full=True)
                if batch.column("source").null_count or batch.column("status").null_count:
                    raise pa.ArrowInvalid("rows without source or status")

    def rows(self) -> Iterator[Row]:
        for batch in self._batches(SCHEMA.names):
            yield from map(_decode_row, batch.to_pylist())

    def known(self) -> Iterator[Known]:
        for batch in self._batches(_KNOWN):
            yield from _decode_known(batch)

    def table(self) -> Any:
        return pa.Table.from_batches(self._batches(SCHEMA.names), SCHEMA)

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield rows of these columns. What a later version has besides is left out; what an earlier lacked is null."""
        if self._content is None:
            return
        schema = pa.schema([SCHEMA.field(name) for name in names])
        with self._told():
            # Without buffers for what is to come, which take as much memory as all that is read.
            file = pq.ParquetFile(io.BytesIO(self._content), pre_buffer=False)
            there = set(file.schema_arrow.names)
            for batch in file.iter_batches(_BATCH_ROWS, columns=[name for name in names if name in there]):
                yield pa.RecordBatch.from_arrays([_column(batch, field) for field in schema], schema=schema)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            what = f"this is no catalog ({type(error).__name__})"
            remedy = "Make it anew from the outputs, with --rebuild-catalog."
            raise OutputError(self.shown, what, remedy=remedy) from None


def _column(batch: Any, field: Any) -> Any:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    return pa.nulls(len(batch), field.type)


def _table(rows: Iterable[Row]) -> Any:
    return pa.Table.from_pylist([_encode_row(row) for row in rows], SCHEMA)


def _encode(table: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _encode_row(row: Row) -> dict[str, Any]:
    # Not by asdict, which is slow, and would take the identity apart.
    told = {name: getattr(row, name) for name in SCHEMA.names if name not in (*_IDENTITY, "problems", "status")}
    told |= {name: writable(value) for name, value in told.items() if isinstance(value, str) and not value.isascii()}
    identity = {name: getattr(row.identity, name, None) for name in _IDENTITY}
    problems = [{name: writable(text) for name, text in asdict(problem).items()} for problem in row.problems]
    return {**told, **identity, "status": str(row.status), "problems": problems}


def _decode_known(batch: Any) -> Iterator[Known]:
    """Yield what makes a plan, a column at a time. Words that are in many rows are kept once."""
    columns = [column.to_pylist() for column in batch.columns]
    statuses = {str(status): status for status in Status}
    words: dict[str | None, str] = {None: ""}
    for source, found_by, output, settings, status, attempts, *told in zip(*columns, strict=True):
        identity = None if told[0] is None else Identity(**dict(zip(_IDENTITY, told, strict=True)))
        found_by, settings = words.setdefault(found_by, found_by), words.setdefault(settings, settings)
        # A status that a later version knows is tried again by this one.
        found = statuses.get(status, Status.FAILED)
        yield Known(source, found_by, identity, output or "", settings, found, attempts or 0)


def _decode_row(told: dict[str, Any]) -> Row:
    identity = {name: told.pop(name) for name in _IDENTITY}
    given = {name: value for name, value in told.items() if value is not None and name not in ("status", "problems")}
    return Row(
        **{**_UNKNOWN, **given},
        identity=None if identity["nbytes"] is None else Identity(**identity),
        # One that a later version knows is tried again by this one.
        status=Status(told["status"]) if told["status"] in _STATUSES else Status.FAILED,
        problems=tuple(Problem(**problem) for problem in told["problems"] or ()),
    )
