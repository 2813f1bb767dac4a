"""Convert the times of several files to one unit in which every value is exact.

Whole numbers are exact. Floating-point numbers mean the time that xarray decodes them to: in the calendars of numpy, a
number of nanoseconds without its fraction; in others, the nearest microsecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.calendars import DAY, REFORM, SECOND, STEPS, TimeUnits, count_days, share_dates

Values = npt.NDArray[Any]
_MOST = 2**63 - 2**10  # the largest number, apart from those that mark missing data
_MICROSECOND = STEPS["microseconds"]
_UNIX = "1970-01-01"


@dataclass(frozen=True, slots=True)
class CommonTimes:
    """The common units, as text and as a step and an epoch."""

    units: str
    step: int
    epoch: int

    def convert(self, values: Values, units: TimeUnits) -> Values:
        """Return times in the common units, as 64-bit integers."""
        found = count_steps(values, units, self.step, self.epoch)
        assert found is not None
        return found


def find_common(times: Sequence[tuple[Values, TimeUnits]]) -> CommonTimes:
    """Return the longest unit in which all times are whole numbers. Its epoch is that of the first, if possible.

    The calendars standard and proleptic_gregorian may be mixed if all times are after the reform of 1582. Raises
    Unrepresentable if calendars differ otherwise, or if a time is too far away or not a number.
    """
    calendars = sorted({units.calendar for _, units in times})
    differ = Unrepresentable(f"the calendars differ: {', '.join(calendars)}", remedy="Join files of one calendar.")
    if not share_dates(calendars):
        raise differ
    decoded = [(_decode(values, units), units.epoch) for values, units in times]
    for common in _candidates(times[0][1]):
        counted = [_count(exact, epoch, common.step, common.epoch) for exact, epoch in decoded]
        found = [one for one in counted if one is not None]
        if len(found) == len(counted):
            earliest = min((int(one.min()) for one in found if one.size), default=0)
            if len(calendars) > 1 and earliest * common.step + common.epoch < REFORM:
                raise differ
            return common
    remedy = "Convert the files to one unit first, for example with cdo setreftime."
    raise Unrepresentable("no unit holds all times exactly", remedy=remedy)


def count_steps(values: Values, units: TimeUnits, step: int, epoch: int) -> Values | None:
    """Return times in steps of `step` nanoseconds since `epoch`; None if one is not a whole number."""
    return _count(_decode(values, units), units.epoch, step, epoch)


def _candidates(first: TimeUnits) -> Iterator[CommonTimes]:
    """Return the units to try: the longest first, with the epoch of the first file; then nanoseconds since 1970."""
    for name, step in STEPS.items():
        yield CommonTimes(first.in_steps(name), step, first.epoch)
    if first.is_of_numpy:
        days = count_days(first.calendar, 1970, 1, 1) or 0
        yield CommonTimes(f"nanoseconds since {_UNIX}", 1, days * DAY)


@dataclass(frozen=True, slots=True, eq=False)
class _Exact:
    """Times as whole numbers of `step` nanoseconds since the epoch of their units; None if one is not a number."""

    counts: Values | None
    step: int


def _decode(values: Values, units: TimeUnits) -> _Exact:
    """Return times as xarray decodes them."""
    if values.dtype.kind in "iu":
        is_small = not values.size or int(values.max()) <= _MOST
        return _Exact(values.astype(np.int64) if is_small else None, units.step)
    if not np.isfinite(values).all():
        return _Exact(None, 1)
    if units.is_of_numpy:
        nanoseconds = values.astype(np.float64) * np.int64(units.step)
        if _are_of_numpy(nanoseconds, units):
            return _Exact(nanoseconds.astype(np.int64), 1)
    return _Exact(_round_like_cftime(values, units), _MICROSECOND)


def _are_of_numpy(nanoseconds: Values, units: TimeUnits) -> bool:
    """Return whether times are in the range of numpy's dates in nanoseconds, and so is the epoch."""
    zero = (count_days(units.calendar, 1970, 1, 1) or 0) * DAY
    shift = units.epoch - zero
    if abs(shift) >= 2**63:
        return False
    return not nanoseconds.size or all(
        abs(float(end) + shift) < 2**63 for end in (nanoseconds.min(), nanoseconds.max())
    )


def _round_like_cftime(values: Values, units: TimeUnits) -> Values | None:
    """Return the nearest microseconds. What is one of them away from a whole second may be the second."""
    exact = values.astype(np.float64).astype(np.longdouble) * np.longdouble(units.step) / _MICROSECOND
    if (np.abs(exact) > _MOST).any():
        return None
    counts: Values = np.rint(exact).astype(np.int64)
    if units.step >= SECOND:
        second = SECOND // _MICROSECOND
        counts = np.where(counts % second == 1, np.floor(exact).astype(np.int64), counts)
        counts = np.where(counts % second == second - 1, np.ceil(exact).astype(np.int64), counts)
    return counts


def _count(exact: _Exact, own_epoch: int, step: int, epoch: int) -> Values | None:
    """Return times in steps of `step` nanoseconds since `epoch`; None if one is not a whole number."""
    shift, rest = divmod(own_epoch - epoch, step)
    counts = exact.counts
    if counts is None or rest or abs(shift) > _MOST or (exact.step % step and step % exact.step):
        return None
    factor, divisor = max(1, exact.step // step), max(1, step // exact.step)
    ends = [int(counts.min()), int(counts.max())] if counts.size else []
    if any(abs(end) * factor > _MOST or abs(end * factor // divisor + shift) > _MOST for end in ends):
        return None
    return None if (counts % divisor).any() else counts * factor // divisor + shift
