"""Parts of a grid of chunks that are boxes, and whose chunks are consecutive in row-major order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def block_shape(grid: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the extents of the largest such part with at most `most` chunks, and at least one."""
    shape = [1] * len(grid)
    for axis in reversed(range(len(grid))):
        within = prod(shape[axis + 1 :])
        shape[axis] = max(1, min(grid[axis], most // within))
        if shape[axis] < grid[axis]:
            break
    return tuple(shape)
