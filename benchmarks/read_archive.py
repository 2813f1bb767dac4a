"""Reading at the scale of an archive: one group of a large file, one point through ten thousand files, loops, Dask.

    python benchmarks/read_archive.py [--only group|remote-group|point|loop|dask|start] [--files 10000] [--repeat 3]

Each tool opens and reads as its users do; times include opening, and are the best of `--repeat`. What is read is
compared with the files, or with netCDF4, before any time is shown. Servers are on the loopback: 30 ms, 100 MB/s.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import netCDF4
import numpy as np
import xarray as xr
from files import default_directory, made, many_datasets
from range_server import serving
from tables import print_machine, print_table

import h5zarr

LATENCY, BANDWIDTH, MOST_REQUESTS = 0.03, 100e6, 96
COLUMNS = ("tool", "right", "seconds", "times h5zarr", "requests", "rounds")
Read = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(TABLES))
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--below", type=Path, default=default_directory())
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    arguments.below.mkdir(parents=True, exist_ok=True)
    print_machine()
    for name, table in TABLES.items():
        if arguments.only in (None, name):
            table(arguments)


def measure(title: str, tools: dict[str, Read], expected: Any, repeat: int, server: Any = None) -> None:
    """Print a table of the tools; the first one is h5zarr."""
    rows, first = [], None
    for name, read in tools.items():
        best, counts, is_right, why = float("inf"), None, True, ""
        for _ in range(repeat):
            if server is not None:
                server.reset()
            began = time.perf_counter()
            try:
                found = read()
            except Exception as error:
                is_right, why = False, f"{type(error).__name__}: {error}"[:60]
                break
            seconds = time.perf_counter() - began
            is_right &= bool(np.array_equal(np.asarray(found), np.asarray(expected)))
            if seconds < best:
                best, counts = seconds, None if server is None else server.counts()
        first = first or best
        asked = ("", "") if counts is None else (f"{counts.requests:,}", f"{counts.waits:,}")
        cells = (f"{best:.3f}", f"{best / first:.1f}") if is_right else ("", "")
        rows.append((name, why or ("yes" if is_right else "WRONG"), *cells, *(asked if is_right else ("", ""))))
    print_table(title, COLUMNS, rows)


def open_group(engine: str, place: Any, group: str) -> Any:
    with xr.open_dataset(place, engine=engine, group=group) as opened:
        return opened["x"].values


def group(arguments: argparse.Namespace) -> None:
    for libver in ("earliest", "latest"):
        path = many_datasets(arguments.below, 2050, libver)
        tools = {
            name: lambda name=name, path=path: open_group(name, path, "group_0050")
            for name in ("h5zarr", "netcdf4", "h5netcdf")
        }
        measure(
            f"Open one group of 2,050 datasets, {libver}",
            tools,
            open_group("netcdf4", path, "group_0050"),
            arguments.repeat,
        )


def remote_group(arguments: argparse.Namespace) -> None:
    path = many_datasets(arguments.below, 2050, "latest")
    expected = open_group("netcdf4", path, "group_0050")
    with serving(arguments.below, latency=LATENCY, bandwidth=BANDWIDTH) as server:
        url = f"{server.url}/{path.name}"

        def blocks() -> Any:
            filesystem = fsspec.filesystem("http", skip_instance_cache=True)
            with filesystem.open(url, cache_type="blockcache", block_size=4 << 20) as file:
                return open_group("h5netcdf", file, "group_0050")

        def virtualizarr() -> Any:
            from obspec_utils.registry import ObjectStoreRegistry
            from obstore.store import HTTPStore
            from virtualizarr.parsers import HDFParser

            store = HTTPStore(server.url, client_options={"allow_http": True})
            manifest = HDFParser(group="group_0050")(url, ObjectStoreRegistry({server.url: store}))
            with xr.open_dataset(manifest, engine="zarr", zarr_format=3, consolidated=False) as opened:
                return opened["x"].values

        tools = {
            "h5zarr": lambda: open_group("h5zarr", url, "group_0050"),
            "h5netcdf, 4 MB blocks": blocks,
            "VirtualiZarr": virtualizarr,
        }
        measure("The same over HTTP at 30 ms", tools, expected, arguments.repeat, server)


STEP_SHAPE = (60, 60)


def make_step(path: Path, number: int) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "y", "x"), (None, *STEP_SHAPE), strict=True):
            file.createDimension(name, extent)
        time_axis = file.createVariable("time", "f8", ("time",), chunksizes=(1,))
        time_axis.units = "days since 2000-01-01"
        time_axis[:] = number
        file.createVariable("v", "f4", ("time", "y", "x"), chunksizes=(1, *STEP_SHAPE), zlib=True)[:] = _values(number)


def _values(number: int) -> Any:
    return np.random.default_rng(number).random((1, *STEP_SHAPE)).astype("f4")


@contextmanager
def stepwise(arguments: argparse.Namespace, count: int) -> Iterator[tuple[Any, Path, Path]]:
    """Yield a server of one file for each step, references of all of them, and an Icechunk repository of these."""
    directory = arguments.below / f"steps_{arguments.files}"
    for number in range(arguments.files):
        made(directory / f"{number:06d}.nc", lambda path, number=number: make_step(path, number))
    with serving(directory, latency=LATENCY, bandwidth=BANDWIDTH) as server, tempfile.TemporaryDirectory() as folder:
        local, cube, repository = (Path(folder) / name for name in ("local.json", "cube.json", "repository"))
        h5zarr.combine([str(directory / f"{number:06d}.nc") for number in range(count)], local, along="time")
        cube.write_text(local.read_text().replace(str(directory), server.url))
        yield server, cube, repository


def point(arguments: argparse.Namespace) -> None:
    count = arguments.files
    expected = [_values(number)[0, 30, 30] for number in range(count)]
    with stepwise(arguments, count) as (server, cube, repository):

        def ours() -> Any:
            with xr.open_dataset(cube, engine="h5zarr") as opened:
                return opened.v[:, 30, 30].values

        def references() -> Any:
            options = {
                "fo": str(cube),
                "remote_protocol": "http",
                "remote_options": {"asynchronous": True, "skip_instance_cache": True},
                "skip_instance_cache": True,
            }
            with xr.open_dataset("reference://", engine="zarr", storage_options=options, consolidated=False) as opened:
                return opened.v[:, 30, 30].values

        def through_icechunk() -> Any:
            import icechunk

            storage = icechunk.local_filesystem_storage(str(repository))
            prefixes = icechunk.Repository.fetch_config(storage).virtual_chunk_containers
            access = icechunk.containers_credentials(dict.fromkeys(prefixes, icechunk.credentials.HttpAccess))
            opened = icechunk.Repository.open(storage, authorize_virtual_chunk_access=access)
            store = opened.readonly_session("main").store
            with xr.open_dataset(store, engine="zarr", zarr_format=3, consolidated=False) as dataset:
                return dataset.v[:, 30, 30].values

        h5zarr.convert(cube, f"icechunk+file://{repository}")
        tools = {"h5zarr": ours, "fsspec reference filesystem": references, "Icechunk and zarr": through_icechunk}
        bound = LATENCY * count / MOST_REQUESTS
        measure(f"One point through {count:,} files at 30 ms", tools, expected, min(2, arguments.repeat), server)
        print(f"Latency × requests / {MOST_REQUESTS} is {bound:.2f} s; 1.5 times that is {1.5 * bound:.2f} s.")


def loop(arguments: argparse.Namespace) -> None:
    count = 200
    expected = [float(_values(number).mean()) for number in range(count)]
    with stepwise(arguments, count) as (server, cube, _):

        def steps(most: int) -> Any:
            with xr.open_dataset(cube, engine="h5zarr", network={"prefetch_nbytes": most}) as opened:
                return [float(opened.v[number].values.mean()) for number in range(count)]

        tools = {"h5zarr": lambda: steps(64 << 20), "h5zarr, without reading ahead": lambda: steps(0)}
        measure("A loop over 200 steps at 30 ms", tools, expected, arguments.repeat, server)


def start(arguments: argparse.Namespace) -> None:
    path = many_datasets(arguments.below, 2050, "latest")
    code = "import xarray as xr; print(float(xr.open_dataset({!r}, engine={!r}, group='group_0050')['x'][3]))"

    def run(engine: str) -> Any:
        command = [sys.executable, "-c", code.format(str(path), engine)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    tools = {name: lambda name=name: run(name) for name in ("h5zarr", "h5netcdf", "netcdf4")}
    measure("A new process: import, open a group, read one value", tools, run("netcdf4"), 2 * arguments.repeat)


def dask(arguments: argparse.Namespace) -> None:
    """The mean over 2 GB in twenty files, with two processes."""
    from distributed import Client, LocalCluster

    directory = arguments.below / "two_gigabytes"
    paths = [made(directory / f"{number:02}.nc", lambda path, n=number: _make_large(path, n)) for number in range(20)]
    with tempfile.TemporaryDirectory() as folder:
        cube = Path(folder) / "cube.json"
        h5zarr.combine([str(path) for path in paths], cube, along="time")

        def ours() -> Any:
            with xr.open_dataset(cube, engine="h5zarr", chunks="auto") as opened:
                return round(float(opened.v.mean()), 9)

        def netcdf() -> Any:
            with xr.open_mfdataset(paths, engine="netcdf4", chunks={}) as opened:
                return round(float(opened.v.mean()), 9)

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
        with cluster, Client(cluster):
            tools = {"h5zarr": ours, "xarray and netCDF4": netcdf}
            measure("Mean over 2 GB, Dask cluster of 2 processes", tools, ours(), arguments.repeat)


def _make_large(path: Path, number: int) -> None:
    random = np.random.default_rng(number)
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in (("time", None), ("y", 800), ("x", 1600)):
            file.createDimension(name, extent)
        time_axis = file.createVariable("time", "f8", ("time",))
        time_axis.units = "days since 2000-01-01"
        time_axis[:] = np.arange(10) + 10 * number
        how: dict[str, Any] = {"chunksizes": (1, 400, 800), "zlib": True, "complevel": 1, "shuffle": True}
        variable = file.createVariable("v", "f8", ("time", "y", "x"), **how)
        for step in range(10):
            variable[step] = random.integers(0, 1000, (800, 1600)) / 8


TABLES: dict[str, Callable[[argparse.Namespace], None]] = {
    "group": group,
    "remote-group": remote_group,
    "point": point,
    "loop": loop,
    "dask": dask,
    "start": start,
}


if __name__ == "__main__":
    main()
