"""A dataset that is split into files, each of which stores its part in another way."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr
from hypothesis import strategies as st

EPOCH = "days since 2000-01-01"
WIDTH = 40


@dataclass(frozen=True, kw_only=True)
class FileForm:
    """How one file stores its part of the dataset. `gap` is the number of days that are missing before it."""

    length: int = 1
    gap: int = 0
    format: str = "NETCDF4"
    chunks: tuple[int, int] | None = (1, WIDTH)
    zlib: bool = True
    shuffle: bool = True
    endian: str = "native"
    dtype: str = "f4"
    packing: tuple[float, float] | None = None
    fill: float | None = None
    missing_value: float | None = None
    units: str = EPOCH
    time_dtype: str = "f8"
    has_w: bool = True
    has_counts: bool = True
    has_flag: bool = True
    letters: int = 5
    own_letters: bool = False  # the name of the dimension of letters has their number, as in files by xarray
    turned: bool = False  # v has its dimensions in another order
    has_depths: bool = True  # along time; otherwise, one depth for the file
    seen_packing: tuple[float, float] | None = None  # of times other than the coordinate

    @property
    def is_classic(self) -> bool:
        return self.format.startswith("NETCDF3")


@st.composite
def file_forms(draw: st.DrawFn, *, varied: bool) -> FileForm:
    """Return the form of a file. Unless `varied`, only lengths and chunks along the axis differ."""

    def one(usual: Any, *others: Any) -> Any:
        return draw(st.sampled_from([usual, usual, *others])) if varied else usual

    form = one("NETCDF4", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC")
    dtype = one("f4", "i2", "f8", "i4")
    packing = draw(st.sampled_from([None, (0.5, 0.0), (0.25, 10.0), (2.0, -3.0)])) if dtype == "i2" else None
    chunk = draw(st.sampled_from([1, 2, 3, 7]))
    return FileForm(
        length=draw(st.integers(1, 9)),
        gap=one(0, 2),
        format=form,
        chunks=None if form.startswith("NETCDF3") else (chunk, one(WIDTH, 16)),
        zlib=one(True, False),
        shuffle=one(True, False),
        endian="native" if form.startswith("NETCDF3") else one("native", "big"),
        dtype=dtype,
        packing=packing,
        fill=one(None, -999, -7),
        missing_value=one(None, 12, 21),
        units=one(EPOCH, "hours since 1999-12-31", "days since 2000-01-05 12:00"),
        time_dtype=one("f8", "i4") if draw(st.booleans()) else "f8",
        has_w=one(True, False),
        has_counts=one(True, False),
        has_flag=one(True, False),
        letters=one(5, 6, 9),
        own_letters=one(False, True),
        turned=form == "NETCDF4" and one(False, True),
        has_depths=one(True, False),
        seen_packing=one(None, (0.5, 100.0), (0.001, -3.5)),
    )


def write_split(folder: Path, forms: list[FileForm], calendar: str = "standard") -> list[Path]:
    """Write the dataset as one file for each form, and return the paths in the order of time."""
    paths, first = [], 0
    for number, form in enumerate(forms):
        first += form.gap
        paths.append(write_part(folder / f"{number}.nc", form, first, calendar))
        first += form.length
    return paths


def write_part(path: Path, form: FileForm, first: int, calendar: str) -> Path:
    """Write v(time, x), time with bounds, text, a depth, and what only some files have: numbers, a letter, times."""
    days = np.arange(first, first + form.length)
    with netCDF4.Dataset(path, "w", format=form.format) as file:
        letter = f"string{form.letters}" if form.own_letters else "letter"
        for name, length in (("time", None), ("x", WIDTH), ("bnds", 2), (letter, form.letters)):
            file.createDimension(name, length)
        _write_times(file, form, days, calendar)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(WIDTH)
        for name in ("v", "w") if form.has_w else ("v",):
            _write_values(file, name, form, days)
        if form.has_counts:
            file.createVariable("counts", "i4", ("time",))[:] = days * 3
        if form.has_flag:
            file.createVariable("flag", "S1", ("time",))[:] = np.array([b"abc"[day % 3 : day % 3 + 1] for day in days])
            _write_seen(file, form, days, calendar)
        code = file.createVariable("code", "S1", ("time", letter))
        code[:] = netCDF4.stringtochar(np.array([f"d{day:04}" for day in days], f"S{form.letters}"))
        station = file.createVariable("station", "S1", (letter,))
        station[:] = netCDF4.stringtochar(np.array("buoy", f"S{form.letters}"))
        file.createVariable("depth", "f4", ("time",) if form.has_depths else ())[:] = 20
        if form.format == "NETCDF4":
            file.createVariable("label", str, ("time",))[:] = np.array([f"day {day}" for day in days], object)
    return path


def _numbers(days: Any, units: str, calendar: str) -> Any:
    return netCDF4.date2num(netCDF4.num2date(days, EPOCH, calendar), units, calendar)


def _write_times(file: Any, form: FileForm, days: Any, calendar: str) -> None:
    numbers = _numbers(days, form.units, calendar)
    whole = form.time_dtype == "i4" and np.array_equal(numbers, np.rint(numbers))
    time = file.createVariable("time", "i4" if whole else "f8", ("time",))
    time.units, time.calendar, time.bounds = form.units, calendar, "time_bnds"
    time[:] = numbers
    file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = _numbers(
        days[:, None] + [[0, 1]], form.units, calendar
    )


def _write_seen(file: Any, form: FileForm, days: Any, calendar: str) -> None:
    """Write times that are no whole numbers of any unit."""
    seen = file.createVariable("seen", "f8" if form.seen_packing is None else "i4", ("time",))
    if form.seen_packing is not None:
        seen.scale_factor, seen.add_offset = form.seen_packing
    seen.units, seen.calendar = form.units, calendar
    seen[:] = _numbers(days + 1 / 3, form.units, calendar)


def _write_values(file: Any, name: str, form: FileForm, days: Any) -> None:
    values = days[:, None] * 10.0 + np.arange(WIDTH)[None]
    how: dict[str, Any] = {} if form.fill is None else {"fill_value": form.fill}
    if form.chunks is not None:
        how |= {"chunksizes": form.chunks, "zlib": form.zlib, "shuffle": form.shuffle}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the byte order
        names = ("x", "time") if form.turned else ("time", "x")
        if form.turned and form.chunks is not None:
            how["chunksizes"] = form.chunks[::-1]
        variable = file.createVariable(name, form.dtype, names, endian=form.endian, **how)
    if form.packing is not None:
        variable.scale_factor, variable.add_offset = form.packing
    if form.missing_value is not None:
        variable.missing_value = np.asarray(form.missing_value, form.dtype)
    masked = np.ma.masked_array(values, mask=np.zeros(values.shape, bool))
    if form.fill is not None:
        masked[..., 3] = np.ma.masked
    variable[:] = masked.T if form.turned else masked


def expected(paths: list[Path]) -> xr.Dataset:
    """Return what xarray makes of the files: each decoded by itself, and then concatenated."""
    opened = [xr.open_dataset(path, engine="netcdf4").load() for path in paths]
    for one in opened:
        one.close()
    how: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
    return xr.concat(opened, "time", combine_attrs="override", **how)


def check_same(found: xr.Dataset, whole: xr.Dataset) -> None:
    """Compare names, dimensions, types and values."""
    assert set(found.variables) == set(whole.variables)
    for name in whole.variables:
        one, other = found[name], whole[name]
        assert one.dims == other.dims, name
        if other.dtype.kind == "M":
            np.testing.assert_array_equal(one.values.astype("M8[ns]"), other.values.astype("M8[ns]"), str(name))
            continue
        if other.dtype.kind in "OSU":
            assert [*map(_as_text, one.values.ravel())] == [*map(_as_text, other.values.ravel())], name
            continue
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one.values, other.values, str(name))


def _as_text(value: Any) -> Any:
    """Return text and dates as str, and NaN, which stands for what is missing, as None."""
    if isinstance(value, bytes):
        return value.decode()
    return None if isinstance(value, float) else str(value)
