"""Scanning over HTTP: rounds, requests, bytes and seconds at a known latency and bandwidth.

    python benchmarks/scan_remote.py [--directory DIR] [--latency S] [--bandwidth B] [--repeat N] [--no-peers] [--quick]

The counts are the server's, except for two of h5zarr's own: the batches that the parser asks for, and the rounds, which
are those that the cache could not answer. The server only sees when it is idle, and counts the waits that end that.
Each scan of h5zarr is compared with h5py on the local file before it is timed.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check import Wrong, check_chunks, check_datasets
from files import DATASET_COUNTS, LIBVERS, MANY_DATASETS, default_directory, many_chunks, many_datasets
from range_server import Counts, Served, serving
from tables import print_machine, print_table
from with_h5py import list_chunks, walk

from h5zarr.hdf5.file import read_file
from h5zarr.hdf5.model import H5File
from h5zarr.io.log import RequestLog
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import run

LARGE_BLOCK = 8 * 1024 * 1024
COLUMNS = (
    "file",
    "MB",
    "by",
    "batches",
    "rounds",
    "waits",
    "requests",
    "at once",
    "MB moved",
    "seconds",
    "times h5zarr",
)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another way to the same knowledge, and the packages that it needs."""

    name: str
    packages: tuple[str, ...]
    scan: Callable[[str], Any]

    @property
    def installed(self) -> bool:
        return all(importlib.util.find_spec(package) for package in self.packages)


@dataclass(frozen=True, slots=True)
class Case:
    """A file, how a scan of it is checked, and how h5py goes through it."""

    name: str
    path: Path
    check: Callable[[H5File, Path], int]
    with_h5py: Callable[[Any], Any]


def scan_counted(url: str) -> tuple[H5File, int, RequestLog]:
    """The file at `url`, how many batches the parser asked for, and what they cost by the source's own log.

    A batch that the cache answers is no round. Nothing is cached between two scans.
    """
    batches = 0

    def read_many(spans: Sequence[Span]) -> Sequence[memoryview]:
        nonlocal batches
        batches += 1
        return source.read_many(spans)

    with open_source(url) as source:
        return run(read_file(source.url, source.nbytes), read_many), batches, source.log


def scan(url: str) -> H5File:
    """The file at `url`."""
    with open_source(url) as source:
        return run(read_file(source.url, source.nbytes), source.read_many)


def open_default(url: str) -> Any:
    """A file object as fsspec makes it unless told otherwise."""
    import fsspec

    return fsspec.filesystem("http", skip_instance_cache=True).open(url)


def open_large_blocks(url: str) -> Any:
    """A file object that reads and keeps blocks of 8 MB."""
    import fsspec

    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    return filesystem.open(url, block_size=LARGE_BLOCK, cache_type="blockcache")


def translate_with_kerchunk(opened: Any, url: str) -> Any:
    """What kerchunk makes of an open file."""
    from kerchunk.hdf import SingleHdf5ToZarr

    return SingleHdf5ToZarr(opened, url=url).translate()


def peers(case: Case) -> list[Peer]:
    """The peers that are measured if they are installed."""
    over_http = ("fsspec", "aiohttp")
    return [
        Peer("h5py, fsspec default", over_http, lambda url: case.with_h5py(open_default(url))),
        Peer("h5py, fsspec 8 MB blocks", over_http, lambda url: case.with_h5py(open_large_blocks(url))),
        Peer(
            "kerchunk, default",
            ("kerchunk", *over_http),
            lambda url: translate_with_kerchunk(open_default(url), url),
        ),
        Peer(
            "kerchunk, 8 MB blocks",
            ("kerchunk", *over_http),
            lambda url: translate_with_kerchunk(open_large_blocks(url), url),
        ),
    ]


def measure(scan: Callable[[str], Any], url: str, server: Served, repeat: int) -> tuple[float, Counts]:
    """The shortest time of `repeat` runs, and the counts of that run."""
    best: tuple[float, Counts] | None = None
    for _ in range(repeat):
        gc.collect()
        server.reset()
        start = time.perf_counter()
        result = scan(url)
        seconds = time.perf_counter() - start
        del result
        if best is None or seconds < best[0]:
            best = seconds, server.counts()
    assert best is not None
    return best


def compare(case: Case, server: Served, repeat: int, *, with_peers: bool) -> list[tuple[str, ...]]:
    """The rows of one file: h5zarr's, then each peer's."""
    url = f"{server.url}/{case.path.name}"
    size = f"{case.path.stat().st_size / 1e6:.1f}"
    scanned, batches, log = scan_counted(url)
    try:
        case.check(scanned, case.path)
    except Wrong as wrong:
        return [(case.name, size, f"h5zarr is WRONG: {wrong}", *[""] * 8)]
    del scanned
    ours, counts = measure(scan, url, server, repeat)
    rows = [(case.name, size, "h5zarr", f"{batches}", f"{log.rounds}", *_figures(ours, counts), "1.0")]
    for peer in peers(case) if with_peers else ():
        if peer.installed:
            seconds, counts = measure(peer.scan, url, server, repeat)
            rows.append((case.name, size, peer.name, "", "", *_figures(seconds, counts), f"{seconds / ours:.1f}"))
        else:
            rows.append((case.name, size, f"{peer.name}: not installed", *[""] * 8))
    return rows


def _figures(seconds: float, counts: Counts) -> tuple[str, ...]:
    return (
        f"{counts.waits:,}",
        f"{counts.requests:,}",
        f"{counts.max_in_flight}",
        f"{counts.nbytes / 1e6:.1f}",
        f"{seconds:.2f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Scan files over HTTP with h5zarr and its peers.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--latency", type=float, default=0.030, help="seconds before a response begins")
    parser.add_argument("--bandwidth", type=float, default=100e6, help="bytes a second, shared by all responses")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true", help="leave out the largest files")
    arguments = parser.parse_args()
    directory: Path = arguments.directory

    print_machine()
    print(f"HTTP on the loopback, latency {1e3 * arguments.latency:.0f} ms, {arguments.bandwidth / 1e6:.0f} MB/s")
    cases = [
        Case(f"{count:,} datasets, {libver}", many_datasets(directory, count, libver), check_datasets, walk)
        for libver in LIBVERS
        for count in (MANY_DATASETS,)
    ]
    if not arguments.quick:
        path = many_chunks(directory, 1_000_000, "btree1")
        cases.append(Case("1,000,000 chunks, btree1", path, check_chunks, list_chunks))
    growing = [
        Case(f"{count:,} datasets, {libver}", many_datasets(directory, count, libver), check_datasets, walk)
        for libver in LIBVERS
        for count in DATASET_COUNTS
        if count < 20_000 or not arguments.quick
    ]
    with serving(directory, latency=arguments.latency, bandwidth=arguments.bandwidth) as server:
        rows = [
            row for case in cases for row in compare(case, server, arguments.repeat, with_peers=not arguments.no_peers)
        ]
        print_table("Scans over HTTP", COLUMNS, rows)
        rows = [row for case in growing for row in compare(case, server, arguments.repeat, with_peers=False)]
        print_table("Growth with the number of datasets", COLUMNS[:-1], [row[:-1] for row in rows])


if __name__ == "__main__":
    main()
