"""Translating a netCDF-3 file of many records: h5zarr against kerchunk, after every reference has been compared.

    python benchmarks/netcdf3.py [--directory DIR] [--records N] [--repeat N]

The file has five record variables: a time, two scalars and two profiles. Both tools give each record a chunk, and for
each chunk of each variable both must name the same bytes.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from files import default_directory
from tables import print_machine, print_table

from h5zarr import translate

SEED = 20261116
VARIABLES = {"time": ("f8", 1), "flag": ("i4", 1), "pressure": ("f4", 1), "wind": ("f4", 5), "temperature": ("f8", 3)}


class Wrong(Exception):
    """The two tools do not say the same."""


def many_records(directory: Path, count: int) -> Path:
    """Return the path of a file with `count` records of five variables; made once."""
    import netCDF4

    path = directory / f"records_{count}.1.nc"
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(SEED)
    unfinished = path.with_suffix(".part")
    with netCDF4.Dataset(unfinished, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        for name, (code, length) in VARIABLES.items():
            if length > 1:
                file.createDimension(f"{name}_level", length)
            variable = file.createVariable(name, code, ("time", f"{name}_level") if length > 1 else ("time",))
            variable.units = "some unit"
        for name, (code, length) in VARIABLES.items():
            values = chance.integers(0, 1000, (count, length) if length > 1 else (count,)).astype(code)
            for start in range(0, count, 100_000):
                end = min(count, start + 100_000)
                file[name][start:end] = values[start:end]
    unfinished.rename(path)
    return path


def with_h5zarr(path: Path, out: Path) -> None:
    """Every chunk is referred to, as kerchunk is told to do."""
    translate(path, out, inline_bytes=0)


def with_kerchunk(path: Path, out: Path) -> None:
    from kerchunk.netCDF3 import NetCDF3ToZarr

    refs = NetCDF3ToZarr(str(path), inline_threshold=0).translate()
    out.write_text(json.dumps(refs))


def compare(path: Path, folder: Path, count: int) -> int:
    """Return how many chunks both tools give the same bytes."""
    made = {}
    for name, tool in (("h5zarr", with_h5zarr), ("kerchunk", with_kerchunk)):
        out = folder / f"{name}.json"
        tool(path, out)
        made[name] = json.loads(out.read_text())["refs"]
    ours, theirs = made["h5zarr"], made["kerchunk"]
    for name, (_, length) in VARIABLES.items():
        end = "/0" if length > 1 else ""
        for number in range(count):
            mine = ours[f"{name}/c/{number}{end}"]
            other: Any = theirs[f"{name}/{number}{end.replace('/', '.')}"]
            if mine[1:] != other[1:]:
                raise Wrong(f"{name}, record {number}: {mine} and {other}")
    chunks = sum("/c" in key for key in ours)
    if chunks != count * len(VARIABLES):
        raise Wrong(f"{chunks} chunks instead of {count * len(VARIABLES)}")
    return chunks


def best_times(tools: list[Callable[[], None]], repeat: int) -> list[float]:
    """The shortest time of each of `tools`, run in turns so that a slow spell of the machine meets all of them."""
    best = [float("inf")] * len(tools)
    for _ in range(repeat):
        for number, tool in enumerate(tools):
            gc.collect()
            start = time.perf_counter()
            tool()
            best[number] = min(best[number], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate a netCDF-3 file with h5zarr and with kerchunk.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--records", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    print_machine()
    rows = []
    for count in arguments.records:
        path = many_records(arguments.directory, count)
        out = arguments.directory / "netcdf3.json"
        name, size = f"{count:,} records, 5 variables", f"{path.stat().st_size / 1e6:.1f}"
        try:
            chunks = compare(path, arguments.directory, count)
        except Wrong as wrong:
            rows.append((name, size, f"WRONG: {wrong}", *[""] * 4))
            continue
        without_output: list[Callable[[], None]] = [
            lambda path=path: translate(path, inline_bytes=0) and None,
            lambda path=path: _kerchunk_only(path),
        ]
        ours, theirs = best_times(without_output, arguments.repeat)
        to_json: list[Callable[[], None]] = [
            lambda path=path, out=out: with_h5zarr(path, out),
            lambda path=path, out=out: with_kerchunk(path, out),
        ]
        written, theirs_written = best_times(to_json, arguments.repeat)
        rows.append(
            (name, size, f"{chunks:,}", _seconds(ours), _seconds(theirs), f"{theirs / ours:.0f}",
             _seconds(written), _seconds(theirs_written), f"{theirs_written / written:.1f}")
        )  # fmt: skip
    columns = ("file", "MB", "chunks equal", "h5zarr", "kerchunk", "ratio", "to JSON", "kerchunk", "ratio")
    print_table("netCDF-3 records: seconds to the references", columns, rows)


def _kerchunk_only(path: Path) -> None:
    from kerchunk.netCDF3 import NetCDF3ToZarr

    NetCDF3ToZarr(str(path), inline_threshold=0).translate()


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


if __name__ == "__main__":
    main()
