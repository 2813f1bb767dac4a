"""Reading over HTTP: engine="h5zarr" next to those who read the same files, or references to them.

    python benchmarks/read_remote.py [--latency S] [--bandwidth B] [--repeat N] [--only h5zarr,h5netcdf]

Every tool opens and reads as its users do, in one process, in turns; what it reads is compared with the file before it
is timed. Nothing is kept from one time to the next. Times are of opening and reading together, the best of `--repeat`.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy as np
import xarray as xr
from range_server import Counts, Served, serving
from read_files import REMOTE, Case, make_file
from tables import print_machine, print_table

from h5zarr.commands.translate.translate import translate

COLUMNS = ("read", "tool", "seconds", "h5zarr is faster by", "requests", "MB moved", "most at once")
PATIENCE = 4.0  # seconds, after which nothing is measured a third time


@contextmanager
def h5zarr_references(url: str) -> Iterator[xr.Dataset]:
    with xr.open_dataset(f"{url}.json", engine="h5zarr") as dataset:
        yield dataset


@contextmanager
def h5zarr_file(url: str) -> Iterator[xr.Dataset]:
    with xr.open_dataset(url, engine="h5zarr") as dataset:
        yield dataset


@contextmanager
def reference_filesystem(url: str) -> Iterator[xr.Dataset]:
    options = {
        "fo": f"{url}.json",
        "remote_protocol": "http",
        "remote_options": {"asynchronous": True, "skip_instance_cache": True},
        "skip_instance_cache": True,
    }
    with xr.open_dataset("reference://", engine="zarr", storage_options=options) as dataset:
        yield dataset


@contextmanager
def virtualizarr_store(url: str) -> Iterator[xr.Dataset]:
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore
    from virtualizarr.parsers import HDFParser

    base = url.rpartition("/")[0]
    store = HTTPStore(base, client_options={"allow_http": True})
    manifest = HDFParser()(url, ObjectStoreRegistry({base: store}))
    with xr.open_dataset(manifest, engine="zarr", zarr_format=3, consolidated=False) as dataset:
        yield dataset


@contextmanager
def h5netcdf_blocks(url: str) -> Iterator[xr.Dataset]:
    """xarray's own way for URLs: blocks of 4 MB, which are kept."""
    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    with (
        filesystem.open(url, cache_type="blockcache", block_size=4 << 20) as file,
        xr.open_dataset(file, engine="h5netcdf") as dataset,
    ):
        yield dataset


@contextmanager
def h5py_file(url: str) -> Iterator[Any]:
    """h5py over a file of fsspec as it is by default; dressed as a dataset for those that read it."""
    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    with filesystem.open(url) as file, h5py.File(file) as opened:
        coordinates = {name: one[...] for name, one in opened.items() if one.ndim == 1}
        yield Dressed(opened, coordinates)


class Dressed:
    """Datasets by attribute, with `values` when they are indexed, or all of them."""

    def __init__(self, file: h5py.File, coordinates: dict[str, Any]) -> None:
        self._file, self._coordinates = file, coordinates

    def __getattr__(self, name: str) -> Any:
        return Values(self._coordinates[name] if name in self._coordinates else self._file[name])


class Values:
    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Any:
        return Values(self._array[key])

    @property
    def values(self) -> Any:
        return np.asarray(self._array[...])


TOOLS: dict[str, Callable[[str], Any]] = {
    "h5zarr": h5zarr_references,
    "h5zarr, without references": h5zarr_file,
    "fsspec reference filesystem": reference_filesystem,
    "VirtualiZarr store": virtualizarr_store,
    "h5netcdf, 4 MB blocks": h5netcdf_blocks,
    "h5py": h5py_file,
}


def measure(
    server: Served, url: str, case: Case, tool: Callable[[str], Any], expected: Any, repeat: int
) -> tuple[float, Counts]:
    """The shortest time, and what the server was asked then; every value is compared."""
    best, counts = float("inf"), Counts()
    for _ in range(repeat):
        server.reset()
        start = time.perf_counter()
        with tool(url) as dataset:
            found = case.read(dataset)
            seconds = time.perf_counter() - start
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
        if seconds < best:
            best, counts = seconds, server.counts()
        if best > PATIENCE:
            break
    return best, counts


def compare(case: Case, directory: Path, server: Served, tools: list[str], repeat: int) -> Iterator[tuple[str, ...]]:
    path = make_file(directory / case.file, case.make)
    url = f"{server.url}/{path.name}"
    translate(path, f"{path}.json", target_url=url)
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        expected = case.read(dataset)
    found = {name: measure(server, url, case, TOOLS[name], expected, repeat) for name in tools}
    ours = found.get("h5zarr", (float("nan"),))[0]
    for name, (seconds, counts) in found.items():
        yield (
            case.title,
            name,
            f"{seconds:.2f}",
            f"{seconds / ours:.2f}x",
            f"{counts.requests:,}",
            f"{counts.nbytes / 1e6:.1f}",
            f"{counts.max_in_flight}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Read over HTTP with every tool that can.")
    parser.add_argument("--latency", type=float, default=0.030, help="seconds before a response begins")
    parser.add_argument("--bandwidth", type=float, default=100e6, help="bytes a second, shared by all responses")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", help="names of tools, with commas between")
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # fsspec leaves sessions to the collector
    directory = arguments.directory or Path(
        os.environ.get("H5ZARR_BENCHMARK_DIR", Path(tempfile.gettempdir()) / "h5zarr-benchmarks")
    )
    directory.mkdir(parents=True, exist_ok=True)
    tools = arguments.only.split(",") if arguments.only else list(TOOLS)
    print_machine()
    print(f"HTTP on the loopback, latency {1e3 * arguments.latency:.0f} ms, {arguments.bandwidth / 1e6:.0f} MB/s")
    with serving(directory, latency=arguments.latency, bandwidth=arguments.bandwidth) as server:
        one = partial(compare, directory=directory, server=server, tools=tools, repeat=arguments.repeat)
        rows = [row for case in REMOTE for row in one(case)]
    print_table("Opening and reading over HTTP", COLUMNS, rows)


if __name__ == "__main__":
    main()
