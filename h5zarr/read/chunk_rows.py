"""Where the chunks of an array are, found by their numbers in the grid, many at a time."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.hierarchy import ArrayNode
from h5zarr.io.ranges import Column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkRows:
    """The rows of a manifest, sorted by `number`: the position of a chunk in the grid, counted in row-major order.

    Row i is `nbytes[i]` bytes at `address[i]` of source `source` (one for all, or one for each). The chunks
    `inline_number` have the bytes `inline`.
    """

    number: Column
    address: Column
    nbytes: Column
    source: int | npt.NDArray[np.int32]
    inline_number: Column
    inline: tuple[bytes, ...]

    def find(self, wanted: Column) -> Column:
        """Return the row of each chunk; -1 where it is not referred to."""
        return _find(self.number, wanted)

    def find_inline(self, wanted: Column) -> Column:
        """Return which of `inline` each chunk is; -1 where it is none."""
        return _find(self.inline_number, wanted)


def grid_shape(node: ArrayNode) -> tuple[int, ...]:
    """Return how many chunks there are along each axis."""
    return tuple(-(-length // chunk) for length, chunk in zip(node.shape, node.chunk_shape, strict=True))


def chunk_rows(node: ArrayNode) -> ChunkRows:
    """Return the rows of an array's manifest. Chunks outside the grid are left out: nobody can ask for them."""
    grid = np.array(grid_shape(node), np.int64)
    if prod(grid.tolist()) > np.iinfo(np.int64).max:
        raise Unsupported(f"the grid of {'×'.join(map(str, grid))} chunks has more than can be counted")
    strides = np.append(np.cumprod(grid[:0:-1])[::-1], 1).astype(np.int64)[: len(grid)]
    manifest = node.manifest
    number, kept = _number(manifest.index, grid, strides)
    order = kept[np.argsort(number, kind="stable")] if (np.diff(number) < 0).any() else kept
    whole = len(order) == manifest.count and order is kept
    rows = slice(None) if whole else order
    inline_index = np.array(list(manifest.inline), np.int64).reshape(len(manifest.inline), len(grid))
    inline_number, inline_kept = _number(inline_index, grid, strides)
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


def _number(index: Column, grid: Column, strides: Column) -> tuple[Column, Column]:
    """Return the numbers of those chunks that lie in the grid, and which rows they are."""
    inside = np.flatnonzero(((index >= 0) & (index < grid)).all(axis=1))
    kept = index if len(inside) == len(index) else index[inside]
    number = kept @ strides if len(grid) else np.zeros(len(kept), np.int64)
    return number, inside


def _find(numbers: Column, wanted: Column) -> Column:
    if not len(numbers):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[place] == wanted, place, -1)
