"""Integers of any width, a column at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.sizes import Sizes

UNDEFINED = -1  # the undefined address in a column of addresses, before its rows are dropped


def uint_column(rows: npt.NDArray[np.uint8], start: int, width: int) -> npt.NDArray[np.int64]:
    """Return the little-endian integers that stand in bytes `start` to `start + width` of each row.

    Numbers of 8 bytes above 2**63 come out negative: no file has such a size or address.
    """
    if width == 8:
        return np.ascontiguousarray(rows[:, start : start + 8]).view("<i8")[:, 0]
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :width] = rows[:, start : start + width]
    return wide.view("<i8")[:, 0]


def address_column(rows: npt.NDArray[np.uint8], start: int, sizes: Sizes) -> npt.NDArray[np.int64]:
    """Return absolute addresses; `UNDEFINED` where the file has the undefined address."""
    stored = uint_column(rows, start, sizes.offset_nbytes)
    undefined = -1 if sizes.offset_nbytes == 8 else (1 << 8 * sizes.offset_nbytes) - 1
    return np.where(stored == undefined, UNDEFINED, stored + sizes.base)
