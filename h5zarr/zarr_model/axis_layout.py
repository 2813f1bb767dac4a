"""An axis that is laid out ahead: equal steps from a first date to a last one, whether files have them or not. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h5zarr.errors import ArgumentError, NotJoinable
from h5zarr.zarr_model.calendars import DAY, SECOND, TimeUnits, count_days, parse_units

_MOST_SLOTS = 20_000_000
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2}))?)?Z?")
_STEP = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_EXAMPLE = "Example: time=2000-01-01/2030-01-01/PT30M. Steps are ISO 8601 durations: PT30M, PT6H, P1D, P1M."


@dataclass(frozen=True, slots=True)
class AxisLayout:
    """The dates from `start` on and before `stop`, both as text, each `months` and `seconds` after the one before."""

    start: str
    stop: str
    months: int
    seconds: int

    def lay_out(self, calendar: str) -> tuple[npt.NDArray[np.int64], TimeUnits]:
        """Return all times of the axis in a calendar, and their units. Raises NotJoinable if it lacks a date."""
        units = parse_units({"units": f"seconds since {self.start}", "calendar": calendar})
        stop = parse_units({"units": f"seconds since {self.stop}", "calendar": calendar})
        for date, one in ((self.start, units), (self.stop, stop)):
            if one is None or one.date(0)[:10] != date[:10]:
                raise NotJoinable(f"the calendar {calendar} does not have the date {date}", remedy=_EXAMPLE)
        assert units is not None
        assert stop is not None
        length = (stop.epoch - units.epoch) // SECOND
        if self.months:
            return self._monthly(calendar, units.epoch, length), units
        return np.arange(0, length, self.seconds, dtype=np.int64), units

    def _monthly(self, calendar: str, epoch: int, length: int) -> npt.NDArray[np.int64]:
        match = _DATE.match(self.start)
        assert match is not None
        year, month, day = int(match[1]), int(match[2]), int(match[3])
        since_midnight = epoch % DAY
        found: list[int] = []
        while True:
            years, rest = divmod(month - 1 + len(found) * self.months, 12)
            days = count_days(calendar, year + years, rest + 1, day) or 0
            seconds = (days * DAY + since_midnight - epoch) // SECOND
            if seconds >= length:
                return np.array(found, np.int64)
            found.append(seconds)


def parse_layout(text: str, source: str) -> AxisLayout | None:
    """Return the layout that `START/STOP/STEP` describes; None for a text of another form.

    `text` is the whole text, for errors. Raises ArgumentError if one of the three is wrong.
    """
    if source.count("/") != 2:
        return None
    start, stop, step = source.split("/")
    found = _STEP.fullmatch(step)
    for name, date in (("start", start), ("stop", stop)):
        match = _DATE.fullmatch(date)
        if match is None or not (1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31):
            raise ArgumentError(f"along={text!r}: the {name} {date!r} is not a date", remedy=_EXAMPLE)
    parts = [int(one or 0) for one in found.groups()] if found is not None else [0] * 7
    years, months, weeks, days, hours, minutes, seconds = parts
    in_months = 12 * years + months
    in_seconds = (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds
    if (in_months > 0) is (in_seconds > 0):
        raise ArgumentError(f"along={text!r}: {step!r} is not a step", remedy=_EXAMPLE)
    if in_months and int(start[8:10]) > 28:
        what = f"along={text!r}: steps of months must start on one of the first 28 days"
        raise ArgumentError(what, remedy=_EXAMPLE)
    made = AxisLayout(start.removesuffix("Z"), stop.removesuffix("Z"), in_months, in_seconds)
    first, last = (parse_units({"units": f"days since {date}"}) for date in (made.start, made.stop))
    count = 0 if first is None or last is None else (last.epoch - first.epoch) // SECOND
    if count <= 0:
        raise ArgumentError(f"along={text!r}: the stop is not after the start", remedy=_EXAMPLE)
    if count >= _MOST_SLOTS * (in_seconds or 86_400 * 28 * in_months):
        what = f"along={text!r}: the axis has more than {_MOST_SLOTS:,} steps"
        raise ArgumentError(what, remedy=_EXAMPLE)
    return made


def find_layout(along: object, name: str) -> AxisLayout | None:
    """Return the layout of the axis `name` among the texts of a recipe; None if it was not laid out ahead."""
    for text in along if isinstance(along, list) else ():
        own, _, source = str(text).partition("=")
        if own == name:
            return parse_layout(str(text), source)
    return None
