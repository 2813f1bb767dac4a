"""Opening references over HTTP: how much should they carry themselves? It is from this that the defaults were chosen.

    python benchmarks/open_remote.py [--latency S] [--bandwidth B] [--repeat N] [--quick] [--only model|steps|scalars]

Three files are translated with different limits for inlining. File and references are served with a known latency and
bandwidth, opened with xarray as its users do, and what they look at first is loaded: coordinates, or all scalars. The
values are compared with those in the file. `--quick` takes three limits only.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr
from range_server import Counts, Served, serving
from tables import print_machine, print_table

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translate import run_translation
from h5zarr.containers.container import Output
from h5zarr.encode.inlining import Inlining
from h5zarr.io.access import Access
from h5zarr.io.location import Location

LIMITS = (0, 512, 1024, 4096, 16384, 65536, 262144, 1048576)
QUICK_LIMITS = (0, 1024, 65536)
CHUNK_PAYLOAD = bytes(range(256))
PATIENCE = 5.0  # seconds, after which nothing is measured a second time
COLUMNS = ("file", "coordinates up to", "arrays up to", "seconds", "requests", "kB moved", "references kB")


@dataclass(frozen=True, slots=True)
class Case:
    """A file, which limits matter for it, and whether its users load all of it at once or its coordinates only."""

    name: str
    make: Callable[[h5py.File], None]
    knobs: tuple[str, ...]
    loads_all: bool = False


def make_model(file: h5py.File) -> None:
    """Output of a model: a year of hours, coordinates of some thousand elements, bounds, and five large variables."""
    time_axis = _add_scale(file, "time", np.arange(8760.0), chunks=(512,), maxshape=(None,))
    time_axis.attrs["units"] = "hours since 2000-01-01"
    time_axis.attrs["bounds"] = "time_bnds"
    axes = [
        time_axis,
        _add_scale(file, "lat", np.linspace(-90, 90, 1801)),
        _add_scale(file, "lon", np.arange(3600) / 10),
    ]
    file.create_dataset("time_bnds", data=np.add.outer(np.arange(8760.0), [0, 1]), chunks=(8760, 2), compression="gzip")
    file.create_dataset("crs", data=np.int32(0)).attrs["grid_mapping_name"] = "latitude_longitude"
    for name in ("t2m", "u10", "v10", "msl", "tp"):
        _add_large(file, name, axes, (24, 1801, 3600))


def make_steps(file: h5py.File) -> None:
    """A time series that grew step by step, so that time has a chunk for each of its 5,000 elements."""
    time_axis = _add_scale(file, "time", np.arange(5000.0), chunks=(1,), maxshape=(None,))
    time_axis.attrs["units"] = "hours since 2000-01-01"
    axes = [time_axis, _add_scale(file, "lat", np.linspace(-90, 90, 181)), _add_scale(file, "lon", np.arange(360.0))]
    _add_large(file, "sst", axes, (1, 181, 360))


def make_scalars(file: h5py.File) -> None:
    """A hundred variables of one number each, as instruments write their settings."""
    for number in range(100):
        file.create_dataset(f"setting_{number:02}", data=np.float64(number) / 3)


CASES = {
    "model": Case("model output", make_model, ("coordinate_nbytes", "array_nbytes")),
    "steps": Case("time in 5,000 chunks", make_steps, ("coordinate_nbytes",)),
    "scalars": Case("100 scalars", make_scalars, ("array_nbytes",), loads_all=True),
}


def _add_scale(file: h5py.File, name: str, values: Any, **options: Any) -> h5py.Dataset:
    scale = file.create_dataset(name, data=values, **options)
    scale.make_scale(name)
    return scale


def _add_large(file: h5py.File, name: str, axes: list[h5py.Dataset], chunks: tuple[int, ...]) -> None:
    """A variable of which nothing is loaded here; its chunks need only be somewhere."""
    shape = tuple(len(axis) for axis in axes)
    variable = file.create_dataset(name, shape, "<f4", chunks=chunks, compression="gzip")
    for number, axis in enumerate(axes):
        variable.dims[number].attach_scale(axis)
    for first in range(0, shape[0], chunks[0]):
        variable.id.write_direct_chunk((first, *[0] * (len(shape) - 1)), CHUNK_PAYLOAD)


def choices(case: Case, limits: tuple[int, ...]) -> Iterator[Inlining]:
    """One limit rises while the other has its default."""
    for knob in case.knobs:
        for limit in limits:
            yield replace(Inlining(), **{knob: limit})


def load(dataset: xr.Dataset, case: Case) -> xr.Dataset:
    """What users of the file look at first."""
    return dataset.load() if case.loads_all else dataset.coords.to_dataset().load()


def open_references(url: str, case: Case) -> xr.Dataset:
    """That, by references at `url`. Nothing is cached from one time to the next."""
    options = {
        "fo": url,
        "remote_protocol": "http",
        "remote_options": {"asynchronous": True, "skip_instance_cache": True},
        "skip_instance_cache": True,
    }
    with xr.open_dataset("reference://", engine="zarr", storage_options=options) as dataset:
        return load(dataset, case)


def measure(server: Served, url: str, case: Case, expected: xr.Dataset, repeat: int) -> tuple[float, Counts]:
    """The shortest time, and what the server was asked; having compared all values."""
    best = float("inf")
    for _ in range(repeat):
        server.reset()
        start = time.perf_counter()
        found = open_references(url, case)
        best = min(best, time.perf_counter() - start)
        xr.testing.assert_equal(found, expected)
        if best > PATIENCE:
            break
    return best, server.counts()


def compare(
    case: Case, directory: Path, server: Served, limits: tuple[int, ...], repeat: int
) -> Iterator[tuple[str, ...]]:
    """The rows of one file."""
    path = directory / f"{case.name.split()[0]}.nc"
    with h5py.File(path, "w", libver="v110") as file:
        case.make(file)
    with xr.open_dataset(path) as dataset:
        expected = load(dataset, case)
    for inlining in choices(case, limits):
        out = directory / f"{path.stem}_{inlining.coordinate_nbytes}_{inlining.array_nbytes}.json"
        options = Options(inlining=inlining, target_url=f"{server.url}/{path.name}")
        run_translation(Location.parse(path), Output(location=Location.parse(out)), options, Access())
        seconds, counts = measure(server, f"{server.url}/{out.name}", case, expected, repeat)
        yield (
            case.name,
            _size(inlining.coordinate_nbytes),
            _size(inlining.array_nbytes),
            f"{seconds:.2f}",
            f"{counts.requests:,}",
            f"{counts.nbytes / 1e3:.1f}",
            f"{out.stat().st_size / 1e3:.1f}",
        )


def _size(nbytes: int) -> str:
    if nbytes >= 1 << 20:
        return f"{nbytes >> 20} MiB"
    return f"{nbytes >> 10} KiB" if nbytes >= 1024 else f"{nbytes} B"


def main() -> None:
    parser = argparse.ArgumentParser(description="Open references over HTTP, with more and more of the data in them.")
    parser.add_argument("--latency", type=float, default=0.030, help="seconds before a response begins")
    parser.add_argument("--bandwidth", type=float, default=10e6, help="bytes a second, shared by all responses")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="three limits only")
    parser.add_argument("--only", choices=sorted(CASES))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3 specification")
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # fsspec leaves sessions to the collector
    print_machine()
    print(f"HTTP on the loopback, latency {1e3 * arguments.latency:.0f} ms, {arguments.bandwidth / 1e6:.0f} MB/s")
    limits = QUICK_LIMITS if arguments.quick else LIMITS
    cases = [case for name, case in CASES.items() if arguments.only in (None, name)]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with serving(directory, latency=arguments.latency, bandwidth=arguments.bandwidth) as server:
            rows = [row for case in cases for row in compare(case, directory, server, limits, arguments.repeat)]
    default = Inlining()
    told = f"{_size(default.coordinate_nbytes)} for coordinates, {_size(default.array_nbytes)} for other arrays"
    print_table(f"Opening references with xarray and loading what is looked at first (defaults: {told})", COLUMNS, rows)


if __name__ == "__main__":
    main()
