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
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from typing import Any, overload

import numpy as np

from h5zarr.containers.columns import are_there, import_pyarrow, make_integers, numbers_of, only_chunk
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.piece_columns import PieceColumns, RangeColumns
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import LateFiles
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import SURPRISES, MalformedFile
from h5zarr.io.ranges import Column
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.late_sequence import LateSequence

STATED = ("etag", "mtime", "version")
NUMBERS = ("number", "source", "piece")
RANGE = ("position", "start", "length")
_COUNTED = ("urls", "sources", "pieces")


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A part of the table. Its numbers of each kind count from the one in `firsts`."""

    content: bytes | memoryview
    firsts: tuple[int, ...] = (0,) * len(NUMBERS)


def describe_files(urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> dict[str, Json]:
    """Return what the metadata say about the table, so that it is read only when it is needed."""
    counts = {"urls": len(urls), "sources": len(provenance.sources), "pieces": len(layout.pieces)}
    return {**counts, "first": urls[0] if urls else ""}


def digest_of(content: bytes | memoryview) -> str:
    """Return the digest by which the metadata know a table."""
    return sha256(content).hexdigest()[:32]


def not_described() -> MalformedFile:
    """Return the error for metadata that describe no table."""
    return MalformedFile("the table of the files of the cube is not described in h5zarr's form")


def find_late_files(
    described: Json, provenance: Provenance, load: Callable[[], Sequence[TableBlock]]
) -> tuple[Provenance, LateSequence[str], LateFiles]:
    """Return provenance, URLs and states of files that are read with `load` when they are needed."""
    cube = provenance.cube
    counts = {kind: described.get(kind) for kind in _COUNTED}
    is_ours = cube is not None and all(type(count) is int and count >= 0 for count in counts.values())
    if not is_ours or cube is None or not isinstance(described.get("first"), str):
        raise not_described()
    table = FileTable(axes=dict(cube.axes), counts=counts, load=load)
    found = replace(provenance, sources=table.sources(), cube=replace(cube, pieces=table.pieces()))
    return found, table.urls(), LateFiles(described["first"], table.expected())


@dataclass(slots=True, eq=False)
class FileTable:
    """The table of the files of a cube, which is read when something of it is used. Pickles do not contain it.

    `axes` has the lengths of the axes. `load` reads the table.
    """

    axes: dict[str, int]
    counts: dict[str, int]
    load: Callable[[], Sequence[TableBlock]]
    _found: Sequence[TableBlock] | None = field(default=None, repr=False)
    _names: list[str] | None = field(default=None, repr=False)
    _known: tuple[Column, list[Identity | None]] | None = field(default=None, repr=False)

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

    def _table(self, *names: str) -> Any:
        """Return some columns."""
        # As it is stored, because it takes a tenth of the memory, and is used only a few times.
        if self._found is None:
            self._found = self.load()
        return _read_table(self._found, names)

    def _urls_of(self, rows: Column) -> tuple[str, ...]:
        """Return the names in some rows. Usually the same rows are wanted several times, so the text is shared."""
        if self._names is None:
            table = self._table("url")
            with _expecting_our_form():
                self._names = list(map(_decode_url, table["url"].to_pylist()))
        with _expecting_our_form():  # columns of a damaged table may have different lengths
            return tuple(map(self._names.__getitem__, rows.tolist()))

    def _rows(self, kind: str) -> Column:
        """Return the rows that have a number of some kind, in the order of these numbers."""
        table = self._table(kind)
        with _expecting_our_form():
            column = only_chunk(table[kind])
            rows = np.flatnonzero(are_there(column))
            numbers = numbers_of(import_pyarrow(), column)[rows]
        if not np.array_equal(np.sort(numbers), np.arange(self.counts["urls" if kind == "number" else f"{kind}s"])):
            raise MalformedFile("the table of the files of the cube has other rows than .zmetadata says")
        return rows[np.argsort(numbers)]

    def _urls(self) -> Sequence[str]:
        return self._urls_of(self._rows("number"))

    def _identities(self, kind: str) -> list[Identity | None]:
        rows = self._rows(kind)
        if self._known is None or not np.array_equal(self._known[0], rows):
            table = self._table("nbytes", *STATED)
            with _expecting_our_form():
                found = table.take(make_integers(import_pyarrow(), rows))
                stored = zip(*(column.to_pylist() for column in found.columns), strict=True)
                self._known = rows, [None if one[0] is None else _identity(*one) for one in stored]
        return self._known[1]

    def _expected(self) -> Sequence[Identity | None]:
        return self._identities("number")

    def _sources(self) -> Sequence[SourceState]:
        return _States(self._urls_of(self._rows("source")), self._identities("source"))

    def _pieces(self) -> PieceColumns:
        rows, table, pyarrow = self._rows("piece"), self._table("at", "lacks"), import_pyarrow()
        with _expecting_our_form():
            taken = table.take(make_integers(pyarrow, rows))
            at, lacks = only_chunk(taken["at"]), taken["lacks"].to_pylist()
            ends = numbers_of(pyarrow, at.offsets)
            struct = at.values
            position, start, length = (numbers_of(pyarrow, struct.field(name)) for name in RANGE)
            coded = struct.field("axis").dictionary_encode()
            axes, axis = tuple(map(str, coded.dictionary.to_pylist())), numbers_of(pyarrow, coded.indices)
            extents = np.array([self.axes[path] for path in axes], np.int64)
            numbers = np.column_stack((position, start, length))
            if len(numbers) and ((numbers < 0).any() or (position + length > extents[axis]).any()):
                raise ValueError("a file of a cube is outside of its axis")
            columns = {"axis": axis, "position": position, "start": start, "length": length}
            lacking = {number: tuple(map(str, some)) for number, some in enumerate(lacks) if some}
            ranges = RangeColumns(axes=axes, ends=ends, **columns)
            return PieceColumns(urls=self._urls_of(rows), ranges=ranges, lacks=lacking)


@dataclass(frozen=True, slots=True, eq=False)
class _States(Sequence[SourceState]):
    """The names and states of files."""

    urls: Sequence[str]
    identities: Sequence[Identity | None]

    def __len__(self) -> int:
        return len(self.urls)

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
        return SourceState(self.urls[number], identity)


def _read_table(blocks: Sequence[TableBlock], names: Sequence[str]) -> Any:
    pyarrow = import_pyarrow()
    with _expecting_our_form():
        return pyarrow.concat_tables([_read_block(pyarrow, block, names) for block in blocks]).combine_chunks()


def _read_block(pyarrow: Any, block: TableBlock, names: Sequence[str]) -> Any:
    file = pyarrow.parquet.ParquetFile(BytesIO(block.content))
    table = file.read(columns=list(names), use_threads=False).select(names).combine_chunks()
    for name, first in zip(NUMBERS, block.firsts, strict=True):
        if first and name in names and len(table):
            column = only_chunk(table[name])
            moved = make_integers(pyarrow, numbers_of(pyarrow, column) + first, are_there(column))
            table = table.set_column(table.schema.get_field_index(name), name, moved)
    return table


@contextmanager
def _expecting_our_form() -> Iterator[None]:
    pyarrow = import_pyarrow()
    try:
        yield
    except (*SURPRISES, pyarrow.ArrowException, OSError) as error:
        what = f"the table of the files of the cube does not have h5zarr's form ({type(error).__name__})"
        raise MalformedFile(what) from None


def _identity(nbytes: int, etag: str | None, mtime: str | None, version: str | None) -> Identity:
    return Identity(nbytes=nbytes, etag=etag, mtime=mtime, version=version)


def _decode_url(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
