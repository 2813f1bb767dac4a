"""Translating files over HTTP: seconds, rounds, requests and bytes, h5zarr against its peers in one run.

    python benchmarks/translate_remote.py [--directory DIR] [--networks 30:100,150:10] [--files NAME,...] [--tools T]

Every translation has a process of its own. The counts are the server's: a round begins whenever a request finds the
server idle. Where every chunk is, is compared with h5py before the times are shown; a tool that is wrong about one, or
fails, is told so. Times are the best of `--repeat`, of a peer only where it takes a few seconds. A peer, which may take
minutes, is stopped when it has taken `--patience` times as long as h5zarr; then the ratio is at least that.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from files import CHUNK_INDEXES, LIBVERS, MANY_DATASETS, default_directory, many_chunks, many_datasets
from range_server import Counts, Served, serving
from realistic_files import appended_output, model_output, paged_output
from references import READERS, Chunks, count_equal, of_h5py
from tables import print_machine, print_table
from translators import TOOLS, is_installed, translate_with

COLUMNS = ("file", "network", "by", "seconds", "times h5zarr", "rounds", "requests", "MB moved", "chunks")
BARS = {"kerchunk": 5.0, "kerchunk, 8 MB blocks": 5.0, "VirtualiZarr": 5.0, "async-hdf5": 1.5}
MOST_BYTES = 1.1
START_SECONDS = 8
LONG_SECONDS = 5
MAKERS: dict[str, Callable[[Path], Path]] = {
    **{f"chunks_{index}": partial(many_chunks, count=1_000_000, index=index) for index in CHUNK_INDEXES},
    **{f"datasets_{libver}": partial(many_datasets, count=MANY_DATASETS, libver=libver) for libver in LIBVERS},
    "model_output": model_output,
    "paged_output": paged_output,
    "appended_output": appended_output,
}


@dataclass(frozen=True, slots=True)
class Network:
    """Milliseconds until an answer begins, and the megabytes a second that all answers share."""

    latency_ms: float
    megabytes_per_second: float

    def __str__(self) -> str:
        return f"{self.latency_ms:g} ms, {self.megabytes_per_second:g} MB/s"


NETWORKS = tuple(Network(latency, bandwidth) for bandwidth in (100, 10) for latency in (1, 30, 150))


@dataclass(frozen=True, slots=True)
class Run:
    """What a translation took, and what is to be said of its result."""

    seconds: float
    counts: Counts
    told: str
    is_right: bool


@dataclass(slots=True)
class Case:
    """A file, the truth about it, and what is known of outputs that were compared with it before."""

    name: str
    path: Path
    truth: Chunks
    verdicts: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)

    def judge(self, tool: str, out: Path) -> tuple[str, bool]:
        """What is right in an output, and whether all is. The same output is compared once."""
        key = tool, hashlib.sha256(out.read_bytes()).hexdigest()
        if key not in self.verdicts:
            equal, wrong = count_equal(READERS[tool](out), self.truth, self.path)
            self.verdicts[key] = (f"{equal:,}" if not wrong else f"{equal:,}, WRONG {wrong:,}", not wrong)
        return self.verdicts[key]


def translate(tool: str, case: Case, server: Served, repeat: int, patience: float | None = None) -> Run | str:
    """What a tool takes for a file, at the best of `repeat` times; or why there is nothing to tell.

    It has `patience` seconds, and some more to start.
    """
    if not is_installed(tool):
        return "not installed"
    best: Run | None = None
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "output.json"
        for _ in range(repeat):
            server.reset()
            try:
                timeout = None if patience is None else patience + START_SECONDS
                cost = translate_with(tool, f"{server.url}/{case.path.name}", out, timeout)
            except subprocess.CalledProcessError as failed:
                return f"FAILED: {(failed.stderr.strip().splitlines() or ['no reason'])[-1][:60]}"
            except subprocess.TimeoutExpired:
                return f"over {patience:.1f}"
            if best is None or cost.seconds < best.seconds:
                best = Run(cost.seconds, server.counts(), *case.judge(tool, out))
            if best.seconds > LONG_SECONDS:
                break
    return best or "not run"


def compare(
    case: Case, network: Network, runs: dict[str, Run | str]
) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """The rows of one file in one network, and the bars that are missed."""
    rows: list[Sequence[str]] = []
    missed: list[Sequence[str]] = []
    ours = runs["h5zarr"]
    for tool, run in runs.items():
        if isinstance(run, str) or isinstance(ours, str):
            told = run if isinstance(run, str) else "?"
            rows.append((case.name, str(network), tool, told, *[""] * 5))
            continue
        ratio = run.seconds / ours.seconds
        counts = run.counts
        figures = (f"{counts.waits:,}", f"{counts.requests:,}", f"{counts.nbytes / 1e6:.1f}", run.told)
        rows.append((case.name, str(network), tool, f"{run.seconds:.2f}", f"{ratio:.1f}", *figures))
        if run.is_right and tool in BARS and ratio < BARS[tool]:
            missed.append((case.name, str(network), f"times faster than {tool}", f"{BARS[tool]:g}", f"{ratio:.2f}"))
    if not isinstance(ours, str):
        if not ours.is_right:
            missed.append((case.name, str(network), "chunks that h5zarr has right", "all", ours.told))
        theirs = [run.counts.nbytes for tool, run in runs.items() if tool != "h5zarr" and not isinstance(run, str)]
        if theirs and ours.counts.nbytes > MOST_BYTES * min(theirs):
            share = ours.counts.nbytes / min(theirs)
            missed.append((case.name, str(network), "times the least bytes", f"{MOST_BYTES:g}", f"{share:.2f}"))
    return rows, missed


def main() -> None:
    arguments = _parse()
    networks = [Network(*map(float, one.split(":"))) for one in arguments.networks.split(",") if one] or NETWORKS
    tools = ["h5zarr", *(tool for tool in TOOLS if tool != "h5zarr" and is_chosen(tool, arguments.tools))]
    print_machine()
    rows, missed = [], []
    with serving(arguments.directory, latency=0, bandwidth=1e9) as server:
        for name in [name for name in MAKERS if is_chosen(name, arguments.files)]:
            path = MAKERS[name](arguments.directory)
            case = Case(f"{name}, {path.stat().st_size / 1e6:.0f} MB", path, of_h5py(path))
            for network in networks:
                server.set_network(latency=network.latency_ms / 1e3, bandwidth=network.megabytes_per_second * 1e6)
                runs: dict[str, Run | str] = {}
                ours = runs["h5zarr"] = translate("h5zarr", case, server, arguments.repeat)
                patience = arguments.patience * (60.0 if isinstance(ours, str) else ours.seconds)
                for tool in tools[1:]:
                    runs[tool] = translate(tool, case, server, arguments.repeat, patience)
                some_rows, some_missed = compare(case, network, runs)
                for row in some_rows:
                    print("  ".join(row), file=sys.stderr, flush=True)
                rows += some_rows
                missed += some_missed
    print_table("Translating over HTTP", COLUMNS, rows)
    if missed:
        print_table("Bars that are missed", ("file", "network", "what", "bar", "measured"), missed)
    else:
        print("No bar is missed.")


def is_chosen(name: str, chosen: str) -> bool:
    """Whether a name begins with one of those that were chosen, or none was."""
    return not chosen or any(name.startswith(one) for one in chosen.split(","))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Translate files over HTTP with h5zarr and its peers.")
    parser.add_argument("--directory", type=Path, default=default_directory())
    parser.add_argument("--networks", default="", help="latencies in ms and MB/s, as in 30:100,150:10")
    parser.add_argument("--files", default="", help="beginnings of names: " + ", ".join(MAKERS))
    parser.add_argument("--tools", default="", help="beginnings of names of peers; - for none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--patience", type=float, default=12, help="times h5zarr's seconds, which a peer may take")
    return parser.parse_args()


if __name__ == "__main__":
    main()
