from __future__ import annotations

import warnings
from datetime import date, timedelta
from typing import Any

import cftime
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xarray.coding.times import decode_cf_datetime

from h5zarr.commands.combine.times import find_common
from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.calendars import DAY, STEPS, count_days, parse_units

CALENDARS = ("standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day")


def units(text: str, calendar: str = "standard") -> Any:
    found = parse_units({"units": text, "calendar": calendar})
    assert found is not None
    return found


@given(st.sampled_from(CALENDARS), st.dates(date(1, 1, 1), date(3000, 1, 1)), st.integers(0, 800_000))
def test_days_are_counted_as_cftime_counts_them(calendar: str, begin: date, later: int) -> None:
    assume((begin.year, begin.month) != (1582, 10))
    first = cftime.datetime(begin.year, begin.month, min(begin.day, 28), calendar=calendar)
    other = first + timedelta(days=later)
    counts = [count_days(calendar, one.year, one.month, one.day) for one in (first, other)]
    assert counts[1] - counts[0] == later  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("days since 2000-01-01", "2000-01-01"),
        ("day since 2000-1-1 00:00", "2000-01-01"),
        ("hours since 2000-01-01 12:00:00.5", "2000-01-01T12:00:00.5"),
        ("seconds since 1970-01-01T00:00:00Z", "1970-01-01"),
        ("Days Since 2000-01-01 00:00:00 UTC", "2000-01-01"),
        ("days since 2000-01-01 00:00:00 +01:00", "1999-12-31T23:00"),
        ("days since 2000-01-01 00:00:00 -5:30", "2000-01-01T05:30"),
        ("days since 2000-01-01 00:00:00 +0100", "1999-12-31T23:00"),
        ("seconds since 2000-01-01 00:00:00 0:00", "2000-01-01"),
        ("seconds since 2000-01-01 00:00:00.0 00:00", "2000-01-01"),
        ("seconds since 2000-01-01 06:00:00 0", "2000-01-01T06:00"),
    ],
)
def test_epochs_are_read_as_users_write_them(text: str, epoch: str) -> None:
    zero = date(2000, 1, 1).toordinal() * DAY - int(np.datetime64("2000-01-01", "ns").astype(np.int64))
    expected = int(np.datetime64(epoch, "ns").astype(np.int64)) + zero
    found = units(text, "proleptic_gregorian").epoch - (count_days("proleptic_gregorian", 1, 1, 1) or 0) * DAY
    assert found + DAY == expected


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"units": "K"},
        {"units": 3},
        {"units": "months since 2000-01-01"},
        {"units": "days since 2000-01-01 06:00:00 0:00"},  # midnight for xarray, 6 o'clock for others
        {"units": "days since"},
        {"units": "days since 2000-13-01"},
        {"units": "days since 2000-01-01", "calendar": "mayan"},
        {"units": "days since 2000-01-31", "calendar": "360_day"},
    ],
)
def test_what_are_no_time_units_is_none(attributes: Any) -> None:
    assert parse_units(attributes) is None


def test_the_longest_unit_that_is_exact_is_chosen() -> None:
    days, hours = units("days since 2000-01-01"), units("hours since 2000-01-02")
    common = find_common([(np.array([0.0, 1.0]), days), (np.array([24, 48]), hours)])
    assert common.units == "days since 2000-01-01"
    assert common.convert(np.array([24, 48]), hours).tolist() == [2, 3]
    common = find_common([(np.array([0.5, 1.0]), days), (np.array([24]), hours)])
    assert common.units == "hours since 2000-01-01"
    assert common.convert(np.array([0.5, 1.0]), days).tolist() == [12, 24]


def test_calendars_that_differ_are_refused() -> None:
    some = np.array([0])
    with pytest.raises(Unrepresentable, match="noleap, standard"):
        find_common([(some, units("days since 2000-01-01")), (some, units("days since 2000-01-01", "noleap"))])


def test_times_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(Unrepresentable, match="no unit holds all times exactly"):
        find_common([(np.array([np.nan]), units("days since 2000-01-01"))])


@given(
    st.lists(
        st.tuples(st.sampled_from(list(STEPS)), st.integers(0, 40_000), st.lists(st.integers(0, 10**4), max_size=5)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["i8", "f8"]),
)
def test_every_time_stays_what_it_is(pieces: Any, dtype: str) -> None:
    times = []
    for name, later, numbers in pieces:
        since = np.datetime64("1970-01-01") + np.timedelta64(later, "D")
        times.append((np.array(numbers, dtype), units(f"{name} since {since}")))
    common = find_common(times)
    for values, one in times:
        expected = [one.epoch + int(value) * one.step for value in values]
        assert [common.epoch + int(value) * common.step for value in common.convert(values, one)] == expected


@given(
    st.sampled_from(list(STEPS)[:6]),
    st.sampled_from(["standard", "proleptic_gregorian", "noleap", "360_day"]),
    st.sampled_from(["1850-01-01", "2000-01-01 00:00:00", "1999-12-30 12:30:00.25", "0001-01-01", "2100-06-01"]),
    st.lists(st.one_of(st.floats(-1e5, 1e5), st.integers(-(10**4), 10**4).map(lambda n: n / 24)), min_size=1),
    st.sampled_from(["f4", "f8"]),
)
def test_floating_point_times_are_those_that_xarray_decodes(
    name: str, calendar: str, since: str, numbers: list[float], dtype: str
) -> None:
    text, values = f"{name} since {since}", np.array(numbers, dtype)
    other = units("days since 2000-01-01", calendar)
    common = find_common([(values, units(text, calendar)), (np.array([0]), other)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = decode_cf_datetime(values, text, calendar)
        found = decode_cf_datetime(common.convert(values, units(text, calendar)), common.units, calendar)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_the_two_gregorian_calendars_are_the_same_after_the_reform() -> None:
    new, old = units("days since 1600-01-01", "proleptic_gregorian"), units("days since 1582-10-20")
    common = find_common([(np.array([0, 1]), new), (np.array([0]), old)])
    dates = cftime.num2date(common.convert(np.array([0]), old), common.units, new.calendar)
    assert dates[0].isoformat() == "1582-10-20T00:00:00"


def test_the_two_gregorian_calendars_differ_before_the_reform() -> None:
    new, old = units("days since 1500-01-01", "proleptic_gregorian"), units("days since 1600-01-01")
    with pytest.raises(Unrepresentable, match="the calendars differ: proleptic_gregorian, standard"):
        find_common([(np.array([0]), new), (np.array([0]), old)])
