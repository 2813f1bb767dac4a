"""The blocks of a remote source that are held in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.io.plan import Ranges


class BlockCache:
    """Disjoint blocks of one source, sorted by address. The least recently used are dropped first.

    A block has the bytes of one request, so sizes vary. Addresses are columns, so a round searches all blocks at once.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all blocks."""
        self.ranges: Ranges = np.empty((0, 2), dtype=np.int64)
        self._buffers: list[memoryview] = []
        self._used: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._round = 0

    @property
    def nbytes(self) -> int:
        """Number of cached bytes."""
        return sum(buffer.nbytes for buffer in self._buffers)

    def only(self, nbytes: int) -> memoryview | None:
        """Return the first `nbytes` bytes of the source if they are the only block, else None."""
        if len(self._buffers) != 1 or self._buffers[0].nbytes != nbytes or self.ranges[0, 0]:
            return None
        return self._buffers[0]

    def add(self, ranges: Ranges, buffers: list[bytes]) -> None:
        """Add `buffers`, the bytes of `ranges`. None of these bytes may be cached yet."""
        every = self._buffers + [memoryview(buffer) for buffer in buffers]
        joined = np.concatenate((self.ranges, ranges))
        order = np.argsort(joined[:, 0], kind="stable")
        self.ranges = joined[order]
        self._used = np.concatenate((self._used, np.full(len(ranges), self._round)))[order]
        self._buffers = [every[number] for number in order.tolist()]

    def holds(self, wanted: Ranges) -> npt.NDArray[np.bool_]:
        """Return for each range whether all of its bytes are cached; True for empty ranges."""
        # Count the cached bytes before both ends. Blocks are disjoint, so the difference is the count in the range.
        sizes = self.ranges[:, 1] - self.ranges[:, 0]
        before = np.concatenate(([0], np.cumsum(sizes)))

        def held_before(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
            number = np.searchsorted(self.ranges[:, 0], places, side="right")
            if not len(sizes):
                return np.zeros(len(places), np.int64)
            last = np.maximum(number - 1, 0)
            inside = np.clip(places - self.ranges[last, 0], 0, sizes[last])
            found: npt.NDArray[np.int64] = np.where(number > 0, before[last] + inside, 0)
            return found

        is_held: npt.NDArray[np.bool_] = (
            held_before(wanted[:, 1]) - held_before(wanted[:, 0]) == wanted[:, 1] - wanted[:, 0]
        )
        return is_held

    def take(self, wanted: Ranges) -> list[memoryview]:
        """Return one buffer for each range of `wanted`, in the same order. All of their bytes must be cached.

        A range inside one block is a view of it; a range across blocks is copied once.
        """
        self._round += 1
        firsts = np.searchsorted(self.ranges[:, 0], wanted[:, 0], side="right") - 1
        lasts = np.searchsorted(self.ranges[:, 0], wanted[:, 1], side="left") - 1
        starts = self.ranges[:, 0].tolist()
        views: list[memoryview] = []
        rows = zip(wanted[:, 0].tolist(), wanted[:, 1].tolist(), firsts.tolist(), lasts.tolist(), strict=True)
        for address, end, first, last in rows:
            if address == end:
                views.append(memoryview(b""))
            elif first == last:
                start = starts[first]
                views.append(self._buffers[first][address - start : end - start])
            else:
                views.append(self._join(address, end, first, last))
        self._used[firsts[wanted[:, 1] > wanted[:, 0]]] = self._round
        return views

    def trim(self, limit: int) -> None:
        """Drop the least recently used blocks until at most `limit` bytes are cached."""
        recent_first = np.argsort(-self._used, kind="stable")
        sizes = self.ranges[:, 1] - self.ranges[:, 0]
        if int(sizes.sum()) <= limit:
            return
        kept = np.sort(recent_first[np.cumsum(sizes[recent_first]) <= limit])
        self.ranges, self._used = self.ranges[kept], self._used[kept]
        self._buffers = [self._buffers[number] for number in kept.tolist()]

    def _join(self, address: int, end: int, first: int, last: int) -> memoryview:
        """Return the bytes from `address` to `end`, which lie in the blocks `first` to `last`."""
        self._used[first : last + 1] = self._round
        parts = self._buffers[first : last + 1]
        parts[0] = parts[0][address - int(self.ranges[first, 0]) :]
        parts[-1] = parts[-1][: end - int(self.ranges[last, 0])]
        return memoryview(b"".join(parts))
