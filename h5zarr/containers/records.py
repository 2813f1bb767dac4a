"""Split the rows of a manifest into records: parts of the grid with a fixed number of chunks, in row-major order.

A Parquet file of references holds one record. No array here is as long as the manifest, unless that is unsorted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.io.ranges import Column
from h5zarr.zarr_model.hierarchy import ChunkLocations, Manifest

_SLAB = 1 << 16
_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The chunks of a record, which has `count` rows, one for each chunk of the grid that it covers.

    The chunk in row `place[i]` is `nbytes[i]` bytes at `address[i]` of the URL number `source` (one for all rows, or
    one per row). `inline` has the bytes of inlined chunks, by row. Other rows have no chunk.
    """

    count: int
    place: Column
    address: Column
    nbytes: Column
    source: int | npt.NDArray[np.int32]
    inline: Mapping[int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRecords:
    """The records of an array that have chunks: their `numbers`, ascending, and their starts in the manifest."""

    numbers: tuple[int, ...]
    size: int
    _manifest: ChunkLocations
    _grid: tuple[int, ...]
    _inline: Mapping[int, Mapping[int, bytes]]
    _starts: Mapping[int, int]
    _stops: Mapping[int, int]

    def rows(self, number: int) -> Rows:
        """Return the chunks of the record with this number."""
        first = number * self.size
        rows = slice(self._starts.get(number, 0), self._stops.get(number, 0))
        source = self._manifest.source
        return Rows(
            count=min(self.size, prod(self._grid) - first),
            place=number_chunks(self._manifest.index[rows], self._grid) - first,
            address=self._manifest.address[rows],
            nbytes=self._manifest.nbytes[rows],
            source=source if isinstance(source, int) else source[rows],
            inline=self._inline.get(number, {}),
        )

    @property
    def most(self) -> int:
        """The number of records."""
        return len(self.numbers)

    def identify(self) -> Iterator[bytes]:
        """Yield what the records depend on."""
        yield from identify(self._manifest)

    def __iter__(self) -> Iterator[tuple[int, Rows]]:
        """Yield the number of each record, and its rows."""
        for number in self.numbers:
            yield number, self.rows(number)


def identify(chunks: ChunkLocations) -> Iterator[bytes]:
    """Yield what references consist of."""
    for column in (chunks.index, chunks.address, chunks.nbytes, chunks.source):
        yield bytes(np.ascontiguousarray(column))
    for index, content in chunks.inline.items():
        yield repr(index).encode() + content


def spans_of(numbers: Sequence[int]) -> list[list[int]]:
    """Return ascending numbers as half-open ranges."""
    if not numbers:
        return []
    listed = np.array(numbers)
    breaks = np.flatnonzero(np.diff(listed) > 1)
    firsts = [int(listed[0]), *listed[breaks + 1].tolist()]
    return [[first, last + 1] for first, last in zip(firsts, [*listed[breaks].tolist(), int(listed[-1])], strict=True)]


def find_records(manifest: ChunkLocations, grid: tuple[int, ...], size: int) -> HeldRecords:
    """Return the records of `size` chunks each, without chunks outside the grid, which cannot be selected."""
    if prod(grid) > _MOST:
        shown = "×".join(map(str, grid))
        raise Unsupported(f"the grid of {shown} chunks is too large: chunk numbers do not fit into 64 bits")
    if not _is_in_order(manifest, grid):
        manifest = _arrange(manifest, grid)
    inline: dict[int, dict[int, bytes]] = {}
    for index, content in manifest.inline.items():
        if all(0 <= one < extent for one, extent in zip(index, grid, strict=True)):
            number = int(number_chunks(np.array([index], np.int64).reshape(1, len(grid)), grid)[0])
            inline.setdefault(number // size, {})[number % size] = content
    starts, stops = {}, {}
    begin = 0
    while begin < manifest.count:
        record = _number_of(manifest, grid, begin) // size
        bound = (record + 1) * size
        end = bisect_left(range(manifest.count), bound, lo=begin, key=lambda row: _number_of(manifest, grid, row))
        starts[record], stops[record] = begin, end
        begin = end
    return HeldRecords(
        numbers=tuple(sorted(starts.keys() | inline.keys())),
        size=size,
        _manifest=manifest,
        _grid=grid,
        _inline=inline,
        _starts=starts,
        _stops=stops,
    )


def number_chunks(index: Column, grid: tuple[int, ...]) -> Column:
    """Return the row-major positions of chunks in the grid."""
    strides = np.array([prod(grid[axis + 1 :]) for axis in range(len(grid))], np.int64)
    return index @ strides if len(grid) else np.zeros(len(index), np.int64)


def _number_of(manifest: ChunkLocations, grid: tuple[int, ...], row: int) -> int:
    number = 0
    for one, extent in zip(manifest.index[row].tolist(), grid, strict=True):
        number = number * extent + one
    return number


def _is_in_order(manifest: ChunkLocations, grid: tuple[int, ...]) -> bool:
    """Return whether all chunks are in the grid, in row-major order, as h5zarr's own are."""
    extents = np.array(grid, np.int64)
    last = -1
    for slab in _slabs(manifest.index):
        if not ((slab >= 0) & (slab < extents)).all():
            return False
        numbers = number_chunks(slab, grid)
        if numbers[0] <= last or not (numbers[1:] > numbers[:-1]).all():
            return False
        last = int(numbers[-1])
    return True


def _slabs(index: Column) -> Iterator[Column]:
    for begin in range(0, len(index), _SLAB):
        yield index[begin : begin + _SLAB]


def _arrange(manifest: ChunkLocations, grid: tuple[int, ...]) -> ChunkLocations:
    """Return the manifest in row-major order, without chunks outside the grid. Of duplicates, the last wins."""
    inside = np.flatnonzero(((manifest.index >= 0) & (manifest.index < np.array(grid, np.int64))).all(axis=1))
    numbers = number_chunks(manifest.index[inside], grid)
    order = np.argsort(numbers, kind="stable")
    is_last = np.append(np.diff(numbers[order]) > 0, True)[: len(order)]
    kept = inside[order[is_last]]
    source = manifest.source
    return Manifest(
        index=manifest.index[kept],
        address=manifest.address[kept],
        nbytes=manifest.nbytes[kept],
        source=source if isinstance(source, int) else source[kept],
        inline=manifest.inline,
    )
