"""Messages for files that cannot be joined name the files, the variable and the difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.axes import find_axes
from h5zarr.commands.combine.combine import combine
from h5zarr.commands.combine.members import find_members
from h5zarr.commands.combine.pieces import open_piece
from h5zarr.commands.combine.regimes import _encode_again
from h5zarr.commands.translate.options import Options
from h5zarr.errors import H5ZarrError, NotJoinable, Unrepresentable
from h5zarr.io.access import USUAL_ACCESS
from tests.commands.combine.files import WIDTH, concatenated, write_days

LONG = 40  # days: too many values to be inlined
DAYS = range(LONG)


def write_plain(path: Path, dimensions: Sequence[str] = ("time", "x"), *, first: int = 0, **how: Any) -> Path:
    """Write v with these dimensions, and the time if it is one of them. `how` is for the variable."""
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", LONG), ("x", WIDTH), ("y", WIDTH)):
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


def renamed(tmp: Path) -> list[Path]:
    return [write_plain(tmp / "a.nc"), write_plain(tmp / "b.nc", ("time", "y"), first=LONG)]


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
    r"a\.json: the dimension time has several lengths, also in /v1": (several_lengths, "time"),
    r"/v: its dimensions are \(x\) in .*b\.nc and \(time, x\) in .*a\.nc": (lacking, "time"),
    r"/v: its dimensions are \(time, x\) in .*a\.nc and \(time, y\) in .*b\.nc": (renamed, "time"),
    "the calendars differ: 360_day, standard": (calendars, "time"),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_names_the_files_and_the_difference(message: str, tmp_path: Path) -> None:
    write, along = MESSAGES[message]
    with pytest.raises(H5ZarrError, match=message) as caught:
        combine(write(tmp_path), tmp_path / "out.json", along=along)
    assert isinstance(caught.value, NotJoinable)
    assert caught.value.remedy


def padded_in_different_chunks(tmp: Path) -> list[Path]:
    chunks = (10, 7)
    return [
        write_days(tmp / f"{n}.nc", [25 * n + day for day in range(25)], chunksizes=(chunks[n], WIDTH), zlib=True)
        for n in range(2)
    ]


def packed_and_lacking(tmp: Path) -> list[Path]:
    scales = ({"scale_factor": 0.5}, None, {"scale_factor": 2.0})
    return [
        write_days(
            tmp / f"{n}.nc",
            [LONG * n + day for day in DAYS],
            dtype="i2",
            names=("w",) if scale else (),
            attributes=scale or {},
            fill_value=-1,
        )
        for n, scale in enumerate(scales)
    ]


JOINED: dict[str, tuple[Callable[[Path], list[Path]], list[str], str]] = {
    "tiles with different chunks": (uneven_tiles, ["time", "x"], "adjacent pieces have chunks of different lengths"),
    "integers that some files lack": (
        integers_without_missing_data,
        ["time"],
        "its type, int16, has no value for missing data",
    ),
    "unwritten chunks that some files lack": (
        sparse_in_one_file,
        ["time"],
        "unwritten chunks and missing files read as different values",
    ),
    "unwritten chunks of different fill values": (sparse_in_two_ways, ["time"], ""),
    "padded chunks of different lengths": (
        padded_in_different_chunks,
        ["time"],
        "chunks are stored in different lengths, and some are only partly filled",
    ),
    "files that are packed, and one that lacks the variable": (
        packed_and_lacking,
        ["time"],
        "files that pack their values differently lack some of them",
    ),
}


@pytest.mark.parametrize("case", JOINED)
def test_what_one_array_cannot_hold_is_joined_from_parts(case: str, tmp_path: Path) -> None:
    write, along, note = JOINED[case]
    paths = write(tmp_path)
    cube = combine(paths, tmp_path / "out.json", along=along, max_inline_bytes=20_000)
    assert any(one.how == "parts" and note in " ".join((*one.notes, "")) for one in cube.outcomes)
    joined = xr.open_dataset(tmp_path / "out.json", engine="h5zarr").load()
    expected = concatenated(paths, along[-1])
    xr.testing.assert_equal(joined, expected)
    for name in expected.variables:
        assert joined[name].dtype == expected[name].dtype


def write_lossy(path: Path, first: int, **how: Any) -> Path:
    write_days(path, [first], names=())
    with h5py.File(path, "a") as file:
        made = file.create_dataset("v", data=np.arange(WIDTH)[None] / 7, dtype="f4", chunks=(1, WIDTH), **how)
        made.dims[0].attach_scale(file["time"])
        made.dims[1].attach_scale(file["x"])
    return path


def test_no_file_is_encoded_again_with_a_filter_that_loses_information(tmp_path: Path) -> None:
    paths = [write_lossy(tmp_path / f"{n}.nc", n, scaleoffset=1) for n in (0, 1)]
    paths.append(write_lossy(tmp_path / "2.nc", 2, compression="gzip"))
    combine(paths, tmp_path / "out.json")
    joined = xr.open_dataset(tmp_path / "out.json", engine="h5zarr")
    with h5py.File(paths[2]) as file:
        np.testing.assert_array_equal(joined["v"].values[2], file["v"][0])
    pieces = [open_piece(path, USUAL_ACCESS, Options()) for path in paths[1:]]
    like, other = find_members(pieces, range(2), find_axes(pieces, [Along("time")]))["/v"]
    with pytest.raises(Unrepresentable, match="a filter of these files loses information"):
        _encode_again(other, like)
    with pytest.raises(Unrepresentable, match="only numbers are encoded again, in whole chunks"):
        _encode_again(other, replace(like, skipped={0: 1}))
