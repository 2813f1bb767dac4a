"""What reading ahead has brought so far, from which follows how much more of it is worth while."""

from __future__ import annotations

import numpy as np

from h5zarr.io.plan import Ranges, subtract_ranges, total_nbytes, unite_ranges


class ReadAhead:
    """Counts the bytes of one source that were read before anybody wanted them, and those of them that somebody did."""

    def __init__(self) -> None:
        self.used_nbytes = 0
        self.spent_nbytes = 0
        self._wanted: Ranges = np.empty((0, 2), dtype=np.int64)

    def note_wanted(self, wanted: Ranges, held: Ranges) -> None:
        """Learn that the bytes of `wanted` are asked for. Both are tidy."""
        fresh = subtract_ranges(wanted, self._wanted)
        if len(fresh):
            self.used_nbytes += total_nbytes(fresh) - total_nbytes(subtract_ranges(fresh, held))
            self._wanted = unite_ranges(np.concatenate((self._wanted, fresh)))

    def credit(self, per_use: float) -> int:
        """Return how many bytes may be read ahead, if each that was used pays for `per_use` of them."""
        return max(0, int(per_use * self.used_nbytes) - self.spent_nbytes)
