"""Check that the keys of a version 1 B-tree lead to its chunks.

The HDF5 library searches chunks by these keys, and reads the fill value for a chunk that it does not find.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.btree1 import Entries

Keys = npt.NDArray[np.uint64]  # one row per key: the chunk's index, and the position inside an element

_FEW = 32  # number of keys up to which Python is faster than numpy
_SIZES_NBYTES = 8  # the chunk's size and filter mask, at the start of a key


class Ranges(NamedTuple):
    """The range of keys that each child node covers."""

    low: Keys
    high: Keys


class KeyCheck:
    """Checks a tree level by level, from the root down. `units` is the chunk shape, extended by the element size."""

    def __init__(self, units: tuple[int, ...]) -> None:
        self._units = np.array(units, np.uint64)
        self._within: Ranges | None = None

    def __call__(self, entries: Entries, *, is_leaf: bool) -> None:
        """Raise MalformedFile if a node has chunks outside the key range that its parent states."""
        first, last, end = (self._decode(rows) for rows in entries.edge_keys())
        wrong = ~_is_before(last, end)
        if self._within is not None:
            low, high = (keys[entries.is_used] for keys in self._within)
            wrong |= _is_before(first, low) | ~_is_before(last, high)
        if not is_leaf:
            self._within = self._ranges(entries, end)
            wrong = np.concatenate((wrong, ~_is_before(*self._within)))
        if wrong.any():
            raise MalformedFile("B-tree has chunks that its keys do not lead to", at=entries.address)

    def _ranges(self, entries: Entries, end: Keys) -> Ranges:
        """Return the key range of each child: from its own key to the next key of the node."""
        low = np.concatenate([self._decode(rows) for rows in entries.slabs()])
        high = np.roll(low, -1, axis=0)
        high[np.cumsum(entries.counts[entries.is_used]) - 1] = end
        return Ranges(low, high)

    def _decode(self, rows: npt.NDArray[np.uint8]) -> Keys:
        places = rows[:, _SIZES_NBYTES : _SIZES_NBYTES + 8 * len(self._units)]
        keys: Keys = np.ascontiguousarray(places).view("<u8") // self._units
        return keys


def _is_before(one: Keys, other: Keys) -> npt.NDArray[np.bool_]:
    """Return a mask: True where a key of `one` precedes that of `other`, compared axis by axis."""
    if len(one) < _FEW:
        return np.array([mine < theirs for mine, theirs in zip(one.tolist(), other.tolist(), strict=True)], np.bool_)
    before = np.zeros(len(one), np.bool_)
    same = np.ones(len(one), np.bool_)
    for axis in range(one.shape[1]):
        before |= same & (one[:, axis] < other[:, axis])
        same &= one[:, axis] == other[:, axis]
    return before
