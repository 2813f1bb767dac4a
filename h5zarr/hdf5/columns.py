"""Integers of any width, a column at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.sizes import Sizes

UNDEFINED = -1  # the undefined address in a column of addresses, before its rows are dropped


def uint_column(rows: npt.NDArray[np.uint8], start: int, width: int) -> npt.NDArray[np.int64]:
    """Return the little-endian integers that stand in bytes `start` to `start + width` of each row.

    Numbers of 8 bytes above 2**63 come out negative: no file has such a size or address.
    """
    return stored_column(rows, start, width).astype(np.int64, copy=False)


def stored_column(rows: npt.NDArray[np.uint8], start: int, width: int) -> npt.NDArray[Any]:
    """Return the same integers in a type of their own width, and without a copy where numpy has one: to be assigned."""
    if width in (1, 2, 4, 8):
        field = _field(start, width, rows.shape[1])
        values: npt.NDArray[Any] = np.ascontiguousarray(rows).view(field)["value"][:, 0]
        return values
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :width] = rows[:, start : start + width]
    return wide.view("<i8")[:, 0]


@lru_cache(maxsize=256)
def _field(start: int, width: int, row_nbytes: int) -> np.dtype[Any]:
    """Return a type of rows in which one field, an integer, has a name."""
    code = "<i8" if width == 8 else f"<u{width}"
    return np.dtype({"names": ["value"], "formats": [code], "offsets": [start], "itemsize": row_nbytes})


def address_column(rows: npt.NDArray[np.uint8], start: int, sizes: Sizes) -> npt.NDArray[np.int64]:
    """Return absolute addresses; `UNDEFINED` where the file has the undefined address."""
    stored = uint_column(rows, start, sizes.offset_nbytes)
    undefined = -1 if sizes.offset_nbytes == 8 else (1 << 8 * sizes.offset_nbytes) - 1
    if sizes.base == 0 and undefined == UNDEFINED:
        return stored
    return np.where(stored == undefined, UNDEFINED, stored + sizes.base)


def pick_rows(
    nodes: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64], nbytes: int
) -> npt.NDArray[np.uint8]:
    """Return rows of `nbytes` bytes, which stand from `start` on in each node: the first `counts[i]` of node i."""
    most = int(counts.max(initial=0))
    if most == 0:
        return np.empty((0, nbytes), np.uint8)
    slots = nodes.view(_slots(start, nbytes, most, nodes.shape[1]))["rows"].reshape(len(nodes), most)
    return slots[np.arange(most) < counts[:, None]].view(np.uint8).reshape(-1, nbytes)


@lru_cache(maxsize=256)
def _slots(start: int, nbytes: int, count: int, node_nbytes: int) -> np.dtype[Any]:
    """Return a type of nodes that hold `count` rows: opaque, because those are copied whole, and not byte by byte."""
    layout = {"names": ["rows"], "formats": [(f"V{nbytes}", count)], "offsets": [start], "itemsize": node_nbytes}
    return np.dtype(layout)  # type: ignore[call-overload, no-any-return]
