"""Indexing many files: how fast, what a run costs that has nothing to do, and how much memory it takes.

    python benchmarks/index.py [--files 2000] [--kerchunk-files 100] [--sources 100000] [--only speed,noop,memory]

Small netCDF-4 files over HTTP, by `h5zarr index` and by the loop over kerchunk that it takes the place of; every chunk
of a sample is compared with h5py before anything is told. Of h5zarr the whole command is timed, of kerchunk what comes
after its imports and its first file. It is given fewer files, since it is slow, and its rate is taken to stay the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from files import default_directory
from processes import Peaks, processor_seconds, run_watched
from range_server import Served, serving
from references import READERS, count_equal, of_h5py
from small_files import small_files
from tables import print_machine, print_table

HERE = Path(__file__).parent
LATENCY_SECONDS = 0.030
SAMPLE_COUNT = 20
MOST_SECONDS, MOST_MEGABYTES, LEAST_RATIO, MOST_GROWTH = 5.0, 300.0, 10.0, 1.2


@dataclass(frozen=True, slots=True)
class Speed:
    """What it took to index some files, and how many chunks of the sample are right and wrong."""

    by: str
    processes: int
    count: int
    seconds: float
    processor_seconds: float | None
    requests: int
    equal: int
    wrong: int

    @property
    def rate(self) -> float:
        return self.count / self.seconds


def h5zarr_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "h5zarr", "index", *map(str, arguments)]


# --- speed


def measure_speed(directory: Path, count: int, kerchunk_count: int) -> list[Speed]:
    """What h5zarr takes for `count` files with one and two processes and on Dask, and kerchunk for fewer of them."""
    paths = small_files(directory, count)
    found: list[Speed] = []
    with (
        serving(paths[0].parent, latency=LATENCY_SECONDS, bandwidth=100e6) as server,
        tempfile.TemporaryDirectory(dir=directory) as scratch,
    ):
        names = _write_list(Path(scratch) / "all.txt", server, paths)
        for processes in (1, 2):
            out = Path(scratch) / f"h5zarr-{processes}"
            command = h5zarr_command("--files-from", names, out, "--workers", str(processes), "--quiet")
            found.append(_timed("h5zarr", processes, command, server, paths, out))
        with _dask_cluster(2) as address:
            out = Path(scratch) / "dask"
            command = h5zarr_command("--files-from", names, out, "--dask", address, "--quiet")
            found.append(_timed("h5zarr on Dask", 2, command, server, paths, out))
        few = paths[:kerchunk_count]
        names = _write_list(Path(scratch) / "few.txt", server, few)
        for processes in (1, 2):
            out = Path(scratch) / f"kerchunk-{processes}"
            command = [sys.executable, str(HERE / "kerchunk_loop.py"), str(names), str(out), str(processes)]
            found.append(_timed("kerchunk", processes, command, server, few, out))
    return found


def _write_list(place: Path, server: Served, paths: Sequence[Path]) -> Path:
    place.write_text("".join(f"{server.url}/{path.name}\n" for path in paths))
    return place


def _timed(by: str, processes: int, command: list[str], server: Served, paths: Sequence[Path], out: Path) -> Speed:
    server.reset()
    before, started = processor_seconds(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds, processor = time.perf_counter() - started, processor_seconds() - before
    if done.returncode:
        raise SystemExit(f"{by}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    if by == "kerchunk":
        seconds = float(done.stdout.split()[-1])
    requests = server.counts().requests
    outputs = {path.name.removesuffix(".json"): path for path in out.rglob("*.json") if path.parent.name != "_h5zarr"}
    if set(outputs) != {path.name for path in paths}:
        raise SystemExit(f"{by}: {len(outputs):,} outputs of {len(paths):,} files")
    equal, wrong = _compare(by, outputs, paths)
    # Workers of Dask belong to a cluster, which goes on.
    known = None if "Dask" in by else processor
    return Speed(by, processes, len(paths), seconds, known, requests, equal, wrong)


def _compare(by: str, outputs: dict[str, Path], paths: Sequence[Path]) -> tuple[int, int]:
    """How many chunks of a sample are where h5py says, and how many are not."""
    read = READERS[by.partition(" ")[0]]
    step = max(1, len(paths) // SAMPLE_COUNT)
    counts = [count_equal(read(outputs[path.name]), of_h5py(path), path) for path in paths[::step]]
    return sum(equal for equal, _ in counts), sum(wrong for _, wrong in counts)


@contextmanager
def _dask_cluster(count: int) -> Iterator[str]:
    """The address of a cluster of `count` processes on this machine."""
    from distributed import LocalCluster

    options = {"n_workers": count, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options, host="127.0.0.1") as cluster:
        yield cluster.scheduler_address


def tell_speed(found: list[Speed]) -> list[Sequence[str]]:
    """Print the table, and return the bars with what was measured."""
    kerchunk = {one.processes: one.rate for one in found if one.by == "kerchunk"}
    rows, bars = [], []
    for one in found:
        ratio = one.rate / kerchunk[one.processes]
        processor = "" if one.processor_seconds is None else f"{one.processor_seconds / one.count * 1e3:.1f}"
        right = f"{one.equal:,}" if not one.wrong else f"{one.equal:,}, WRONG {one.wrong:,}"
        counts = (str(one.processes), f"{one.count:,}", f"{one.seconds:.1f}", f"{one.rate:.1f}", f"{ratio:.1f}")
        rows.append((one.by, *counts, processor, f"{one.requests / one.count:.1f}", right))
        if one.by != "kerchunk":
            what = f"{one.by}, {one.processes} processes: times kerchunk's rate"
            bars.append((what, f"at least {LEAST_RATIO:g}", f"{ratio:.1f}", verdict(ratio >= LEAST_RATIO)))
            bars.append(
                (f"{one.by}, {one.processes} processes: wrong chunks", "0", str(one.wrong), verdict(not one.wrong))
            )
    columns = ("by", "processes", "files", "seconds", "files a second", "times kerchunk", "ms of processor a file")
    print_table("Small files over HTTP at 30 ms", (*columns, "requests a file", "chunks equal"), rows)
    return bars


# --- a run with nothing to do


def measure_noop(directory: Path, count: int) -> list[Sequence[str]]:
    """Print what a run takes over `count` sources of which none has changed, and return the bars."""
    rows, bars = [], []
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        for kind in ("local", "s3"):
            command = [sys.executable, str(HERE / "index_noop.py"), kind, str(count), str(Path(scratch) / kind)]
            subprocess.run([*command, "make"], check=True)
            started = time.perf_counter()
            done = subprocess.run([*command, "run"], check=True, capture_output=True, text=True)
            whole = time.perf_counter() - started
            told = json.loads(done.stdout.splitlines()[-1])
            besides, megabytes = whole - told["listing_seconds"], told["peak_nbytes"] / 1e6
            cells = (f"{whole:.2f}", f"{told['listing_seconds']:.2f}", f"{besides:.2f}", f"{megabytes:.0f}")
            rows.append((f"{count:,} sources, {kind}", *cells))
            bars.append(
                (
                    f"{kind}: seconds besides listing",
                    f"under {MOST_SECONDS:g}",
                    f"{besides:.2f}",
                    verdict(besides < MOST_SECONDS),
                )
            )
            bars.append(
                (
                    f"{kind}: peak MB",
                    f"under {MOST_MEGABYTES:g}",
                    f"{megabytes:.0f}",
                    verdict(megabytes < MOST_MEGABYTES),
                )
            )
    columns = ("a run that has nothing to do", "seconds", "of which listing", "the rest", "peak MB")
    print_table("A second run", columns, rows)
    return bars


# --- memory


def measure_memory(directory: Path, counts: Sequence[int]) -> list[Sequence[str]]:
    """Print the memory of a run over so many local files, and return the bars. The files are links to a few."""
    rows = []
    peaks: list[Peaks] = []
    originals = small_files(directory, 50)
    for count in counts:
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            data = Path(scratch) / "data"
            for number in range(count):
                place = data / f"{number // 1000:03d}" / f"{number:06d}.nc"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.hardlink_to(originals[number % len(originals)])
            started = time.perf_counter()
            found = run_watched(h5zarr_command(data, Path(scratch) / "refs", "--workers", "2", "--quiet"))
            seconds = time.perf_counter() - started
            done_count = sum(1 for path in (Path(scratch) / "refs").rglob("*.nc.json"))
            if done_count != count:
                raise SystemExit(f"{done_count:,} outputs of {count:,} files")
        peaks.append(found)
        rows.append(
            (
                f"{count:,}",
                f"{seconds:.1f}",
                f"{count / seconds:.0f}",
                f"{found.own / 1e6:.0f}",
                f"{found.of_others / 1e6:.0f}",
            )
        )
    columns = ("local files, 2 workers", "seconds", "files a second", "peak MB of the command", "of a worker")
    print_table("Memory", columns, rows)
    bars = []
    for what, before, after in (
        ("the command", peaks[0].own, peaks[-1].own),
        ("a worker", peaks[0].of_others, peaks[-1].of_others),
    ):
        growth = after / before
        about = f"memory of {what}, {counts[-1]:,} to {counts[0]:,} files"
        bars.append((about, f"at most {MOST_GROWTH:g}", f"{growth:.2f}", verdict(growth <= MOST_GROWTH)))
    return bars


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> None:
    arguments = _parse()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    chosen = arguments.only.split(",")
    print_machine()
    bars: list[Sequence[str]] = []
    if "speed" in chosen:
        bars += tell_speed(measure_speed(arguments.directory, arguments.files, arguments.kerchunk_files))
    if "noop" in chosen:
        bars += measure_noop(arguments.directory, arguments.sources)
    if "memory" in chosen:
        bars += measure_memory(arguments.directory, [int(count) for count in arguments.memory_files.split(",")])
    print_table("Bars", ("what", "bar", "measured", ""), bars)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Index many files with h5zarr, and some of them with kerchunk.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--kerchunk-files", type=int, default=100)
    parser.add_argument("--sources", type=int, default=100_000)
    parser.add_argument("--memory-files", default="1000,10000")
    parser.add_argument("--only", default="speed,noop,memory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
