"""Rows to a Parquet table, and back.

Columns are built from their buffers. Given lists, pyarrow imports pandas, which takes more time and memory than
building a table of ten thousand rows.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from h5zarr.commands.catalog.rows import Known, Row, Status, writable
from h5zarr.errors import OutputError, Problem
from h5zarr.io.source import Identity

_PROBLEM = pa.struct([(name, pa.string()) for name in ("path", "kind", "message", "remedy")])
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("found_by", pa.string()),
        pa.field("nbytes", pa.int64()),
        pa.field("etag", pa.string()),
        pa.field("mtime", pa.string()),
        pa.field("version", pa.string()),
        pa.field("related", pa.string()),
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
_GROUP_ROWS = 2_000  # encoding takes several times the memory of the rows encoded at a time
_EPOCH = datetime.fromtimestamp(0, UTC)
_UNKNOWN = {"found_by": "", "output": "", "settings": "", "time": _EPOCH}
_STATUSES = frozenset(Status)
_IDENTITY = ("nbytes", "etag", "mtime", "version")
_KNOWN = ("source", "found_by", "output", "settings", "status", "attempts", "related", *_IDENTITY)


def use_system_memory() -> None:
    """Make Arrow use the system's allocator: its own allocators hold several times the size of a catalog.

    This affects the whole process, so only the command line calls it, and users can override it.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


# --- rows to columns


def make_table(rows: Iterable[Row]) -> Any:
    """Return a table of rows."""
    left = iter(rows)
    batches = iter(lambda: list(islice(left, _BATCH_ROWS)), [])
    return pa.Table.from_batches((_make_batch(batch) for batch in batches), SCHEMA)


def _make_batch(rows: Sequence[Row]) -> Any:
    return pa.RecordBatch.from_arrays([_make_column(rows, field) for field in SCHEMA], schema=SCHEMA)


def _make_column(rows: Sequence[Row], field: Any) -> Any:
    name = field.name
    if name == "problems":
        return _make_problems([row.problems for row in rows])
    if name == "time":
        return _numbers([(row.time - _EPOCH) // timedelta(microseconds=1) for row in rows], field.type)
    values = [getattr(row.identity if name in _IDENTITY else row, name, None) for row in rows]
    return (_texts if field.type == pa.string() else _numbers)(values, field.type)


def _make_problems(problems: Sequence[Sequence[Problem]]) -> Any:
    every = [problem for several in problems for problem in several]
    columns = [_texts([getattr(problem, field.name) for problem in every], field.type) for field in _PROBLEM]
    struct = pa.StructArray.from_arrays(columns, fields=list(_PROBLEM))
    return pa.ListArray.from_arrays(_ends(list(map(len, problems))), struct)


def _texts(values: Sequence[str | None], kind: Any) -> Any:
    contents = [b"" if value is None else writable(value).encode() for value in values]
    ends = _ends(list(map(len, contents))).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [_are_there(values), ends, pa.py_buffer(b"".join(contents))])


def _numbers(values: Sequence[float | None], kind: Any) -> Any:
    width = {pa.int32(): np.int32, pa.float64(): np.float64}.get(kind, np.int64)
    content = np.array([0 if value is None else value for value in values], width)
    return pa.Array.from_buffers(kind, len(values), [_are_there(values), pa.py_buffer(content)])


def _ends(lengths: Sequence[int]) -> Any:
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError("a batch of rows has more than 2 GB of text")
    return pa.Array.from_buffers(pa.int32(), len(ends), [None, pa.py_buffer(ends.astype(np.int32))])


def _are_there(values: Sequence[object]) -> Any:
    """Return the validity bitmap, or None if every value is present."""
    if None not in values:
        return None
    return pa.py_buffer(np.packbits([value is not None for value in values], bitorder="little"))


# --- tables to files


def encode_table(table: Any) -> bytes:
    """Return a table as the bytes of a Parquet file.

    All columns use dictionaries, even if all values differ: DuckDB 2.0 reads a column as all null if it has no
    dictionary, some nulls, and otherwise a single value.
    """
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", row_group_size=_GROUP_ROWS)
    return sink.getvalue()


def merge_tables(tables: Iterable[Any], removed: Iterable[str]) -> Any:
    """Return several tables merged by source: the first row of each source wins, and removed sources are dropped."""
    whole = pa.concat_tables(tables)
    newest: dict[str, int] = {}
    for number, source in enumerate(text for chunk in whole["source"].chunks for text in chunk.to_pylist()):
        newest.setdefault(source, number)
    for source in removed:
        newest.pop(source, None)
    return whole.take(_numbers([newest[source] for source in sorted(newest)], pa.int64()))


# --- files to rows


class Stored:
    """The rows in a file, decoded on demand. Empty if there is no file."""

    def __init__(self, content: bytes | None, shown: str) -> None:
        self._content = content
        self.shown = shown

    @property
    def is_there(self) -> bool:
        return self._content is not None

    def check(self) -> None:
        """Raise OutputError unless this is a table whose rows all have a source and a status."""
        for batch in self._batches(("source", "status")):
            with self._arrow_errors():
                batch.validate(full=True)
            if batch.column("source").null_count or batch.column("status").null_count:
                raise self._not_a_catalog("rows have no source or no status")

    def rows(self) -> Iterator[Row]:
        for batch in self._batches(SCHEMA.names):
            columns = [_to_list(column) for column in batch.columns]
            for cells in zip(*columns, strict=True):
                yield _decode_row(dict(zip(SCHEMA.names, cells, strict=True)))

    def known(self) -> Iterator[Known]:
        for batch in self._batches(_KNOWN):
            yield from _decode_known(batch)

    def table(self) -> Any:
        return pa.Table.from_batches(self._batches(SCHEMA.names), SCHEMA)

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield batches of these columns. Columns of later versions are ignored; columns missing in earlier ones are
        null.
        """
        if self._content is None:
            return
        schema = pa.schema([SCHEMA.field(name) for name in names])
        with self._arrow_errors():
            # Without pre-buffering, which takes as much memory as everything that is read.
            file = pq.ParquetFile(io.BytesIO(self._content), pre_buffer=False)
            there = set(file.schema_arrow.names)
            for batch in file.iter_batches(
                _BATCH_ROWS, columns=[name for name in names if name in there], use_threads=False
            ):
                yield pa.RecordBatch.from_arrays([_find_column(batch, field) for field in schema], schema=schema)

    @contextmanager
    def _arrow_errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._not_a_catalog(type(error).__name__) from None

    def _not_a_catalog(self, why: str) -> OutputError:
        remedy = "To rebuild it from the outputs, run the index with rebuild_catalog=True."
        return OutputError(self.shown, f"this is not a catalog ({why})", remedy=remedy)


def _find_column(batch: Any, field: Any) -> Any:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    return pa.nulls(len(batch), field.type)


def _to_list(column: Any) -> list[Any]:
    """Return the values of a column. For times, pyarrow would import pandas, which takes longer than all the rest."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    counts = column.cast(pa.int64()).to_pylist()
    return [None if count is None else _EPOCH + timedelta(microseconds=count) for count in counts]


def _decode_known(batch: Any) -> Iterator[Known]:
    """Yield what planning needs, column by column. Repeated strings are stored once."""
    columns = [column.to_pylist() for column in batch.columns]
    statuses = {str(status): status for status in Status}
    words: dict[str | None, str] = {None: ""}
    for source, found_by, output, settings, status, attempts, related, *stated in zip(*columns, strict=True):
        identity = None if stated[0] is None else Identity(**dict(zip(_IDENTITY, stated, strict=True)))
        found_by, settings = words.setdefault(found_by, found_by), words.setdefault(settings, settings)
        # A status of a later version counts as failed, so it is tried again.
        found = statuses.get(status, Status.FAILED)
        yield Known(source, found_by, identity, output or "", settings, found, attempts or 0, related or "")


def _decode_row(cells: dict[str, Any]) -> Row:
    identity = {name: cells.pop(name) for name in _IDENTITY}
    given = {name: value for name, value in cells.items() if value is not None and name not in ("status", "problems")}
    return Row(
        **{**_UNKNOWN, **given},
        identity=None if identity["nbytes"] is None else Identity(**identity),
        # A status of a later version counts as failed, so it is tried again.
        status=Status(cells["status"]) if cells["status"] in _STATUSES else Status.FAILED,
        problems=tuple(Problem(**problem) for problem in cells["problems"] or ()),
    )
