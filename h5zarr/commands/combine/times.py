"""Convert the times of several files to one unit in which every value is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.calendars import REFORM, STEPS, TimeUnits, share_dates

Values = npt.NDArray[Any]
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class CommonTimes:
    """The common units, as text and as a step and an epoch."""

    units: str
    step: int
    epoch: int

    def convert(self, values: Values, units: TimeUnits) -> Values:
        """Return times in the common units, as 64-bit integers."""
        found = _count(values, units, self.step, self.epoch)
        assert found is not None
        return found


def find_common(times: Sequence[tuple[Values, TimeUnits]]) -> CommonTimes:
    """Return the longest unit in which all times are whole numbers. Its epoch is that of the first.

    The calendars standard and proleptic_gregorian may be mixed if all times are after the reform of 1582. Raises
    Unrepresentable if calendars differ otherwise, or if a time is not a whole number of nanoseconds.
    """
    first = times[0][1]
    calendars = sorted({units.calendar for _, units in times})
    differ = Unrepresentable(f"the calendars differ: {', '.join(calendars)}", remedy="Join files of one calendar.")
    if not share_dates(calendars):
        raise differ
    for name, step in STEPS.items():
        counted = [_count(values, units, step, first.epoch) for values, units in times]
        found = [one for one in counted if one is not None]
        if len(found) == len(counted):
            earliest = min((int(one.min()) for one in found if one.size), default=0)
            if len(calendars) > 1 and earliest * step + first.epoch < REFORM:
                raise differ
            return CommonTimes(first.in_steps(name), step, first.epoch)
    remedy = "Convert the files to one unit first, for example with cdo setreftime."
    raise Unrepresentable("no unit holds all times exactly", remedy=remedy)


def _count(values: Values, units: TimeUnits, step: int, epoch: int) -> Values | None:
    """Return the times in steps of `step` nanoseconds since `epoch`; None if one is not a whole number."""
    shift, rest = divmod(units.epoch - epoch, step)
    if rest or abs(shift) > _MOST:
        return None
    common = gcd(units.step, step)
    factor, divisor = units.step // common, step // common  # a time is value * factor / divisor steps
    if values.dtype.kind in "iu":
        if values.size and max(abs(int(values.min())), abs(int(values.max()))) * factor > _MOST:
            return None
        scaled = values.astype(np.int64) * factor
        return None if (scaled % divisor).any() else scaled // divisor + shift
    # A float counts as the nearest whole number of steps, if that number converts back to the same float.
    exact = values.astype(np.longdouble)
    counted = np.rint(exact * factor / divisor)
    if not np.isfinite(counted).all() or (np.abs(counted) > _MOST).any():
        return None
    if ((counted * divisor / factor).astype(values.dtype) != values).any():
        return None
    whole: Values = counted.astype(np.int64) + shift
    return whole
