"""Locate the chunks of an array by their grid numbers, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.chunk_selection import Column
from h5zarr.zarr_model.grid import ChunkGrid
from h5zarr.zarr_model.hierarchy import ChunkLocations


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkRows:
    """The rows of a manifest, sorted by `number`: the position of a chunk in the grid, in row-major order.

    Row i is `nbytes[i]` bytes at `address[i]` of source `source` (one for all rows, or one per row). The chunks
    `inline_number` have the bytes `inline`.
    """

    number: Column
    address: Column
    nbytes: Column
    source: int | npt.NDArray[np.int32]
    inline_number: Column
    inline: tuple[bytes, ...]

    def find(self, wanted: Column) -> Column:
        """Return the row of each chunk; -1 if it is not referenced."""
        return _find(self.number, wanted)

    def find_inline(self, wanted: Column) -> Column:
        """Return the position of each chunk in `inline`; -1 if it is not inlined."""
        return _find(self.inline_number, wanted)


class ChunkTable:
    """The rows of an array, found when they are needed: all of them, or record by record if its manifest has records.

    Many threads may use it. If two need the same record at the same time, both read it, with the same result.
    """

    def __init__(self, grid: ChunkGrid, manifest: ChunkLocations) -> None:
        self._grid, self._manifest = grid, manifest
        self._all: ChunkRows | None = None
        self._records: dict[int, ChunkRows] = {}

    @property
    def state(self) -> str | None:
        """The state of the container that the rows are read from; None if they are in memory."""
        return self._manifest.state

    def __reduce__(self) -> Any:
        return ChunkTable, (self._grid, self._manifest)  # without what was read

    def everything(self) -> ChunkRows:
        """Return all rows."""
        if self._all is None:
            self._all = chunk_rows(self._grid, self._manifest)
        return self._all

    def rows(self, wanted: Column) -> ChunkRows:
        """Return rows that include those of the chunks with these numbers."""
        size = self._manifest.record_size
        if self._all is not None or size is None:
            return self.everything()
        records = np.unique(wanted // size).tolist()
        lacking = [number for number in records if number not in self._records]
        for number, found in zip(lacking, self._manifest.read_records(lacking) if lacking else (), strict=True):
            self._records[number] = chunk_rows(self._grid, found)
        joined = _join([self._records[number] for number in records])
        if len(records) * size >= self._grid.chunk_count:
            self._all = joined
        return joined


_NO_ROWS = ChunkRows(
    number=np.empty(0, np.int64),
    address=np.empty(0, np.int64),
    nbytes=np.empty(0, np.int64),
    source=np.empty(0, np.int32),
    inline_number=np.empty(0, np.int64),
    inline=(),
)


def _join(parts: Sequence[ChunkRows]) -> ChunkRows:
    """Return the rows of several records, which are in order."""
    if len(parts) == 1:
        return parts[0]
    parts = [_NO_ROWS, *parts]
    sources = [np.broadcast_to(np.asarray(part.source, np.int32), len(part.number)) for part in parts]
    return ChunkRows(
        number=np.concatenate([part.number for part in parts]),
        address=np.concatenate([part.address for part in parts]),
        nbytes=np.concatenate([part.nbytes for part in parts]),
        source=np.concatenate(sources),
        inline_number=np.concatenate([part.inline_number for part in parts]),
        inline=tuple(content for part in parts for content in part.inline),
    )


def chunk_rows(grid: ChunkGrid, manifest: ChunkLocations) -> ChunkRows:
    """Return the rows of an array's manifest, without chunks outside the grid, which cannot be selected."""
    number, kept = _number(manifest.index, grid)
    order = kept[np.argsort(number, kind="stable")] if (np.diff(number) < 0).any() else kept
    whole = len(order) == manifest.count and order is kept
    rows = slice(None) if whole else order
    inline_index = np.array(list(manifest.inline), np.int64).reshape(len(manifest.inline), len(grid.shape))
    inline_number, inline_kept = _number(inline_index, grid)
    inline_order = np.argsort(inline_number, kind="stable")
    contents = list(manifest.inline.values())
    return ChunkRows(
        number=np.sort(number),
        address=manifest.address[rows],
        nbytes=manifest.nbytes[rows],
        source=manifest.source if isinstance(manifest.source, int) else manifest.source[rows],
        inline_number=inline_number[inline_order],
        inline=tuple(contents[place] for place in inline_kept[inline_order].tolist()),
    )


def _number(index: Column, grid: ChunkGrid) -> tuple[Column, Column]:
    """Return the numbers of the chunks inside the grid, and their rows."""
    inside = np.flatnonzero(grid.contains(index))
    return grid.number(index if len(inside) == len(index) else index[inside]), inside


def _find(numbers: Column, wanted: Column) -> Column:
    if not len(numbers):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[place] == wanted, place, -1)
