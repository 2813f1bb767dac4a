"""Time units of the CF conventions: the step, the epoch and the calendar. Spec: CF 1.11, 4.4."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

SECOND = 10**9
DAY = 86_400 * SECOND
STEPS = {
    "days": DAY,
    "hours": 3_600 * SECOND,
    "minutes": 60 * SECOND,
    "seconds": SECOND,
    "milliseconds": 10**6,
    "microseconds": 10**3,
    "nanoseconds": 1,
}
"""Nanoseconds in each unit, the longest first. Months and years have no fixed length."""

_NAMES = {
    **{name: name for name in STEPS},
    **{name[:-1]: name for name in STEPS},
    "d": "days",
    "h": "hours",
    "hr": "hours",
    "hrs": "hours",
    "min": "minutes",
    "mins": "minutes",
    "s": "seconds",
    "sec": "seconds",
    "secs": "seconds",
    "ms": "milliseconds",
    "msec": "milliseconds",
    "msecs": "milliseconds",
    "us": "microseconds",
    "microsecs": "microseconds",
    "ns": "nanoseconds",
}
_CALENDARS = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}
_MIXED = "standard", "proleptic_gregorian"
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_UNITS = re.compile(
    r"\s*(\w+)\s+since\s+([+-]?\d{1,6})-(\d{1,2})-(\d{1,2})"
    r"(?:[T\s]+(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,9})\d*)?)?)?)?"
    r"\s*(?:(?:UTC|GMT|Z)?\s*(?:([+-])(\d{1,2}):?(\d{2})?)?)(\s0{1,2}(?::?00)?)?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TimeUnits:
    """A time is `epoch` + number × `step`, both in nanoseconds. The epoch counts from year 0 of the calendar."""

    step: int
    epoch: int
    calendar: str
    since: str

    def in_steps(self, name: str) -> str:
        """Return the text of units with the same epoch and another step."""
        return f"{name} since {self.since}"

    def date(self, number: float) -> str:
        """Return a time as text, such as 2024-02-29 or 2024-02-29T06:30:00."""
        days, rest = divmod(self.epoch + round(number * self.step), DAY)
        seconds = rest // SECOND
        clock = f"T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" if seconds else ""
        year, month, day = _find_date(self.calendar, days)
        return f"{year:04}-{month:02}-{day:02}{clock}"

    @property
    def is_of_numpy(self) -> bool:
        """Whether xarray shows times of this calendar as dates of numpy, if these hold them."""
        return self.calendar in _MIXED

    @property
    def has_missing_dates(self) -> bool:
        """Whether xarray shows missing times as missing. It shows those of other calendars as the epoch."""
        return self.calendar in _MIXED and self.epoch >= REFORM


def parse_units(attributes: Mapping[str, Any]) -> TimeUnits | None:
    """Return the time units in the attributes of a variable; None if there are none that h5zarr knows."""
    units, calendar = attributes.get("units"), attributes.get("calendar", "standard")
    if not isinstance(units, str) or not isinstance(calendar, str):
        return None
    match, calendar = _UNITS.fullmatch(units), calendar.strip().lower()
    calendar = _CALENDARS.get(calendar, calendar)
    step = None if match is None else STEPS.get(_NAMES.get(match[1].lower(), ""))
    if match is None or step is None:
        return None
    year, month, day = int(match[2]), int(match[3]), int(match[4])
    days = count_days(calendar, year, month, day)
    if days is None:
        return None
    hours, minutes, seconds = (int(match[number] or 0) for number in (5, 6, 7))
    fraction = int((match[8] or "").ljust(9, "0"))
    if match[12] and len(match[12]) > 3 and (hours, minutes, seconds) != (0, 0, 0):
        return None  # an offset without a sign: xarray takes 0:00 for the time of day, and others do not
    offset = (int(match[10] or 0) * 60 + int(match[11] or 0)) * (-1 if match[9] == "-" else 1)
    epoch = days * DAY + ((hours * 60 + minutes - offset) * 60 + seconds) * SECOND + fraction
    return TimeUnits(step, epoch, calendar, units[match.start(2) :].strip())


def count_days(calendar: str, year: int, month: int, day: int) -> int | None:
    """Return the days since the start of year 0; None for an unknown calendar or a date that it does not have."""
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    ordinary = 365 * year + _DAYS_BEFORE[month - 1] + day - 1
    last = year if month > 2 else year - 1  # the last year whose leap day has passed
    match calendar:
        case "noleap":
            return ordinary
        case "all_leap":
            return 366 * year + _DAYS_BEFORE[month - 1] + (month > 2) + day - 1
        case "360_day":
            return 360 * year + 30 * (month - 1) + day - 1 if day <= 30 else None
        case "julian":
            return ordinary + last // 4
        case "proleptic_gregorian":
            return ordinary + _gregorian_leap_days(last)
        case "standard":
            # Julian until 1582-10-04, which is followed by 1582-10-15. The two calendars agree in the third century.
            is_julian = (year, month, day) < (1582, 10, 15)
            return ordinary + (last // 4 - 2 if is_julian else _gregorian_leap_days(last))
    return None


def _find_date(calendar: str, days: int) -> tuple[int, int, int]:
    """Return the date that is so many days after the start of year 0: the last one that is not later."""
    year = days // 366 - 1
    while (count_days(calendar, year + 1, 1, 1) or 0) <= days:
        year += max(1, (days - (count_days(calendar, year + 1, 1, 1) or 0)) // 366)
    months = [month for month in range(1, 13) if (count_days(calendar, year, month, 1) or 0) <= days]
    dates = [(year, months[-1], day) for day in range(1, 32) if count_days(calendar, year, months[-1], day) == days]
    return dates[-1] if dates else (year, months[-1], 1)


def _gregorian_leap_days(last: int) -> int:
    return last // 4 - last // 100 + last // 400


REFORM = DAY * (count_days("standard", 1582, 10, 15) or 0)
"""The first day of the Gregorian calendar. From then on, standard and proleptic_gregorian are the same."""


def share_dates(calendars: Collection[str]) -> bool:
    """Return whether all times have the same dates in these calendars, if they are not before `REFORM`."""
    return len(set(calendars)) == 1 or set(calendars) <= set(_MIXED)


def bounds_of(attributes: Mapping[str, Any]) -> str | None:
    """Return the name of the variable with the bounds of a coordinate. They have its units. Spec: CF 1.11, 7.1."""
    for name in ("bounds", "climatology"):
        if isinstance(found := attributes.get(name), str):
            return found
    return None
