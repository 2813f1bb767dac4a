"""Indexing many files: how fast, what a run costs that has nothing to do, and how much memory it takes.

    python benchmarks/index.py [--files 2000] [--kerchunk-files 100] [--rounds 3] [--sources 100000]
                               [--only speed,noop,memory]

Small netCDF-4 files over HTTP, by `h5zarr index` and by the loop over kerchunk that it takes the place of; every chunk
of a sample is compared with h5py before anything is told. Both are timed from when the first file is done, by when all
that they need has been imported, to the end; of h5zarr the rate of the whole command is told, too. kerchunk is given
fewer files, since it is slow, and its rate is taken to stay the same.

All of them are measured in turns, in several rounds: the speed of a machine that others use, too, changes within
minutes, and a ratio is one of neighbours. Told are medians over the rounds, and the least and the greatest ratio. The
cluster of Dask is kept for all rounds, so from the second one on its workers have imported what they need.

h5zarr is compiled to bytecode first, as it is when it is installed: where PYTHONDONTWRITEBYTECODE is set and the
package is installed as editable, every process would compile it anew, which nobody's does who has installed it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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
    """What it took to index some files, and how many chunks of the sample are right and wrong.

    `seconds` are those since the first file was done, `whole_seconds` those of the command.
    """

    by: str
    processes: int
    count: int
    seconds: float
    whole_seconds: float
    processor_seconds: float | None
    requests: int
    equal: int
    wrong: int

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def whole_rate(self) -> float:
        return self.count / self.whole_seconds


def h5zarr_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "h5zarr", "index", *map(str, arguments)]


# --- speed


def measure_speed(directory: Path, count: int, kerchunk_count: int, rounds: int) -> list[list[Speed]]:
    """What it takes in each round: h5zarr for `count` files with one and two processes and on Dask, and kerchunk for
    fewer of them."""
    paths = small_files(directory, count)
    with (
        serving(paths[0].parent, latency=LATENCY_SECONDS, bandwidth=100e6) as server,
        tempfile.TemporaryDirectory(dir=directory) as scratch,
        _dask_cluster(2) as address,
    ):
        rows = list(_speed_rows(Path(scratch), server, paths, kerchunk_count, address))
        found = []
        for number in range(rounds):
            found.append([measure(Path(scratch) / f"{number}-{at}") for at, measure in enumerate(rows)])
            rates = ", ".join(f"{one.by} {one.processes}: {one.rate:.1f}" for one in found[-1])
            print(f"round {number + 1} of {rounds}, files a second: {rates}", flush=True)
    return found


def _speed_rows(
    scratch: Path, server: Served, paths: Sequence[Path], kerchunk_count: int, address: str
) -> Iterator[Callable[[Path], Speed]]:
    """Yield what measures each row of the table once, given a directory for the outputs."""
    names = _write_list(scratch / "all.txt", server, paths)
    given = ("--files-from", names, "--quiet")
    for processes in (1, 2):
        command = h5zarr_command(*given, "--workers", str(processes))
        yield partial(_timed, "h5zarr", processes, command, server, paths)
    yield partial(_timed, "h5zarr on Dask", 2, h5zarr_command(*given, "--dask", address), server, paths)
    few = paths[:kerchunk_count]
    names = _write_list(scratch / "few.txt", server, few)
    for processes in (1, 2):
        command = [sys.executable, str(HERE / "kerchunk_loop.py"), str(names), str(processes)]
        yield partial(_timed, "kerchunk", processes, command, server, few)


def _write_list(place: Path, server: Served, paths: Sequence[Path]) -> Path:
    place.write_text("".join(f"{server.url}/{path.name}\n" for path in paths))
    return place


def _timed(by: str, processes: int, command: list[str], server: Served, paths: Sequence[Path], out: Path) -> Speed:
    server.reset()
    before, started = processor_seconds(), time.time()
    done = subprocess.run([*command, str(out)], capture_output=True, text=True)
    ended, processor = time.time(), processor_seconds() - before
    if done.returncode:
        raise SystemExit(f"{by}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    requests = server.counts().requests
    outputs = {path.name.removesuffix(".json"): path for path in out.rglob("*.json") if path.parent.name != "_h5zarr"}
    if set(outputs) != {path.name for path in paths}:
        raise SystemExit(f"{by}: {len(outputs):,} outputs of {len(paths):,} files")
    if by == "kerchunk":
        seconds = float(done.stdout.split()[-1])
    else:
        seconds = ended - min(path.stat().st_mtime for path in outputs.values())
    equal, wrong = _compare(by, outputs, paths)
    # Workers of Dask belong to a cluster, which goes on.
    known = None if "Dask" in by else processor
    return Speed(by, processes, len(paths), seconds, ended - started, known, requests, equal, wrong)


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


def tell_speed(rounds: list[list[Speed]]) -> list[Sequence[str]]:
    """Print the table, and return the bars with what was measured."""
    rows, bars = [], []
    for measured in zip(*rounds, strict=True):
        one, wrong = measured[0], sum(each.wrong for each in measured)
        ratios = [
            each.rate / _kerchunk_rate(found, each.processes) for each, found in zip(measured, rounds, strict=True)
        ]
        ratio = statistics.median(ratios)
        equal = f"{min(each.equal for each in measured):,}" + (f", WRONG {wrong:,}" if wrong else "")
        rows.append(
            (
                one.by,
                str(one.processes),
                f"{one.count:,}",
                f"{statistics.median(each.rate for each in measured):.1f}",
                "" if one.by == "kerchunk" else f"{statistics.median(each.whole_rate for each in measured):.1f}",
                f"{ratio:.1f}",
                f"{min(ratios):.1f} to {max(ratios):.1f}",
                _processor_milliseconds(measured),
                f"{statistics.median(each.requests for each in measured) / one.count:.1f}",
                equal,
            )
        )
        if one.by != "kerchunk":
            about = f"{one.by}, {one.processes} processes"
            is_met = verdict(ratio >= LEAST_RATIO)
            bars.append((f"{about}: times kerchunk's rate", f"at least {LEAST_RATIO:g}", f"{ratio:.1f}", is_met))
            bars.append((f"{about}: wrong chunks", "0", str(wrong), verdict(not wrong)))
    columns = ("by", "processes", "files", "files a second", "whole command", "times kerchunk", "least to greatest")
    columns += ("ms of processor a file", "requests a file", "chunks equal")
    print_table(f"Small files over HTTP at 30 ms, medians of {len(rounds)} rounds", columns, rows)
    return bars


def _kerchunk_rate(found: Sequence[Speed], processes: int) -> float:
    """Files a second of kerchunk with as many processes, in one round."""
    return next(one.rate for one in found if one.by == "kerchunk" and one.processes == processes)


def _processor_milliseconds(measured: Sequence[Speed]) -> str:
    known = [one.processor_seconds / one.count * 1e3 for one in measured if one.processor_seconds is not None]
    return f"{statistics.median(known):.1f}" if known else ""


def compile_package() -> None:
    """Write the bytecode of h5zarr, as an installer does."""
    import h5zarr

    (place,) = h5zarr.__path__
    if not compileall.compile_dir(place, quiet=1):
        raise SystemExit(f"{place} cannot be compiled")


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
    compile_package()
    bars: list[Sequence[str]] = []
    if "speed" in chosen:
        counts = (arguments.files, arguments.kerchunk_files, arguments.rounds)
        bars += tell_speed(measure_speed(arguments.directory, *counts))
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
    parser.add_argument("--rounds", type=int, default=3, help="how often each row is measured, in turns")
    parser.add_argument("--sources", type=int, default=100_000)
    parser.add_argument("--memory-files", default="1000,10000")
    parser.add_argument("--only", default="speed,noop,memory")
    return parser.parse_args()


if __name__ == "__main__":
    main()
