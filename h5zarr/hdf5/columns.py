"""Decode integers of any width, one column at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.sizes import Sizes

UNDEFINED = -1  # marks the undefined address in a column of addresses, until its row is dropped


def uint_column(rows: npt.NDArray[np.uint8], start: int, width: int) -> npt.NDArray[np.int64]:
    """Return the little-endian integers in bytes `start` to `start + width` of each row.

    8-byte numbers from 2**63 on become negative. No valid size or address is that large.
    """
    return stored_column(rows, start, width).astype(np.int64, copy=False)


def stored_column(rows: npt.NDArray[np.uint8], start: int, width: int) -> npt.NDArray[Any]:
    """Return the same integers in a type of the stored width, without a copy if numpy has such a type."""
    if width in (1, 2, 4, 8):
        field = _field(start, width, rows.shape[1])
        values: npt.NDArray[Any] = np.ascontiguousarray(rows).view(field)["value"][:, 0]
        return values
    wide = np.zeros((len(rows), 8), np.uint8)
    wide[:, :width] = rows[:, start : start + width]
    return wide.view("<i8")[:, 0]


@lru_cache(maxsize=256)
def _field(start: int, width: int, row_nbytes: int) -> np.dtype[Any]:
    """Return a row type with one named integer field."""
    code = "<i8" if width == 8 else f"<u{width}"
    return np.dtype({"names": ["value"], "formats": [code], "offsets": [start], "itemsize": row_nbytes})


def address_column(rows: npt.NDArray[np.uint8], start: int, sizes: Sizes) -> npt.NDArray[np.int64]:
    """Return absolute addresses. The file's undefined address becomes `UNDEFINED`."""
    stored = uint_column(rows, start, sizes.offset_nbytes)
    undefined = -1 if sizes.offset_nbytes == 8 else (1 << 8 * sizes.offset_nbytes) - 1
    if sizes.base == 0 and undefined == UNDEFINED:
        return stored
    return np.where(stored == undefined, UNDEFINED, stored + sizes.base)


def pick_rows(
    nodes: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64], nbytes: int
) -> npt.NDArray[np.uint8]:
    """Return rows of `nbytes` bytes: from each node i the first `counts[i]` rows, which begin at byte `start`."""
    most = int(counts.max(initial=0))
    return _first_slots(nodes[:, start : start + most * nbytes], counts, nbytes)


def interleave_rows(
    nodes: npt.NDArray[np.uint8], start: int, counts: npt.NDArray[np.int64], between: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return the rows of each node, with row i of `between` inserted after the last row of node i.

    Rows are as wide as those of `between`. There may be none after the last node.
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
    # numpy copies opaque elements as a whole, not byte by byte.
    opaque = np.ascontiguousarray(slots).view(f"V{nbytes}")
    return opaque[np.arange(most) < counts[:, None]].view(np.uint8).reshape(-1, nbytes)
