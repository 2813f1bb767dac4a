"""Encode the table of the files of a cube, as a whole or in blocks; see `file_table.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from h5zarr.containers.columns import import_pyarrow, list_texts, make_integers, make_lists
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.file_table import NUMBERS, RANGE, STATED, TableBlock
from h5zarr.containers.piece_columns import PieceColumns, RangeColumns
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import without_secrets
from h5zarr.io.ranges import Column
from h5zarr.io.source import Identity

_ROW_GROUP = 100_000
_USUAL_IN_BLOCK, _MOST_IN_BLOCK = 4_096, 16_384


def encode_files(urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> memoryview:
    """Return the table of the files of a cube."""
    pyarrow, rows = import_pyarrow(), _TableRows(urls, provenance, layout)
    out, writer = pyarrow.BufferOutputStream(), None
    for first in range(0, max(1, len(rows)), _ROW_GROUP):  # so that not all texts are in memory twice
        table = rows.table(slice(first, first + _ROW_GROUP))
        writer = writer or pyarrow.parquet.ParquetWriter(out, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=_ROW_GROUP)
    if writer is not None:
        writer.close()
    return memoryview(out.getvalue())


def encode_blocks(urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> Iterator[TableBlock]:
    """Yield the table in blocks. A change of a few files changes few blocks: their names say where blocks begin."""
    pyarrow, rows = import_pyarrow(), _TableRows(urls, provenance, layout)
    for first, end in pairwise(_edges(rows.texts)):
        firsts = rows.first_numbers(slice(first, end))
        out = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(rows.table(slice(first, end), firsts), out, compression="zstd")
        yield TableBlock(memoryview(out.getvalue()), firsts)


def _edges(texts: Sequence[str]) -> list[int]:
    """Return the rows with which blocks begin, and the number of rows."""
    edges = [0]
    for row, text in enumerate(texts):
        if row - edges[-1] == _MOST_IN_BLOCK or (row and not crc32(text.encode("utf-8", "replace")) % _USUAL_IN_BLOCK):
            edges.append(row)
    return [*edges, len(texts)]


class _TableRows:
    """The rows of a table in columns, of which a part at a time is encoded."""

    def __init__(self, urls: Sequence[str], provenance: Provenance, layout: CubeLayout) -> None:
        rows = _Rows(urls)
        states = [rows.add("source", number, state.url) for number, state in enumerate(provenance.sources)]
        self._pieces = layout.columns
        piece_urls = self._pieces.urls
        self._places = np.array([rows.add("piece", number, url) for number, url in enumerate(piece_urls)], np.intp)
        self.texts = rows.texts
        self._identities: list[Identity | None] = [None] * len(rows.texts)
        for row, state in zip(states, provenance.sources, strict=True):
            self._identities[row] = state.identity
        self._numbers = [rows.numbers(name) for name in NUMBERS]

    def __len__(self) -> int:
        return len(self.texts)

    def first_numbers(self, part: slice) -> tuple[int, ...]:
        """Return the smallest number of each kind in some rows."""
        found = ([number for number in column[part].tolist() if number >= 0] for column in self._numbers)
        return tuple(min(numbers, default=0) for numbers in found)

    def table(self, part: slice, firsts: Sequence[int] = (0,) * len(NUMBERS)) -> Any:
        """Return some rows, with numbers that count from `firsts`."""
        pyarrow, (at, lacks) = import_pyarrow(), self._lists
        moved = (
            np.where(column[part] >= 0, column[part] - first, -1)
            for column, first in zip(self._numbers, firsts, strict=True)
        )
        columns = {
            **_encode_states(pyarrow, self.texts[part], self._identities[part]),
            **{name: _optional(pyarrow, column) for name, column in zip(NUMBERS, moved, strict=True)},
            "at": at[part],
            "lacks": lacks[part],
        }
        axes = {"axes": json.dumps(self._pieces.ranges.axes)}
        return pyarrow.table(columns).replace_schema_metadata(axes)

    @cached_property
    def _lists(self) -> tuple[Any, Any]:
        pyarrow = import_pyarrow()
        return (
            _encode_ranges(pyarrow, self._pieces.ranges, self._places, len(self.texts)),
            _encode_lacks(pyarrow, self._pieces, self._places, len(self.texts)),
        )


def _encode_states(pyarrow: Any, urls: Sequence[str], identities: Sequence[Identity | None]) -> dict[str, Any]:
    """Return the columns of names and states."""
    sizes = np.fromiter((0 if one is None else one.nbytes for one in identities), np.int64, len(identities))
    is_known = np.fromiter((one is not None for one in identities), bool, len(identities))
    return {
        "url": list_texts(pyarrow, [_encode_url(url) for url in urls]),
        "nbytes": make_integers(pyarrow, sizes, is_known),
        **{name: list_texts(pyarrow, [getattr(one, name, None) for one in identities]) for name in STATED},
    }


class _Rows:
    """Rows of the table. A file that is a URL, was read, and is part of the cube has one row for all of that."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.texts = list(urls)
        self._numbers = {name: [-1] * len(urls) for name in NUMBERS}
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
    numbers = [make_integers(pyarrow, getattr(ranges, name)[at]) for name in RANGE]
    struct = pyarrow.StructArray.from_arrays([axis, *numbers], names=["axis", *RANGE])
    return make_lists(pyarrow, np.concatenate([[0], np.cumsum(counts)]), struct)


def _encode_lacks(pyarrow: Any, pieces: PieceColumns, places: Column, count: int) -> Any:
    by_row = {int(places[number]): some for number, some in pieces.lacks.items()}
    counts = np.zeros(count, np.int64)
    for row, some in by_row.items():
        counts[row] = len(some)
    texts = [path for row in sorted(by_row) for path in by_row[row]]
    return make_lists(pyarrow, np.concatenate([[0], np.cumsum(counts)]), list_texts(pyarrow, texts))
