"""The files of a cube as a table in Parquet: their states and positions, for h5zarr and for queries.

A row for each URL, in the order of their numbers, then for other files that were read. `number` is that of the URL,
`source` counts the files whose state is known, and `piece` the files of the cube in their order along the axes; each is
missing if the row is none of that. `at` lists the ranges of a file: `position` on the axis, `start` in the file, and
`length`. `.zmetadata` has a digest of the table, so that it is never used with the metadata of another state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from typing import Any, overload

import numpy as np

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.parquet.columns import (
    are_there,
    import_pyarrow,
    list_texts,
    make_integers,
    make_lists,
    numbers_of,
    only_chunk,
)
from h5zarr.containers.piece_columns import PieceColumns, RangeColumns
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState, without_secrets
from h5zarr.errors import SURPRISES, MalformedFile
from h5zarr.io.ranges import Column
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.late_sequence import LateSequence

FILE_TABLE = "files.parquet"
_ROW_GROUP = 100_000
_STATED = ("etag", "mtime", "version")
_NUMBERS = ("number", "source", "piece")
_RANGE = ("position", "start", "length")


# --- writing


def encode_files(urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> memoryview:
    """Return the table of the files of a cube."""
    rows = _Rows(urls)
    states = [rows.add("source", number, state.url) for number, state in enumerate(provenance.sources)]
    pieces = layout.columns
    places = np.array([rows.add("piece", number, url) for number, url in enumerate(pieces.urls)], np.intp)
    identities: list[Identity | None] = [None] * len(rows.texts)
    for row, state in zip(states, provenance.sources, strict=True):
        identities[row] = state.identity
    pyarrow = import_pyarrow()
    at = _encode_ranges(pyarrow, pieces.ranges, places, len(rows.texts))
    lacks = _encode_lacks(pyarrow, pieces, places, len(rows.texts))
    numbers = {name: rows.numbers(name) for name in _NUMBERS}
    axes = {"axes": json.dumps(pieces.ranges.axes)}
    out, writer = pyarrow.BufferOutputStream(), None
    for first in range(0, max(1, len(rows.texts)), _ROW_GROUP):  # so that not all texts are in memory twice
        part = slice(first, first + _ROW_GROUP)
        columns = {
            **_encode_states(pyarrow, rows.texts[part], identities[part]),
            **{name: _optional(pyarrow, column[part]) for name, column in numbers.items()},
            "at": at[part],
            "lacks": lacks[part],
        }
        table = pyarrow.table(columns).replace_schema_metadata(axes)
        writer = writer or pyarrow.parquet.ParquetWriter(out, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=_ROW_GROUP)
    if writer is not None:
        writer.close()
    return memoryview(out.getvalue())


def _encode_states(pyarrow: Any, urls: Sequence[str], identities: Sequence[Identity | None]) -> dict[str, Any]:
    """Return the columns of names and states."""
    sizes = np.fromiter((0 if one is None else one.nbytes for one in identities), np.int64, len(identities))
    is_known = np.fromiter((one is not None for one in identities), bool, len(identities))
    return {
        "url": list_texts(pyarrow, [_encode_url(url) for url in urls]),
        "nbytes": make_integers(pyarrow, sizes, is_known),
        **{name: list_texts(pyarrow, [getattr(one, name, None) for one in identities]) for name in _STATED},
    }


class _Rows:
    """Rows of the table. A file that is a URL, was read, and is part of the cube has one row for all of that."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.texts = list(urls)
        self._numbers = {name: [-1] * len(urls) for name in _NUMBERS}
        self._numbers["number"] = list(range(len(urls)))
        self._known: dict[str, list[int]] | None = None

    def add(self, kind: str, number: int, url: str) -> int:
        """Return the row of a file that has a number of some kind. Several with the same name have a row each."""
        row = self._find(self._numbers[kind], number, url)
        self._numbers[kind][row] = number
        return row

    def _find(self, taken: list[int], number: int, url: str) -> int:
        # Usually, all files are numbered in the same way.
        if number < len(taken) and taken[number] < 0 and self.texts[number] == url:
            return number
        if self._known is None:
            self._known = {}
            for row, text in enumerate(self.texts):
                self._known.setdefault(without_secrets(text), []).append(row)
        shown = without_secrets(url)
        for row in self._known.get(shown, ()):
            if taken[row] < 0:
                return row
        self.texts.append(shown)
        for column in self._numbers.values():
            column.append(-1)
        self._known.setdefault(shown, []).append(len(self.texts) - 1)
        return len(self.texts) - 1

    def numbers(self, kind: str) -> Column:
        """Return the number of each row; -1 for none."""
        return np.array(self._numbers[kind], np.int64)


def _encode_url(url: str) -> str:
    """Return a URL as text that any reader of Parquet can decode."""
    is_plain = url.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in url)
    return url if is_plain and not url.startswith('"') else json.dumps(url)


def _decode_url(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _optional(pyarrow: Any, column: Column) -> Any:
    return make_integers(pyarrow, np.maximum(column, 0), column >= 0)


def _encode_ranges(pyarrow: Any, ranges: RangeColumns, places: Column, count: int) -> Any:
    """Return a list of ranges for each row. `places` has the rows of the files, which may be in another order."""
    order = np.argsort(places, kind="stable")
    counts = np.zeros(count, np.int64)
    counts[places] = np.diff(ranges.ends)
    per_file = counts[places[order]]
    at = np.repeat(ranges.ends[:-1][order] - np.cumsum(per_file) + per_file, per_file) + np.arange(per_file.sum())
    names = pyarrow.array([str(path) for path in ranges.axes], pyarrow.string())
    axis = names.take(make_integers(pyarrow, ranges.axis[at]))
    numbers = [make_integers(pyarrow, getattr(ranges, name)[at]) for name in _RANGE]
    struct = pyarrow.StructArray.from_arrays([axis, *numbers], names=["axis", *_RANGE])
    return make_lists(pyarrow, np.concatenate([[0], np.cumsum(counts)]), struct)


def _encode_lacks(pyarrow: Any, pieces: PieceColumns, places: Column, count: int) -> Any:
    by_row = {int(places[number]): some for number, some in pieces.lacks.items()}
    counts = np.zeros(count, np.int64)
    for row, some in by_row.items():
        counts[row] = len(some)
    texts = [path for row in sorted(by_row) for path in by_row[row]]
    return make_lists(pyarrow, np.concatenate([[0], np.cumsum(counts)]), list_texts(pyarrow, texts))


def describe_files(content: memoryview, urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> Json:
    """Return what `.zmetadata` says about the table, so that it is read only when it is needed."""
    counts = {"urls": len(urls), "sources": len(provenance.sources), "pieces": len(layout.pieces)}
    return {**counts, "first": urls[0] if urls else "", "digest": digest_of(content)}


def digest_of(content: bytes | memoryview) -> str:
    """Return the digest by which `.zmetadata` knows the table."""
    return sha256(content).hexdigest()[:32]


# --- reading


@dataclass(slots=True, eq=False)
class FileTable:
    """The table of the files of a cube, which is read when something of it is used. Pickles do not contain it.

    `axes` has the lengths of the axes. `load` reads the table.
    """

    axes: dict[str, int]
    counts: dict[str, int]
    load: Callable[[], bytes]
    _found: bytes | None = field(default=None, repr=False)

    def urls(self) -> LateSequence[str]:
        """The URLs in the order of their numbers."""
        return LateSequence(self.counts["urls"], self._urls)

    def expected(self) -> LateSequence[Identity | None]:
        """The recorded state of each URL."""
        return LateSequence(self.counts["urls"], self._expected)

    def sources(self) -> LateSequence[SourceState]:
        """The files that were read."""
        return LateSequence(self.counts["sources"], self._sources)

    def pieces(self) -> LateSequence[Any]:
        """The files of the cube."""
        return LateSequence(self.counts["pieces"], self._pieces)

    def __reduce__(self) -> Any:
        return FileTable, (self.axes, self.counts, self.load)

    def _table(self) -> Any:
        # As it is stored, because it takes a tenth of the memory, and is used only a few times.
        if self._found is None:
            self._found = self.load()
        return _read_table(self._found)

    def _rows(self, kind: str) -> Column:
        """Return the rows that have a number of some kind, in the order of these numbers."""
        table = self._table()
        with _expecting_our_form():
            column = only_chunk(table[kind])
            rows = np.flatnonzero(are_there(column))
            numbers = numbers_of(import_pyarrow(), column)[rows]
        if not np.array_equal(np.sort(numbers), np.arange(self.counts["urls" if kind == "number" else f"{kind}s"])):
            raise MalformedFile("the table of the files of the cube has other rows than .zmetadata says")
        return rows[np.argsort(numbers)]

    def _urls(self) -> Sequence[str]:
        table, rows = self._table(), self._rows("number").tolist()
        with _expecting_our_form():
            texts = table["url"].to_pylist()
            return tuple(_decode_url(texts[row]) for row in rows)

    def _identities(self, kind: str) -> _Identities:
        table, rows = self._table(), make_integers(import_pyarrow(), self._rows(kind))
        with _expecting_our_form():
            found = table.select(["nbytes", *_STATED]).take(rows)
            return _Identities(*(column.to_pylist() for column in found.columns))

    def _expected(self) -> Sequence[Identity | None]:
        return self._identities("number")

    def _sources(self) -> Sequence[SourceState]:
        table, rows = self._table(), self._rows("source").tolist()
        with _expecting_our_form():
            texts = table["url"].to_pylist()
        return _States([texts[row] for row in rows], self._identities("source"))

    def _pieces(self) -> PieceColumns:
        table, rows, pyarrow = self._table(), self._rows("piece"), import_pyarrow()
        with _expecting_our_form():
            taken = table.select(["url", "at", "lacks"]).take(make_integers(pyarrow, rows))
            at, lacks = only_chunk(taken["at"]), taken["lacks"].to_pylist()
            ends = numbers_of(pyarrow, at.offsets)
            struct = at.values
            position, start, length = (numbers_of(pyarrow, struct.field(name)) for name in _RANGE)
            coded = struct.field("axis").dictionary_encode()
            axes, axis = tuple(map(str, coded.dictionary.to_pylist())), numbers_of(pyarrow, coded.indices)
            extents = np.array([self.axes[path] for path in axes], np.int64)
            numbers = np.column_stack((position, start, length))
            if len(numbers) and ((numbers < 0).any() or (position + length > extents[axis]).any()):
                raise ValueError("a file of a cube is outside of its axis")
            urls = tuple(_decode_url(text) for text in taken["url"].to_pylist())
            columns = {"axis": axis, "position": position, "start": start, "length": length}
            lacking = {number: tuple(map(str, some)) for number, some in enumerate(lacks) if some}
            return PieceColumns(urls=urls, ranges=RangeColumns(axes=axes, ends=ends, **columns), lacks=lacking)


@dataclass(frozen=True, slots=True, eq=False)
class _Identities(Sequence[Identity | None]):
    """The states of files, from columns; None for a file whose state is not known."""

    nbytes: list[int | None]
    etag: list[str | None]
    mtime: list[str | None]
    version: list[str | None]

    def __len__(self) -> int:
        return len(self.nbytes)

    @overload
    def __getitem__(self, number: int) -> Identity | None: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Identity | None]: ...
    def __getitem__(self, number: int | slice) -> Identity | Sequence[Identity | None] | None:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        nbytes = self.nbytes[number]
        if nbytes is None:
            return None
        return Identity(nbytes=nbytes, etag=self.etag[number], mtime=self.mtime[number], version=self.version[number])


@dataclass(frozen=True, slots=True, eq=False)
class _States(Sequence[SourceState]):
    """The names and states of files."""

    texts: list[str]
    identities: _Identities

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, number: int) -> SourceState: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SourceState]: ...
    def __getitem__(self, number: int | slice) -> SourceState | Sequence[SourceState]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        identity = self.identities[number]
        if identity is None:
            raise MalformedFile("the table of the files of the cube lacks the state of a file")
        return SourceState(_decode_url(self.texts[number]), identity)


def _read_table(content: bytes) -> Any:
    with _expecting_our_form():
        file = import_pyarrow().parquet.ParquetFile(BytesIO(content))
        return file.read(use_threads=False).combine_chunks()


@contextmanager
def _expecting_our_form() -> Iterator[None]:
    pyarrow = import_pyarrow()
    try:
        yield
    except (*SURPRISES, pyarrow.ArrowException, OSError) as error:
        what = f"the table of the files of the cube does not have h5zarr's form ({type(error).__name__})"
        raise MalformedFile(what) from None
