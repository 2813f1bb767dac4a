from __future__ import annotations

import numpy as np

from h5zarr.io.plan import Ranges
from h5zarr.io.planned import ReadAhead


def ranges(*pairs: tuple[int, int]) -> Ranges:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def test_bytes_that_were_there_when_they_were_first_wanted_earn_credit() -> None:
    ahead = ReadAhead()
    held = ranges((0, 1000))
    ahead.note_wanted(ranges((900, 1100)), held)
    assert (ahead.used_nbytes, ahead.credit(16)) == (100, 1600)
    ahead.spent_nbytes += 1500
    assert ahead.credit(16) == 100
    ahead.spent_nbytes += 1500
    assert ahead.credit(16) == 0


def test_bytes_that_are_wanted_again_earn_nothing() -> None:
    ahead = ReadAhead()
    ahead.note_wanted(ranges((0, 100)), ranges())
    assert ahead.used_nbytes == 0
    ahead.note_wanted(ranges((50, 150)), ranges((0, 200)))
    assert ahead.used_nbytes == 50
    ahead.note_wanted(ranges((0, 150)), ranges((0, 200)))
    assert ahead.used_nbytes == 50
