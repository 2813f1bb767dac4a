"""Containers of references: JSON, Parquet and Icechunk, written and opened, h5zarr against kerchunk and VirtualiZarr.

    python benchmarks/containers.py [--counts 10000,...] [--patience S] [--repeat N] [--only KIND] [--no-peers] [--file]

One array of so many chunks, in one file. Each tool writes each row in a process of its own, and others open it, with
the imports done before. References are compared with the columns they were made of before any time is shown. What
takes longer than the patience is stopped; what would, or would not fit into memory, by the row before, is left out, and
it is said. `--file` adds ten million chunks from an HDF5 file to Parquet, all of `h5zarr translate`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from container_readers import make_source
from container_writers import WRITERS
from files import default_directory, many_chunks
from tables import print_machine, print_table

COUNTS = "10000,100000,1000000,10000000"
COLUMNS = (
    "chunks",
    "by",
    "equal",
    "write, s",
    "times ours",
    "of the processor",
    "times ours",
    "peak MB",
    "times ours",
    "size, MB",
)
OPENED = ("chunks", "by", "read by", "opens, s", "MB more")
READERS = {"json": ("engine", "fsspec"), "parquet": ("engine", "fsspec"), "icechunk": ("icechunk",)}
_SMALL = 10_000
_MANY = 1_000_000
_BRIEF = 3  # seconds: what takes longer is not repeated
_MEMORY = 0.6  # of the machine's, that a process may take
_OPENING = 0.1
_FOR_EVER = "100000"

Taken = dict[str, float]


@dataclass(slots=True)
class Result:
    """What a tool made of a row, what it took, and how many references are right; or why it made nothing."""

    missing: str = ""
    writing: Taken = field(default_factory=dict)
    equal: str = ""
    nbytes: int = 0
    opening: dict[str, Taken | str] = field(default_factory=dict)


def run(script: str, *arguments: str) -> Taken | str:
    """What one process took, or why there is no answer."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == -signal.SIGALRM:
        return f"over {float(arguments[-1]):.0f} s"
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"failed with {done.returncode}: {reason[:80]}"
    taken: Taken = json.loads(done.stdout.splitlines()[-1])
    return taken


def best(script: str, arguments: tuple[str, ...], repeat: int, before: list[Path]) -> Taken | str:
    """The shortest time, and the largest memory, of several processes; of one, where that is not brief."""
    runs: list[Taken] = []
    while len(runs) < repeat and (not runs or runs[-1]["seconds"] < _BRIEF):
        for path in before:
            shutil.rmtree(path, ignore_errors=True)
        taken = run(script, *arguments)
        if isinstance(taken, str):
            return taken
        runs.append(taken)
    return {name: (min if name.endswith("seconds") else max)(one[name] for one in runs) for name in runs[0]}


def why_not(count: int, earlier: tuple[int, Taken | str] | None, patience: float) -> str:
    """Why a row is left out, by what the row before it took."""
    if earlier is None:
        return ""
    smaller, taken = earlier
    if isinstance(taken, str):
        return f"{taken} at {smaller:,}"
    times = count / smaller
    seconds = taken["seconds"] * times
    nbytes = (taken["peak_nbytes"] - 60e6) * times
    if seconds > 1.5 * patience:
        return f"left out: some {seconds:.0f} s"
    if nbytes > _MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        return f"left out: some {nbytes / 1e9:.0f} GB"
    return ""


class Measuring:
    """One tool, from the smallest row to the largest."""

    def __init__(self, tool: str, patience: float, repeat: int) -> None:
        self.kind = tool.rpartition(" ")[2].lower()
        self._tool = tool
        self._patience = patience
        self._repeat = repeat
        self._earlier: dict[str, tuple[int, Taken | str]] = {}

    def measure(self, count: int) -> Result:
        """What the tool takes to write a row, and what readers take to open it."""
        # No row of h5zarr's is left out, nor stopped.
        is_ours = self._tool.startswith("h5zarr")
        if not is_ours and (missing := why_not(count, self._earlier.get("write"), self._patience)):
            return Result(missing=missing)
        with tempfile.TemporaryDirectory() as directory:
            return self._measure(count, Path(directory))

    def _measure(self, count: int, directory: Path) -> Result:
        out, small = directory / f"refs.{self.kind}", directory / "small" / f"refs.{self.kind}"
        small.parent.mkdir()
        for path, rows in ((directory, count), (small.parent, _SMALL)):
            make_source(path, rows)
        patience = str(self._patience)
        limit = _FOR_EVER if self._tool.startswith("h5zarr") else patience
        writing = best("container_writers.py", (self._tool, str(count), str(out), limit), self._repeat, [out])
        self._earlier["write"] = (count, writing)
        if isinstance(writing, str):
            return Result(missing=writing)
        checked = run("container_readers.py", "check", str(count), str(out))
        if self._tool.startswith("h5zarr") and not _is_right(checked):
            return Result(missing=_told(checked))
        result = Result(writing=writing, equal=_told(checked), nbytes=_size(out))
        run("container_writers.py", self._tool, str(_SMALL), str(small), patience)
        for reader in READERS[self.kind]:
            found: Taken | str = why_not(count, self._earlier.get(reader), self._patience)
            if not found:
                found = best("container_readers.py", ("open", reader, str(small), str(out), patience), self._repeat, [])
                self._earlier[reader] = (count, found)
            result.opening[reader] = found
        return result


def _is_right(checked: Taken | str) -> bool:
    return not isinstance(checked, str) and checked["checked"] == checked["equal"]


def _told(checked: Taken | str) -> str:
    if isinstance(checked, str):
        return checked
    wrong = int(checked["checked"] - checked["equal"])
    return f"WRONG {wrong:,}" if wrong else f"{int(checked['equal']):,}"


def _size(out: Path) -> int:
    return sum(path.stat().st_size for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file())


def row(tool: str, count: int, result: Result, ours: Result, patience: float) -> tuple[str, ...]:
    if result.missing:
        is_over = result.missing.startswith("over ") and not ours.missing
        ratio = f"over {patience / ours.writing['seconds']:.0f}" if is_over else ""
        return f"{count:,}", tool, "", result.missing, ratio, "", "", "", "", ""
    times = {name: result.writing[name] / ours.writing[name] if not ours.missing else 0 for name in result.writing}
    return (
        f"{count:,}",
        tool,
        result.equal,
        f"{result.writing['seconds']:.3f}",
        f"{times['seconds']:.1f}",
        f"{result.writing['processor_seconds']:.3f}",
        f"{times['processor_seconds']:.1f}",
        f"{result.writing['peak_nbytes'] / 1e6:.0f}",
        f"{times['peak_nbytes']:.1f}",
        f"{result.nbytes / 1e6:.2f}",
    )


def opened_rows(tool: str, count: int, result: Result) -> list[tuple[str, ...]]:
    rows = []
    for reader, taken in result.opening.items():
        if isinstance(taken, str):
            cells = (taken, "")
        else:
            more = taken["peak_nbytes"] - taken["before_nbytes"]
            cells = (f"{taken['seconds']:.3f}", f"{more / 1e6:.0f}")
        rows.append((f"{count:,}", tool, reader, *cells))
    return rows


def judge(count: int, results: dict[str, Result], patience: float) -> list[tuple[str, ...]]:
    """What becomes of the bars, each container against the same of others."""
    verdicts = []
    for tool, theirs in results.items():
        ours = results[f"h5zarr, {tool.rpartition(' ')[2]}"]
        if tool.startswith("h5zarr"):
            verdicts += _judge_ours(tool, count, ours)
            continue
        if ours.missing:
            continue
        bar = 5 if count >= _MANY else 1
        what = f"times faster than {tool}"
        if theirs.missing.startswith("over "):
            least = patience / ours.writing["seconds"]
            verdict = "met" if least >= bar else "not known"
            verdicts.append((f"{count:,}", what, f"{bar:g}", f"over {least:.0f}", verdict))
        elif theirs.missing:
            verdicts.append((f"{count:,}", what, f"{bar:g}", theirs.missing, "not known"))
        else:
            faster = theirs.writing["seconds"] / ours.writing["seconds"]
            less = theirs.writing["peak_nbytes"] / ours.writing["peak_nbytes"]
            verdicts.append(_verdict(count, what, bar, faster, faster >= bar))
            verdicts.append(_verdict(count, f"times less memory than {tool}", 1, less, less > 1))
    return verdicts


def _judge_ours(tool: str, count: int, ours: Result) -> list[tuple[str, ...]]:
    verdicts = []
    if ours.missing:
        verdicts.append((f"{count:,}", f"{tool} writes all of it", "", ours.missing, "MISSED"))
    for reader, taken in ours.opening.items():
        if count <= _MANY and not isinstance(taken, str) and not tool.endswith("JSON"):
            seconds = taken["seconds"]
            what = f"{tool}: {reader} opens, s, at most"
            verdicts.append(_verdict(count, what, _OPENING, seconds, seconds <= _OPENING, digits=3))
    if tool.endswith("Parquet") and not ours.missing and count > _MANY:
        verdicts.append(_below_a_gigabyte(count, tool, ours.writing["peak_nbytes"]))
    return verdicts


def _below_a_gigabyte(count: int, what: str, nbytes: float) -> tuple[str, ...]:
    return _verdict(count, f"{what}: peak MB, at most", 1000, nbytes / 1e6, nbytes < 1e9, digits=0)


def _verdict(count: int, what: str, bar: float, found: float, is_met: bool, digits: int = 1) -> tuple[str, ...]:
    return f"{count:,}", what, f"{bar:g}", f"{found:.{digits}f}", "met" if is_met else "MISSED"


def from_file(count: int) -> list[tuple[str, ...]]:
    """What it takes to translate an HDF5 file with so many chunks to Parquet, by the kind of its index."""
    verdicts = []
    for index in ("btree1", "fixed_array"):
        source = many_chunks(default_directory(), count, index)
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "h5zarr", "translate", str(source), f"{directory}/refs.parquet"]
            start = time.perf_counter()
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
        assert status == 0
        nbytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        verdicts.append(_below_a_gigabyte(count, f"h5zarr translate, {index}, {seconds:.1f} s", nbytes))
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description="Write and open containers of references.")
    parser.add_argument("--counts", default=COUNTS, help="multiples of 100, ascending")
    parser.add_argument("--patience", type=float, default=90, help="seconds, for one tool to write or open one row")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--only", choices=tuple(READERS))
    parser.add_argument("--file", action="store_true", help="add HDF5 files with 10,000,000 chunks, which take minutes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print_machine()
    tools = {
        tool: Measuring(tool, arguments.patience, arguments.repeat)
        for tool in WRITERS
        if (arguments.only is None or tool.lower().endswith(arguments.only))
        and (tool.startswith("h5zarr") or not arguments.no_peers)
    }
    rows, opened, verdicts = [], [], []
    for count in map(int, arguments.counts.split(",")):
        results: dict[str, Result] = {}
        for tool, measuring in tools.items():
            print(f"{count:,}, {tool} ...", file=sys.stderr, flush=True)
            results[tool] = result = measuring.measure(count)
            ours = results[f"h5zarr, {tool.rpartition(' ')[2]}"]
            rows.append(row(tool, count, result, ours, arguments.patience))
            opened += opened_rows(tool, count, result)
        verdicts += judge(count, results, arguments.patience)
    if arguments.file:
        verdicts += from_file(10_000_000)
    print_table("Containers of references: writing", COLUMNS, rows)
    print_table("Containers of references: opening", OPENED, opened)
    print_table("Bars", ("chunks", "what", "bar", "measured", ""), verdicts)


if __name__ == "__main__":
    main()
