"""Choose the chunks to compare (all, or a sample of every kind), and read many at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from h5zarr.read.chunk_rows import chunk_rows
from h5zarr.zarr_model.grid import unravel
from h5zarr.zarr_model.hierarchy import ArrayNode

BLOCK_NBYTES = 32 << 20
_MOST_MISSING = 1000  # unwritten chunks are all alike


class Region(NamedTuple):
    """A region of an array, consisting of so many whole chunks."""

    part: tuple[slice, ...]
    chunk_count: int

    @property
    def where(self) -> str:
        """The region in Python's slice notation."""
        return f"[{', '.join(f'{one.start}:{one.stop}' for one in self.part)}]"


class Chosen(NamedTuple):
    """The regions of an array to compare, and its total number of chunks."""

    regions: list[Region]
    total: int


def choose(
    node: ArrayNode, element_nbytes: int, share: float | None, seed: int, block_nbytes: int = BLOCK_NBYTES
) -> Chosen:
    """Return the regions to compare: all of them, or about `share` of the chunks. Deterministic.

    Chunks are compared in blocks of up to `block_nbytes`, or one by one in a sample or if a chunk is larger. A sample
    always includes the first and last chunk, one at each edge, and one each that is referenced, inlined and missing, if
    there are such. In a nearly empty grid, the missing chunks are always sampled.
    """
    total = node.grid.chunk_count
    if not total or 0 in node.shape:
        return Chosen([], 0)
    stored_count = node.manifest.count + len(node.manifest.inline)
    if not stored_count and prod(node.grid.largest_shape) * element_nbytes > block_nbytes:
        return Chosen(_beginnings(node, element_nbytes, block_nbytes), total)
    if share is None and total - stored_count <= max(_MOST_MISSING, 3 * stored_count):
        return Chosen(list(_blocks(node, element_nbytes, block_nbytes)), total)
    numbers = sorted(_sample(node, total, share, random.Random(seed)))
    return Chosen([Region(node.grid.part(node.grid.index(number)), 1) for number in numbers], total)


def _blocks(node: ArrayNode, element_nbytes: int, block_nbytes: int) -> Iterator[Region]:
    """Yield the whole array in blocks of adjacent chunks that fit into memory together."""
    grid = node.grid.grid_shape
    counts = [1] * len(grid)
    nbytes = element_nbytes * prod(node.grid.largest_shape)
    for axis in reversed(range(len(grid))):
        counts[axis] = min(grid[axis], max(1, block_nbytes // max(1, nbytes)))
        nbytes *= counts[axis]
        if counts[axis] < grid[axis]:
            break
    steps = [range(0, extent, count) for extent, count in zip(grid, counts, strict=True)]
    for number in range(prod(len(step) for step in steps)):
        at = unravel(number, [len(step) for step in steps])
        first = tuple(step[place] for step, place in zip(steps, at, strict=True))
        last = tuple(min(start + count, extent) for start, count, extent in zip(first, counts, grid, strict=True))
        yield Region(node.grid.part(first, last), prod(end - start for start, end in zip(first, last, strict=True)))


def _beginnings(node: ArrayNode, element_nbytes: int, block_nbytes: int) -> list[Region]:
    """Return the starts of the first and last chunk of an unwritten array, which is the same everywhere."""
    regions = []
    for number in sorted({0, node.grid.chunk_count - 1}):
        left = max(1, block_nbytes // element_nbytes)
        part = []
        for one in reversed(node.grid.part(node.grid.index(number))):
            length = max(1, min(one.stop - one.start, left))
            part.append(slice(one.start, one.start + length))
            left //= length
        regions.append(Region(tuple(reversed(part)), 1))
    return regions


def _sample(node: ArrayNode, total: int, share: float | None, rng: random.Random) -> set[int]:
    """Return the numbers of the chunks to compare, in row-major order of the grid."""
    rows = chunk_rows(node.grid, node.manifest)
    chosen = {0, total - 1}
    for count, stride in zip(node.grid.grid_shape, node.grid.strides, strict=True):
        chosen.add((count - 1) * stride)  # the last chunk along each axis, which may extend past the end
    for numbers in (rows.number, rows.inline_number):
        if len(numbers):
            wanted = len(numbers) if share is None else max(1, round(share * len(numbers)))
            chosen.update(int(numbers[place]) for place in rng.sample(range(len(numbers)), wanted))
    missing = total - len(rows.number) - len(rows.inline_number)
    if missing:
        wanted = min(missing, _MOST_MISSING, max(1, round((share or 1) * missing)))
        stored = {*rows.number.tolist(), *rows.inline_number.tolist()}
        chosen.update(_find_missing(stored, total, wanted, rng))
    return chosen


def _find_missing(stored: set[int], total: int, wanted: int, rng: random.Random) -> set[int]:
    """Return some unstored chunks: at random, then sequentially if few are left."""
    found: set[int] = set()
    for _ in range(20 * wanted):
        if len(found) == wanted:
            return found
        number = rng.randrange(total)
        if number not in stored:
            found.add(number)
    for number in range(total):
        if len(found) == wanted:
            break
        if number not in stored:
            found.add(number)
    return found
