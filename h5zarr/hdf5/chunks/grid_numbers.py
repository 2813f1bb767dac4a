"""From a chunk's number in an array-like index to its place in the grid. Spec: VII.B."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.chunks.table import ChunkGrid


def grid_indexes(numbers: npt.NDArray[np.int64], grid: ChunkGrid, index: npt.NDArray[np.int64]) -> None:
    """Put the grid coordinates of the chunks with the given `numbers` into the rows of `index`.

    Numbers run over the largest grid that the dataset may have, the last axis fastest; the unlimited axis, where there
    is one, counts as the first, whatever its position.
    """
    limits = grid.max_grid_shape
    axes = sorted(range(grid.rank), key=lambda axis: limits[axis] is not None)
    rest = numbers
    for axis in reversed(axes):
        extent = limits[axis]
        if extent is None or axis == axes[0]:
            index[:, axis] = rest
        elif extent == 0:  # such a dataset has no chunks
            index[:, axis] = 0
        else:
            rest, index[:, axis] = np.divmod(rest, min(extent, np.iinfo(np.int64).max))
