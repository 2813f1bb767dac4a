"""Translating local files to references: h5zarr against kerchunk and VirtualiZarr in one run.

    python benchmarks/translate_local.py [--directory DIR] [--repeat N] [--no-peers] [--quick] [--only chunks|datasets]

Every translation has a process of its own. h5zarr's is the best of `--repeat`; a peer, which takes up to a minute, runs
once. Where every chunk is, is compared with h5py before the times are shown. `--quick` takes smaller files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from files import CHUNK_INDEXES, LIBVERS, MANY_DATASETS, default_directory, many_chunks, many_datasets
from references import READERS, Chunks, count_equal, of_h5py
from tables import print_machine, print_table
from translators import Cost, is_installed, translate_with

COLUMNS = (
    "file",
    "by",
    "chunks equal",
    "seconds",
    "of the processor",
    "times h5zarr",
    "of the processor",
    "peak MB",
    "process",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A file, and how much faster than each peer its translation is to be, where there is a bar."""

    name: str
    path: Path
    bars: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool made of a file: how many chunks are right, and what it took; None if it failed or is not there."""

    tool: str
    told: str
    is_right: bool = False
    cost: Cost | None = None


def translate(tool: str, case: Case, truth: Chunks, repeat: int) -> Result:
    """What a tool makes of a file, at the best of `repeat` times."""
    if not is_installed(tool):
        return Result(tool, "not installed")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "output.json"
        try:
            costs = [translate_with(tool, str(case.path.resolve()), out) for _ in range(repeat)]
        except subprocess.CalledProcessError as failed:
            return Result(tool, f"FAILED: {(failed.stderr.strip().splitlines() or ['no reason'])[-1][:60]}")
        equal, wrong = count_equal(READERS[tool](out), truth, case.path)
    best = Cost(
        min(cost.seconds for cost in costs), min(cost.processor for cost in costs), max(c.peak_nbytes for c in costs)
    )
    return Result(tool, f"{equal:,}" if not wrong else f"{equal:,}, WRONG {wrong:,}", not wrong, best)


def process_seconds(path: Path, repeat: int) -> float:
    """The shortest time of the whole command, start of the interpreter and imports included."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "h5zarr", "translate", "--quiet", str(path), f"{directory}/out.json"]
        best = float("inf")
        for _ in range(repeat):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            best = min(best, time.perf_counter() - start)
    return best


def compare(case: Case, repeat: int, *, with_peers: bool) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The rows of one file: the times of each tool, and what becomes of the bars."""
    truth = of_h5py(case.path)
    ours = translate("h5zarr", case, truth, repeat)
    if ours.cost is None or not ours.is_right:
        return [(case.name, "h5zarr", ours.told, *[""] * 6)], []
    rows = [_row(case, ours, ours.cost, f"{process_seconds(case.path, repeat):.2f}")]
    verdicts = []
    for tool, bar in case.bars.items() if with_peers else ():
        theirs = translate(tool, case, truth, 1)
        rows.append(_row(case, theirs, ours.cost))
        if theirs.cost is None or bar is None:
            continue
        # By both clocks: other work on the machine lengthens the one, waiting for a disk is missing in the other.
        ratio = min(theirs.cost.seconds / ours.cost.seconds, theirs.cost.processor / ours.cost.processor)
        verdicts.append((case.name, f"times faster than {tool}", f"{bar:g}", f"{ratio:.1f}", _verdict(ratio >= bar)))
        if tool == "kerchunk" and "chunks" in case.name:
            part = ours.cost.peak_nbytes / theirs.cost.peak_nbytes
            verdicts.append((case.name, "part of kerchunk's memory", "0.5", f"{part:.2f}", _verdict(part <= 0.5)))
    return rows, verdicts


def _row(case: Case, result: Result, ours: Cost, process: str = "") -> tuple[str, ...]:
    cost = result.cost
    if cost is None:
        return (case.name, result.tool, result.told, *[""] * 6)
    return (
        case.name,
        result.tool,
        result.told,
        f"{cost.seconds:.2f}",
        f"{cost.processor:.2f}",
        f"{cost.seconds / ours.seconds:.1f}",
        f"{cost.processor / ours.processor:.1f}",
        f"{cost.peak_nbytes / 1e6:.0f}",
        process,
    )


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def find_cases(directory: Path, only: str | None, *, quick: bool) -> list[Case]:
    chunk_count, dataset_count = (10_000, 200) if quick else (1_000_000, MANY_DATASETS)
    chunks = [
        Case(
            f"{chunk_count:,} chunks, {index}",
            many_chunks(directory, chunk_count, index),
            {"kerchunk": 15, "VirtualiZarr": 10},
        )
        for index in CHUNK_INDEXES
    ]
    datasets = [
        Case(
            f"{dataset_count:,} datasets, {libver}",
            many_datasets(directory, dataset_count, libver),
            {"kerchunk": 30, "VirtualiZarr": None},
        )
        for libver in LIBVERS
    ]
    return (chunks if only != "datasets" else []) + (datasets if only != "chunks" else [])


def main() -> None:
    parser = argparse.ArgumentParser(description="Translate local files with h5zarr and its peers.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--quick", action="store_true", help="take small files, for which the bars are not meant")
    parser.add_argument("--only", choices=("chunks", "datasets"))
    arguments = parser.parse_args()
    print_machine()
    rows, verdicts = [], []
    for case in find_cases(arguments.directory, arguments.only, quick=arguments.quick):
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        some_rows, some_verdicts = compare(case, arguments.repeat, with_peers=not arguments.no_peers)
        rows += some_rows
        verdicts += some_verdicts
    print_table("Translating to references", COLUMNS, rows)
    if verdicts and not arguments.quick:
        print_table("Bars", ("file", "what", "bar", "measured", ""), verdicts)


if __name__ == "__main__":
    main()
