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
    sizes = np.fromiter((0 if one is None else one.nbytes for one in identities), np.int64, len(identities))
    is_known = np.fromiter((one is not None for one in identities), bool, len(identities))
    columns = {
        "url": list_texts(pyarrow, [_encode_url(url) for url in rows.texts]),
        "nbytes": make_integers(pyarrow, sizes, is_known),
        **{name: list_texts(pyarrow, [getattr(one, name, None) for one in identities]) for name in _STATED},
        **{name: _optional(pyarrow, rows.numbers(name)) for name in _NUMBERS},
        "at": _encode_ranges(pyarrow, pieces.ranges, places, len(rows.texts)),
        "lacks": _encode_lacks(pyarrow, pieces, places, len(rows.texts)),
    }
    out = pyarrow.BufferOutputStream()
    table = pyarrow.table(columns).replace_schema_metadata({"axes": json.dumps(pieces.ranges.axes)})
    pyarrow.parquet.write_table(table, out, compression="zstd", row_group_size=_ROW_GROUP)
    return memoryview(out.getvalue())


class _Rows:
    """Rows of the table. A file that is a URL, was read, and is part of the cube has one row for all of that."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.texts = list(urls)
        self._numbers: dict[str, dict[int, int]] = {name: {} for name in _NUMBERS}
        self._numbers["number"] = {number: number for number in range(len(urls))}
        self._known: dict[str, list[int]] = {}
        for row, url in enumerate(urls):
            self._known.setdefault(without_secrets(url), []).append(row)

    def add(self, kind: str, number: int, url: str) -> int:
        """Return the row of a file that has a number of some kind. Several with the same name have a row each."""
        shown, taken = without_secrets(url), self._numbers[kind]
        row = next((one for one in self._known.get(shown, ()) if one not in taken), len(self.texts))
        if row == len(self.texts):
            self.texts.append(shown)
            self._known.setdefault(shown, []).append(row)
        taken[row] = number
        return row

    def numbers(self, kind: str) -> Column:
        """Return the number of each row; -1 for none."""
        found = np.full(len(self.texts), -1, np.int64)
        taken = self._numbers[kind]
        found[list(taken)] = list(taken.values())
        return found


def _encode_url(url: str) -> str:
    """Return a URL as text that any reader of Parquet can decode."""
    return json.dumps(url) if url.startswith('"') or any("\ud800" <= letter <= "\udfff" for letter in url) else url


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
    _found: Any = field(default=None, repr=False)

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
        if self._found is None:
            self._found = _read_table(self.load())
        return self._found

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

    def _states(self, kind: str) -> _States:
        table, rows = self._table(), make_integers(import_pyarrow(), self._rows(kind))
        with _expecting_our_form():
            found = table.select(["url", "nbytes", *_STATED]).take(rows)
            return _States(*(column.to_pylist() for column in found.columns))

    def _expected(self) -> Sequence[Identity | None]:
        return _Identities(self._states("number"))

    def _sources(self) -> Sequence[SourceState]:
        return self._states("source")

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
class _States(Sequence[SourceState]):
    """The states of files, from columns."""

    urls: list[str]
    nbytes: list[int | None]
    etag: list[str | None]
    mtime: list[str | None]
    version: list[str | None]

    def __len__(self) -> int:
        return len(self.urls)

    def identity(self, number: int) -> Identity | None:
        """Return the state of a file; None if it is not known."""
        nbytes = self.nbytes[number]
        if nbytes is None:
            return None
        return Identity(nbytes=nbytes, etag=self.etag[number], mtime=self.mtime[number], version=self.version[number])

    @overload
    def __getitem__(self, number: int) -> SourceState: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SourceState]: ...
    def __getitem__(self, number: int | slice) -> SourceState | Sequence[SourceState]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        identity = self.identity(number)
        if identity is None:
            raise MalformedFile("the table of the files of the cube lacks the state of a file")
        return SourceState(_decode_url(self.urls[number]), identity)


@dataclass(frozen=True, slots=True, eq=False)
class _Identities(Sequence[Identity | None]):
    """The states of files, without their names."""

    states: _States

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, number: int) -> Identity | None: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Identity | None]: ...
    def __getitem__(self, number: int | slice) -> Identity | Sequence[Identity | None] | None:
        if isinstance(number, slice):
            return [self.states.identity(one) for one in range(len(self))[number]]
        return self.states.identity(number)


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
