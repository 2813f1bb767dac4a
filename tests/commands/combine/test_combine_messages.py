"""Messages for files that cannot be joined name the files, the variable and the difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

from h5zarr.commands.combine.axes import NotJoinable
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import H5ZarrError
from tests.commands.combine.files import WIDTH, write_days

LONG = 40  # days: too many values to be inlined
DAYS = range(LONG)


def write_plain(path: Path, dimensions: Sequence[str] = ("time", "x"), *, first: int = 0, **how: Any) -> Path:
    """Write v with these dimensions, and the time if it is one of them. `how` is for the variable."""
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", LONG), ("x", WIDTH)):
            file.createDimension(name, length)
        if "time" in dimensions:
            time = file.createVariable("time", "f8", ("time",))
            time.units = "days since 2000-01-01"
            time[:] = first + np.arange(LONG)
        variable = file.createVariable("v", how.pop("dtype", "f4"), dimensions, **how)
        variable[:] = 1
    return path


def write_calendar(path: Path, first: int, calendar: str) -> Path:
    write_days(path, [first + day for day in DAYS])
    with netCDF4.Dataset(path, "a") as file:
        file["time"].calendar = calendar
    return path


def write_references(path: Path, lengths: Sequence[int]) -> Path:
    """Write references with a one-dimensional array for each length, all of the dimension `time`."""
    refs = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"})}
    for number, length in enumerate(lengths):
        array = {"zarr_format": 3, "node_type": "array", "shape": [length], "data_type": "int32", "fill_value": 0}
        array["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [length]}}
        array["chunk_key_encoding"] = {"name": "default"}
        array["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        refs[f"v{number}/zarr.json"] = json.dumps({**array, "dimension_names": ["time"]})
    path.write_text(json.dumps(refs))
    return path


def write_sparse(path: Path, first: int, names: Sequence[str], fill: float = 0) -> Path:
    """Write arrays with unwritten chunks, which read as `fill`, and no `_FillValue`."""
    write_days(path, [first + day for day in DAYS])
    with h5py.File(path, "a") as file:
        for name in names:
            made = file.create_dataset(name, (LONG, WIDTH), "f4", chunks=(1, WIDTH), fillvalue=fill)
            made[0] = 1
            made.dims[0].attach_scale(file["time"])
            made.dims[1].attach_scale(file["x"])
    return path


def several_lengths(tmp: Path) -> list[Path]:
    return [write_references(tmp / "a.json", [2, 3]), write_references(tmp / "b.json", [2])]


def lacking(tmp: Path) -> list[Path]:
    return [write_plain(tmp / "a.nc"), write_plain(tmp / "b.nc", ("x",))]


def turned(tmp: Path) -> list[Path]:
    return [write_plain(tmp / "a.nc"), write_plain(tmp / "b.nc", ("x", "time"), first=LONG)]


def uneven_tiles(tmp: Path) -> list[Path]:
    chunks = ((1, WIDTH), (2, WIDTH))
    return [
        write_days(tmp / f"{number}.nc", DAYS, x0=number * WIDTH, chunksizes=one) for number, one in enumerate(chunks)
    ]


def integers_without_missing_data(tmp: Path) -> list[Path]:
    how: dict[str, Any] = {"dtype": "i2", "fill_value": False}
    first = write_days(tmp / "a.nc", DAYS, names=("v", "w"), **how)
    return [first, write_days(tmp / "b.nc", [LONG + day for day in DAYS], **how)]


def sparse_in_one_file(tmp: Path) -> list[Path]:
    return [write_sparse(tmp / "a.nc", 0, ["w"]), write_sparse(tmp / "b.nc", LONG, [])]


def sparse_in_two_ways(tmp: Path) -> list[Path]:
    return [write_sparse(tmp / "a.nc", 0, ["w"]), write_sparse(tmp / "b.nc", LONG, ["w"], fill=5)]


def calendars(tmp: Path) -> list[Path]:
    return [write_calendar(tmp / "a.nc", 0, "standard"), write_calendar(tmp / "b.nc", LONG, "360_day")]


MESSAGES: dict[str, tuple[Callable[[Path], list[Path]], str | list[str]]] = {
    r"a\.json: the dimension time has several lengths, in /v0, /v1": (several_lengths, "time"),
    r"b\.nc: no variable has the dimension time, which other files have": (lacking, "time"),
    r"/v: its dimensions are \(time, x\) in .*a\.nc and \(x, time\) in .*b\.nc": (turned, "time"),
    "/v: adjacent pieces have chunks of different lengths": (uneven_tiles, ["time", "x"]),
    "/w: some files lack it, and its type, int16, has no value for missing data": (
        integers_without_missing_data,
        "time",
    ),
    r"/w: some files lack it, and .*a\.nc has unwritten chunks with another fill value": (sparse_in_one_file, "time"),
    "/w: unwritten chunks have different fill values": (sparse_in_two_ways, "time"),
    "the calendars differ: 360_day, standard": (calendars, "time"),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_names_the_files_and_the_difference(message: str, tmp_path: Path) -> None:
    write, along = MESSAGES[message]
    with pytest.raises(H5ZarrError, match=message) as caught:
        combine(write(tmp_path), tmp_path / "out.json", along=along)
    assert isinstance(caught.value, NotJoinable)
    assert caught.value.remedy
