"""Parts of a grid: boxes that cover it once, in row-major order."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from h5zarr.containers.icechunk.virtual_refs import block_shape

GRIDS = [(), (1,), (7,), (1000,), (3, 5), (10_000, 10, 10), (2, 3, 4, 5), (5, 5, 100_000), (1, 1000, 1000), (4, 0, 3)]


@pytest.mark.parametrize("most", [1, 2, 7, 60, 1000, 10**9])
@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_a_block_has_no_more_chunks_than_it_may_and_they_are_consecutive(grid: tuple[int, ...], most: int) -> None:
    shape = block_shape(grid, most)
    assert prod(shape) <= most
    assert all(1 <= size <= max(extent, 1) for size, extent in zip(shape, grid, strict=True))
    if 0 in grid or prod(grid) > 10**6:
        return
    numbers = np.arange(prod(grid)).reshape(grid)[tuple(slice(size) for size in shape)]
    np.testing.assert_array_equal(numbers.ravel(), np.arange(numbers.size))


@pytest.mark.parametrize(
    ("grid", "most", "shape"),
    [
        ((10_000, 10, 10), 60_000, (600, 10, 10)),
        ((10_000, 10, 10), 50, (1, 5, 10)),
        ((3, 4), 12, (3, 4)),
        ((3, 4), 11, (2, 4)),
        ((3, 4), 3, (1, 3)),
    ],
)
def test_a_block_is_as_large_as_may_be(grid: tuple[int, ...], most: int, shape: tuple[int, ...]) -> None:
    assert block_shape(grid, most) == shape
