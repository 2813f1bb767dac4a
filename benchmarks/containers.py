"""Containers of references: writing and opening JSON and Parquet, h5zarr against kerchunk and VirtualiZarr in one run.

    python benchmarks/containers.py [--counts 10000,1000000] [--largest] [--repeat N] [--no-peers] [--only json|parquet]

One array of so many chunks, in one file; each container is written in a process of its own, and opened in others, with
the imports done before. All references are compared with the columns they were made of before the times are shown.
`--largest` adds 10⁷ chunks, which only h5zarr writes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from container_writers import RECORD_SIZE, URL, WRITERS, columns
from tables import print_machine, print_table

COLUMNS = (
    "chunks",
    "by",
    "equal",
    "write, s",
    "times h5zarr",
    "peak MB",
    "of which before",
    "size, MB",
    "fsspec opens, s",
    "MB more",
    "engine opens, s",
    "MB more",
)
_SMALL = 10_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool made: how many references are right, what it took, how large it is, and what opening it takes."""

    equal: int
    writing: dict[str, float]
    nbytes: int
    opening: dict[str, dict[str, float]]


def run(*arguments: str) -> dict[str, float]:
    """What one process took. Raises CalledProcessError if it failed."""
    script = Path(__file__).with_name("container_writers.py")
    done = subprocess.run([sys.executable, str(script), *arguments], check=True, capture_output=True, text=True)
    taken: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return taken


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    """The shortest time, and the largest memory."""
    return {name: (min if name == "seconds" else max)(one[name] for one in runs) for name in runs[0]}


def count_equal(out: Path, count: int) -> int:
    """How many references are those that were given, by a parser of JSON, or by fsspec's reader of Parquet."""
    addresses, sizes = columns(count)
    if out.is_dir():
        return _count_equal_parquet(out, addresses, sizes)
    with out.open() as file:
        entries = json.load(file)["refs"]
    equal = 0
    for number, place in enumerate(zip(addresses.tolist(), sizes.tolist(), strict=True)):
        index = (number // 100, number // 10 % 10, number % 10)
        found = entries.get("v/{}.{}.{}".format(*index)) or entries.get("v/c/{}/{}/{}".format(*index))
        equal += found == [URL, *place]
    return equal


def _count_equal_parquet(out: Path, addresses: Any, sizes: Any) -> int:
    from fsspec.implementations.reference import LazyReferenceMapper

    mapper = LazyReferenceMapper(str(out))
    mapper.setup()
    equal = 0
    for record, begin in enumerate(range(0, len(addresses), RECORD_SIZE)):
        found = mapper.open_refs("v", record)
        rows = slice(begin, begin + RECORD_SIZE)
        length = len(addresses[rows])
        is_there = np.array([path == URL for path in found["path"][:length]])
        is_same = (found["offset"][:length] == addresses[rows]) & (found["size"][:length] == sizes[rows])
        equal += int((is_there & is_same).sum())
    return equal


def measure(tool: str, count: int, repeat: int) -> Result:
    """What a tool takes to write the references, and what readers take to open them."""
    suffix = tool.rpartition(" ")[2].lower()
    with tempfile.TemporaryDirectory() as directory:
        out, small = Path(directory) / f"refs.{suffix}", Path(directory) / f"small.{suffix}"
        run("write", tool, str(_SMALL), str(small))
        writing = best([run("write", tool, str(count), str(out)) for _ in range(repeat)])
        equal = count_equal(out, count)
        opening = {
            reader: best([run("open", reader, str(small), str(out)) for _ in range(repeat)])
            for reader in ("fsspec", "engine")
        }
        nbytes = sum(path.stat().st_size for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file())
    return Result(equal, writing, nbytes, opening)


def row(tool: str, count: int, result: Result, ours: Result) -> tuple[str, ...]:
    cells = [
        f"{count:,}",
        tool,
        f"{result.equal:,}" if result.equal == count else f"WRONG {count - result.equal:,}",
        f"{result.writing['seconds']:.3f}",
        f"{result.writing['seconds'] / ours.writing['seconds']:.1f}",
        f"{result.writing['peak_nbytes'] / 1e6:.0f}",
        f"{result.writing['before_nbytes'] / 1e6:.0f}",
        f"{result.nbytes / 1e6:.2f}",
    ]
    for taken in result.opening.values():
        cells += [f"{taken['seconds']:.3f}", f"{(taken['peak_nbytes'] - taken['before_nbytes']) / 1e6:.0f}"]
    return tuple(cells)


def judge(count: int, results: dict[str, Result]) -> list[tuple[str, ...]]:
    """What becomes of the bars, of Parquet against Parquet."""
    ours = results["h5zarr, Parquet"]
    opened = ours.opening["engine"]["seconds"]
    verdicts = [(f"{count:,}", "engine opens, s, at most", "0.1", f"{opened:.3f}", _verdict(opened <= 0.1))]
    for tool, theirs in results.items():
        if tool.startswith("h5zarr") or not tool.endswith("Parquet"):
            continue
        bar = 5 if count >= 1_000_000 else 1
        ratio = theirs.writing["seconds"] / ours.writing["seconds"]
        part = ours.writing["peak_nbytes"] / theirs.writing["peak_nbytes"]
        verdicts.append((f"{count:,}", f"times faster than {tool}", str(bar), f"{ratio:.1f}", _verdict(ratio >= bar)))
        verdicts.append((f"{count:,}", f"part of the memory of {tool}", "1", f"{part:.2f}", _verdict(part <= 1)))
    return verdicts


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write and open containers of references.")
    parser.add_argument("--counts", default="10000,100000,1000000", help="multiples of 100")
    parser.add_argument("--largest", action="store_true", help="add 10,000,000 chunks, to Parquet by h5zarr alone")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--only", choices=("json", "parquet"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print_machine()
    rows, verdicts = [], []
    for count in map(int, arguments.counts.split(",")):
        results: dict[str, Result] = {}
        for tool in WRITERS:
            is_wanted = arguments.only is None or tool.lower().endswith(arguments.only)
            if is_wanted and (tool.startswith("h5zarr") or not arguments.no_peers):
                print(f"{count:,}, {tool} ...", file=sys.stderr, flush=True)
                results[tool] = measure(tool, count, arguments.repeat if tool.startswith("h5zarr") else 1)
                ours = results[f"h5zarr, {tool.rpartition(' ')[2]}"]
                rows.append(row(tool, count, results[tool], ours))
        if arguments.only != "json":
            verdicts += judge(count, results)
    if arguments.largest:
        largest = measure("h5zarr, Parquet", 10_000_000, 1)
        rows.append(row("h5zarr, Parquet", 10_000_000, largest, largest))
        peak = largest.writing["peak_nbytes"] / 1e6
        verdicts.append(("10,000,000", "peak MB, at most", "1000", f"{peak:.0f}", _verdict(peak < 1000)))
    print_table("Containers of references", COLUMNS, rows)
    print_table("Bars", ("chunks", "what", "bar", "measured", ""), verdicts)


if __name__ == "__main__":
    main()
