"""Scanning local files: h5zarr against h5py in one process, after every value has been compared.

    python benchmarks/scan_local.py [--directory DIR] [--repeat N] [--quick]

`--quick` leaves out the largest files.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check import Wrong, check_chunks, check_datasets
from files import (
    CHUNK_INDEXES,
    DATASET_COUNTS,
    GRIDS,
    LIBVERS,
    MANY_DATASETS,
    default_directory,
    many_chunks,
    many_datasets,
)
from tables import print_machine, print_table
from with_h5py import chunk_columns, list_chunks, walk

import h5zarr

SCANNERS: dict[str, Callable[[str], Any]] = {
    "h5zarr": h5zarr.scan,
    "h5py-chunks": list_chunks,
    "h5py-columns": chunk_columns,
    "h5py-walk": walk,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes that a scan took: at most, by Python's and numpy's own count, and by the operating system's.

    Pages of a memory-mapped file count in `peak_resident`, though the system may drop them; not in `kept_private`.
    """

    peak_traced: int
    peak_resident: int
    kept_private: int


def best_times(scans: list[Callable[[str], Any]], path: str, repeat: int) -> list[float]:
    """The shortest time of each of `scans`, run in turns so that a slow spell of the machine meets all of them."""
    best = [float("inf")] * len(scans)
    for _ in range(repeat):
        for number, scan in enumerate(scans):
            gc.collect()
            start = time.perf_counter()
            result = scan(path)
            best[number] = min(best[number], time.perf_counter() - start)
            del result
    return best


def measure_memory(scanner: str, path: Path) -> Memory:
    """What `scanner` takes for `path`, each figure in a fresh process: tracing itself takes memory."""

    small = many_datasets(path.parent, min(DATASET_COUNTS), "earliest")

    def child(what: str) -> Any:
        command = [sys.executable, __file__, "--measure", what, scanner, str(path), str(small)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    resident, private = child("resident")
    return Memory(peak_traced=child("traced"), peak_resident=resident, kept_private=private)


def measure_here(what: str, scanner: str, path: str, small: str) -> Any:
    """In a fresh process: the peak of traced bytes, or the growth of peak resident and of private bytes.

    The file `small` is scanned first, so that imports do not count.
    """
    h5zarr.scan(small)
    scan = SCANNERS[scanner]
    if what == "traced":
        tracemalloc.start()
        result = scan(path)
        return tracemalloc.get_traced_memory()[1]
    resident_before, private_before = _status("VmHWM"), _status("RssAnon")
    result = scan(path)
    resident, private = _status("VmHWM"), _status("RssAnon")
    del result
    return resident - resident_before, private - private_before


def _status(name: str) -> int:
    """A size that the system knows of this process, in bytes; 0 where it does not tell.

    Not `getrusage`: its peak outlives `exec`, so a small process would inherit that of the one which started it.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


def compare_chunks(directory: Path, counts: list[int], repeat: int) -> None:
    """Print times and memory for one dataset of many chunks, for each kind of index."""
    times, memories = [], []
    for index in CHUNK_INDEXES:
        for count in counts:
            path = many_chunks(directory, count, index)
            name = f"{index}, {count:,} chunks"
            try:
                checked = check_chunks(h5zarr.scan(str(path)), path)
            except Wrong as wrong:
                times.append((name, f"{path.stat().st_size / 1e6:.1f}", f"WRONG: {wrong}", *[""] * 5))
                continue
            ours, listed, columns = best_times([h5zarr.scan, list_chunks, chunk_columns], str(path), repeat)
            times.append(
                (
                    name,
                    f"{path.stat().st_size / 1e6:.1f}",
                    f"{checked:,}",
                    _seconds(ours),
                    _seconds(listed),
                    _seconds(columns),
                    f"{listed / ours:.1f}",
                    f"{1e6 * ours / count:.3f}",
                )
            )
            for scanner in ("h5zarr", "h5py-chunks"):
                memory = measure_memory(scanner, path)
                memories.append(
                    (
                        name,
                        scanner,
                        f"{memory.peak_traced / count:.0f}",
                        f"{memory.peak_traced / 1e6:.1f}",
                        f"{memory.peak_resident / 1e6:.1f}",
                        f"{memory.kept_private / 1e6:.1f}",
                    )
                )
    title = "One dataset of many chunks: seconds to the whole chunk table (ratio to h5py's list)"
    columns_of_times = ("file", "MB", "chunks equal", "h5zarr", "h5py list", "h5py columns", "ratio", "µs a chunk")
    print_table(title, columns_of_times, times)
    columns_of_memory = ("file", "by", "peak B a chunk", "peak MB", "peak resident MB", "kept private MB")
    print_table("Memory of the same", columns_of_memory, memories)


def compare_datasets(directory: Path, counts: list[int], repeat: int) -> None:
    """Print times and memory for many small datasets."""
    rows = []
    for libver in LIBVERS:
        for count in counts:
            path = many_datasets(directory, count, libver)
            name = f"{count:,} datasets, {libver}"
            try:
                checked = check_datasets(h5zarr.scan(str(path)), path)
            except Wrong as wrong:
                rows.append((name, f"{path.stat().st_size / 1e6:.1f}", f"WRONG: {wrong}", *[""] * 5))
                continue
            ours, theirs = best_times([h5zarr.scan, walk], str(path), repeat)
            memory = measure_memory("h5zarr", path)
            rows.append(
                (
                    name,
                    f"{path.stat().st_size / 1e6:.1f}",
                    f"{checked:,}",
                    _seconds(ours),
                    _seconds(theirs),
                    f"{theirs / ours:.1f}",
                    f"{1e3 * ours / count:.3f}",
                    f"{memory.peak_traced / count / 1e3:.1f}",
                )
            )
    columns = ("file", "MB", "datasets equal", "h5zarr", "h5py walk", "ratio", "ms a dataset", "peak kB a dataset")
    print_table("Many datasets with nine attributes each: seconds to everything", columns, rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Scan local files with h5zarr and with h5py.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="leave out the largest files")
    parser.add_argument("--only", choices=("chunks", "datasets"))
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure_here(*arguments.measure)))
        return
    print_machine()
    chunk_counts = [count for count in GRIDS if count < 1_000_000 or not arguments.quick]
    dataset_counts = [count for count in (MANY_DATASETS, *DATASET_COUNTS) if count < 20_000 or not arguments.quick]
    if arguments.only != "datasets":
        compare_chunks(arguments.directory, chunk_counts, arguments.repeat)
    if arguments.only != "chunks":
        compare_datasets(arguments.directory, dataset_counts, arguments.repeat)


if __name__ == "__main__":
    main()
