"""The catalog of an index: a table of rows as Parquet, which any tool for tables can query.

While a run goes on, what is finished is added in small files of the same form, its *parts*; in the end, and now and
then, they are folded into the catalog. So whatever ends a run, the next one knows what was finished: it reads both. A
part has a name of its own, and is removed only by those who have folded it in: two runs at once lose nothing but time.
"""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from h5zarr.errors import OutputError, Problem
from h5zarr.indexing.place import STATE, Place
from h5zarr.indexing.rows import Row, Status, writable
from h5zarr.io.source import Identity

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
_UNKNOWN = {"found_by": "", "output": "", "settings": "", "time": datetime.fromtimestamp(0, UTC)}
_STATUSES = frozenset(Status)
_IDENTITY = ("nbytes", "etag", "mtime", "version")


class Catalog:
    """All rows, by source. What is added is written by `flush`, and folded into the one table by `fold`.

    Given `rows`, it is a new one, and what was there is only looked at to be removed.
    """

    def __init__(self, place: Place, rows: Iterable[Row] | None = None) -> None:
        self._place = place
        self._table = SCHEMA.empty_table()
        self._parts = self._find_parts()
        self._newer: dict[str, Row | None] = {row.source: row for row in rows or ()}  # None where one was taken out
        self._unwritten: dict[str, Row | None] = {}
        if rows is None:
            for _ in range(_MOST_READS):
                if self._read():
                    break
                self._parts = self._find_parts()

    def _find_parts(self) -> list[str]:
        """Return the names of the parts, in the order in which they were written."""
        return sorted(name for name in self._place.names(PARTS) if _PART.fullmatch(name))

    def _read(self) -> bool:
        """Read the table and the parts that are not in it yet. Return False where somebody has folded one meanwhile."""
        self._newer = {}
        content = self._place.read(CATALOG)
        if content is not None:
            self._table = _decode(content, f"{self._place.shown}/{CATALOG}")
        for name in self._parts:
            part = self._place.read(name)
            if part is None:
                return False  # its rows are in a table that is newer than the one above
            for row in _rows(_decode(part, f"{self._place.shown}/{name}")):
                self._newer[row.source] = row
        return True

    def __len__(self) -> int:
        known = set(self._table["source"].to_pylist())
        return len(known | {source for source, row in self._newer.items() if row}) - len(
            known & {source for source, row in self._newer.items() if row is None}
        )

    def rows(self) -> Iterator[Row]:
        """Yield all rows; those of the table are made as they are asked for."""
        for row in _rows(self._table):
            if row.source not in self._newer:
                yield row
        yield from (row for row in self._newer.values() if row is not None)

    def add(self, row: Row) -> None:
        """Put a row in the place of what was known of its source."""
        self._newer[row.source] = self._unwritten[row.source] = row

    def remove(self, source: str) -> None:
        """Take out what is known of a source: only `fold` writes that."""
        self._newer[source] = self._unwritten[source] = None

    @property
    def unwritten_count(self) -> int:
        return len(self._unwritten)

    @property
    def part_count(self) -> int:
        return len(self._parts)

    def flush(self) -> None:
        """Write what was added since the last time, as a part."""
        rows = [row for row in self._unwritten.values() if row is not None]
        if not rows:
            return
        # Names sort as they were written, by whatever run: a clock that is wrong costs a row that is old, and no more.
        last = self._parts[-1].rpartition("/")[2].partition("-")[0] if self._parts else "0"
        name = f"{PARTS}/{int(last) + 1:012d}-{secrets.token_hex(6)}.parquet"
        self._place.write(name, _encode(_table(rows)))
        self._parts.append(name)
        self._unwritten = {source: row for source, row in self._unwritten.items() if row is None}

    def fold(self) -> None:
        """Write the one table, with all that was added, and remove the parts that are in it."""
        if not self._newer and not self._parts:
            return
        mask = pa.array([source not in self._newer for source in self._table["source"].to_pylist()], pa.bool_())
        rows = [row for row in self._newer.values() if row is not None]
        merged = pa.concat_tables([self._table.filter(mask), _table(rows)]).sort_by("source")
        self._place.write(CATALOG, _encode(merged))
        self._table = merged
        parts, self._parts = self._parts, []
        self._newer, self._unwritten = {}, {}
        for name in parts:
            self._place.remove(name)


def _table(rows: Iterable[Row]) -> Any:
    return pa.Table.from_pylist([_encode_row(row) for row in rows], SCHEMA)


def _encode(table: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _decode(content: bytes, shown: str) -> Any:
    """Return the table in a file. What a later version has besides is left out, what an earlier one lacked is empty."""
    try:
        table = pq.read_table(io.BytesIO(content))
        columns = [table[name] if name in table.column_names else _nothing(name, len(table)) for name in SCHEMA.names]
        cast = [column.cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        made = pa.Table.from_arrays(cast, schema=SCHEMA)
        made.validate(full=True)  # all text is text
        if made["source"].null_count or made["status"].null_count:
            raise pa.ArrowInvalid("rows without source or status")
        return made
    except (pa.ArrowException, OSError) as error:
        what = f"this is no catalog ({type(error).__name__})"
        raise OutputError(shown, what, remedy="Make it anew from the outputs, with --rebuild-catalog.") from None


def _nothing(name: str, count: int) -> Any:
    return pa.chunked_array([pa.nulls(count, SCHEMA.field(name).type)])


def _encode_row(row: Row) -> dict[str, Any]:
    # Not by asdict, which is slow, and would take the identity apart.
    told = {name: getattr(row, name) for name in SCHEMA.names if name not in (*_IDENTITY, "problems", "status")}
    told |= {name: writable(value) for name, value in told.items() if isinstance(value, str) and not value.isascii()}
    identity = {name: getattr(row.identity, name, None) for name in _IDENTITY}
    problems = [{name: writable(text) for name, text in asdict(problem).items()} for problem in row.problems]
    return {**told, **identity, "status": str(row.status), "problems": problems}


def _rows(table: Any) -> Iterator[Row]:
    for batch in table.to_batches(max_chunksize=10_000):
        yield from map(_decode_row, batch.to_pylist())


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
