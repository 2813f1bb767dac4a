"""Starting up: `h5zarr translate` of a small file, as a process, against a process that imports numpy and fsspec.

    python benchmarks/startup.py [--repeat N] [FILE]

A tool for one small file spends its time on imports. Every other tool for references imports at least numpy and fsspec.
The processes take turns, and the best time of each counts: of the whole process, from its start to its end.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tables import print_machine, print_table

SAMPLE = Path(__file__).resolve().parent.parent / "sample_data" / "ocean.nc"
BAR = 2.5
UNWANTED = ("zarr", "xarray", "h5py", "numcodecs", "asyncio", "fsspec")
SPY = "import sys; from h5zarr.cli import main; main(sys.argv[1:]); print(*(n for n in %r if n in sys.modules))"


def commands(source: Path, out: Path) -> dict[str, list[str]]:
    """The processes that are compared, by what they are called in the table."""
    run = [sys.executable, "-c"]
    return {
        "python, nothing imported": [*run, "pass"],
        "import numpy": [*run, "import numpy"],
        "import numpy, fsspec": [*run, "import numpy, fsspec"],
        "h5zarr --help": [sys.executable, "-m", "h5zarr", "--help"],
        f"h5zarr translate {source.name}": [sys.executable, "-m", "h5zarr", "translate", str(source), str(out)],
    }


def measure(command: Sequence[str]) -> tuple[float, float]:
    """Seconds that the process took by the clock, and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def check_imports(source: Path, out: Path) -> None:
    """Raise if translating imports a package that it has no need of: then the comparison is beside the point."""
    done = subprocess.run(
        [sys.executable, "-c", SPY % (UNWANTED,), "translate", "--quiet", str(source), str(out)],
        check=True,
        capture_output=True,
        text=True,
    )
    if found := done.stdout.split():
        raise SystemExit(f"h5zarr translate imports {', '.join(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long h5zarr takes to start.")
    parser.add_argument("file", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "references.json"
        check_imports(arguments.file, out)
        runs = commands(arguments.file, out)
        best = dict.fromkeys(runs, (float("inf"), float("inf")))
        for _ in range(arguments.repeat):
            for name, command in runs.items():
                seconds, processor = measure(command)
                best[name] = min(best[name][0], seconds), min(best[name][1], processor)
    base = best["import numpy, fsspec"]
    rows = [
        (name, f"{seconds:.3f}", f"{processor:.3f}", f"{seconds / base[0]:.2f}", f"{processor / base[1]:.2f}")
        for name, (seconds, processor) in best.items()
    ]
    columns = ("process", "seconds", "of the processor", "ratio", "ratio of the processor")
    print_table(f"Start-up, best of {arguments.repeat}: at most {BAR} times numpy and fsspec", columns, rows)
    met = best[f"h5zarr translate {arguments.file.name}"][0] / base[0] <= BAR
    print(f"bar of {BAR}: {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
