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
    return _first_slots(nodes[:, start : start + most * nbytes], counts, nbytes)


def interleave_rows(
    nodes: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64], between: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return the same rows, as wide as those of `between`, where row i of `between` follows the last row of node i.

    The last node may have none that follows.
    """
    most, nbytes = int(counts.max(initial=0)), between.shape[1]
    slots = np.empty((len(nodes), (most + 1) * nbytes), np.uint8)
    slots[:, :-nbytes] = nodes[:, start : start + most * nbytes]
    followed = np.arange(len(between))
    slots.reshape(len(nodes), most + 1, nbytes)[followed, counts[followed]] = between
    return _first_slots(slots, counts + (np.arange(len(nodes)) < len(between)), nbytes)


def _first_slots(slots: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64], nbytes: int) -> npt.NDArray[np.uint8]:
    """Return the first `counts[i]` slots of row i, as rows of `nbytes` bytes."""
    most = slots.shape[1] // nbytes
    if (counts == most).all():
        return slots.reshape(-1, nbytes)
    # Opaque, because those are copied whole, and not byte by byte.
    opaque = np.ascontiguousarray(slots).view(f"V{nbytes}")
    return opaque[np.arange(most) < counts[:, None]].view(np.uint8).reshape(-1, nbytes)
