"""From a chunk's number in an array-like index to its place in the grid. Spec: VII.B."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.table import ChunkGrid

_MOST = np.iinfo(np.int64).max


def grid_indexes(numbers: npt.NDArray[np.int64], grid: ChunkGrid, index: npt.NDArray[np.int64]) -> None:
    """Put the grid coordinates of the chunks with the given `numbers` into the rows of `index`.

    Numbers run over the largest grid that the dataset may have, the last axis fastest; the unlimited axis, where there
    is one, counts as the first, whatever its position.
    """
    limits, axes = grid.max_grid_shape, grid.numbered_axes
    rest = numbers
    for axis in axes[:0:-1]:
        extent = limits[axis]
        if extent is None:
            raise MalformedFile("an array-like chunk index of a dataset with several unlimited axes")
        rest, index[:, axis] = np.divmod(rest, max(1, min(extent, _MOST)))
    index[:, axes[0]] = rest
