"""Which chunks to compare: all of them, or a sample that has every kind; and how to read many at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from h5zarr.hierarchy import ArrayNode
from h5zarr.read.chunk_rows import chunk_rows, grid_shape

BLOCK_NBYTES = 32 << 20
_MOST_MISSING = 1000  # chunks that were never written are all alike


class Region(NamedTuple):
    """A part of an array, made of so many whole chunks."""

    part: tuple[slice, ...]
    chunk_count: int

    @property
    def where(self) -> str:
        """The part, as it is written in Python."""
        return f"[{', '.join(f'{one.start}:{one.stop}' for one in self.part)}]"


class Chosen(NamedTuple):
    """The parts of an array to compare, and how many chunks it has in all."""

    regions: list[Region]
    total: int


def choose(
    node: ArrayNode, element_nbytes: int, share: float | None, seed: int, block_nbytes: int = BLOCK_NBYTES
) -> Chosen:
    """Return what to compare of an array: everything, or about `share` of its chunks. The same for the same arguments.

    Chunks are compared in blocks of up to `block_nbytes`, or one by one where a chunk is larger, and in a sample.
    A sample always has the first and the last chunk, one at each edge, one that is referred to, one that is inlined,
    and one that is missing, where there are such. Of a grid that is nearly empty the missing ones are always a sample.
    """
    grid = grid_shape(node)
    total = prod(grid)
    if not total or 0 in node.shape:
        return Chosen([], 0)
    stored_count = node.manifest.count + len(node.manifest.inline)
    if not stored_count and prod(node.chunk_shape) * element_nbytes > block_nbytes:
        return Chosen(_beginnings(node, grid, element_nbytes, block_nbytes), total)
    if share is None and total - stored_count <= max(_MOST_MISSING, 3 * stored_count):
        return Chosen(list(_blocks(node, grid, element_nbytes, block_nbytes)), total)
    numbers = sorted(_sample(node, grid, total, share, random.Random(seed)))
    return Chosen([Region(_part(node, _index(number, grid)), 1) for number in numbers], total)


def _blocks(node: ArrayNode, grid: tuple[int, ...], element_nbytes: int, block_nbytes: int) -> Iterator[Region]:
    """Yield all of an array, in blocks of neighbouring chunks that fit into memory together."""
    counts = [1] * len(grid)
    nbytes = element_nbytes * prod(node.chunk_shape)
    for axis in reversed(range(len(grid))):
        counts[axis] = min(grid[axis], max(1, block_nbytes // max(1, nbytes)))
        nbytes *= counts[axis]
        if counts[axis] < grid[axis]:
            break
    steps = [range(0, extent, count) for extent, count in zip(grid, counts, strict=True)]
    for number in range(prod(len(step) for step in steps)):
        at = _index(number, tuple(len(step) for step in steps))
        first = tuple(step[place] for step, place in zip(steps, at, strict=True))
        last = tuple(min(start + count, extent) for start, count, extent in zip(first, counts, grid, strict=True))
        yield Region(_part(node, first, last), prod(end - start for start, end in zip(first, last, strict=True)))


def _beginnings(node: ArrayNode, grid: tuple[int, ...], element_nbytes: int, block_nbytes: int) -> list[Region]:
    """Return the beginning of the first chunk and of the last, of an array that was never written: it is all alike."""
    regions = []
    for number in sorted({0, prod(grid) - 1}):
        left = max(1, block_nbytes // element_nbytes)
        part = []
        for one in reversed(_part(node, _index(number, grid))):
            length = max(1, min(one.stop - one.start, left))
            part.append(slice(one.start, one.start + length))
            left //= length
        regions.append(Region(tuple(reversed(part)), 1))
    return regions


def _sample(node: ArrayNode, grid: tuple[int, ...], total: int, share: float | None, rng: random.Random) -> set[int]:
    """Return the numbers of chunks to compare, in row-major order of the grid."""
    rows = chunk_rows(node)
    chosen = {0, total - 1}
    stride = total
    for extent in grid:  # the last chunk along each axis, which may reach past the end
        stride //= extent
        chosen.add((extent - 1) * stride)
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
    """Return some chunks that are not stored: by chance, then one after the other where few are left."""
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


def _index(number: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for extent in reversed(grid):
        number, at = divmod(number, extent)
        index.append(at)
    return tuple(reversed(index))


def _part(node: ArrayNode, first: tuple[int, ...], last: tuple[int, ...] | None = None) -> tuple[slice, ...]:
    """Return the elements of the chunks from `first` up to `last`, or of one."""
    ends = last or tuple(at + 1 for at in first)
    return tuple(
        slice(start * chunk, min(end * chunk, extent))
        for start, end, chunk, extent in zip(first, ends, node.chunk_shape, node.shape, strict=True)
    )
