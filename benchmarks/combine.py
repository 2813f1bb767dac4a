"""Many files, one dataset: h5zarr combine, kerchunk's MultiZarrToZarr, and VirtualiZarr's concat.

    python benchmarks/combine.py [--only files|memory|disk|opening] [--count N] [--repeat N] [--patience S] [--no-peers]

Each tool makes each cube in a process of its own, with the imports done before. The cube is opened as users of the tool
open it, and compared with xarray over the files, before any time is shown: 44 time steps, all variables. `opening`
opens a cube and reads one time step of all variables, and does the same with the references of one file.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from archive_files import FIELDS, Archive
from combine_tools import TASKS, TOOLS, open_cube, prepare_references
from containers import Taken, run
from files import default_directory
from tables import print_machine, print_table

COLUMNS = ("cube by", "values right", "seconds", "times ours", "of the processor", "peak MB", "of the leaner peer")
WHAT = {
    "files": "from {count:,} local netCDF-4 files to a cube on disk ({chunks:,} chunks)",
    "memory": "from references of {count:,} files in memory ({chunks:,} chunks) to a cube on disk",
    "disk": "from references of {count:,} files on disk ({chunks:,} chunks) to a cube on disk",
}


class Cube:
    """What a tool took for a cube, and whether it is right; or why there is none."""

    def __init__(self, tool: str, taken: Taken | str, checked: Taken | str) -> None:
        self.tool, self.taken, self.checked = tool, taken, checked

    @property
    def is_right(self) -> bool:
        return isinstance(self.checked, dict) and self.checked["checked"] == self.checked["equal"] > 0

    @property
    def verdict(self) -> str:
        if isinstance(self.checked, str):
            return self.checked
        wrong = int(self.checked["checked"] - self.checked["equal"])
        return f"WRONG {wrong:,}" if wrong else f"{int(self.checked['equal']):,}"

    def get(self, name: str) -> float | None:
        return self.taken[name] if isinstance(self.taken, dict) and self.is_right else None


def make_cube(task: str, tool: str, archive: Archive, below: Path, repeat: int, patience: float, kept: Path) -> Cube:
    """Make a cube several times, and keep the shortest time and the largest memory."""
    common = (task, tool, str(below), str(archive.count), str(kept))
    runs: list[Taken] = []
    for _ in range(repeat):
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink(missing_ok=True)
        taken = run("combine_tools.py", "make", *common, str(patience))
        if isinstance(taken, str):
            return Cube(tool, taken, taken)
        runs.append(taken)
    best = {name: (min if name.endswith("seconds") else max)(one[name] for one in runs) for name in runs[0]}
    return Cube(tool, best, run("combine_tools.py", "check", *common))


def print_cubes(task: str, archive: Archive, cubes: list[Cube]) -> list[tuple[str, ...]]:
    """Print a table, and return the bars that are missed. Each cube of h5zarr is compared with all of the peers."""
    best = min((seconds for cube in cubes if _is_ours(cube) and (seconds := cube.get("seconds"))), default=None)
    peers = [nbytes for cube in cubes if not _is_ours(cube) and (nbytes := cube.get("peak_nbytes"))]
    rows = []
    for cube in cubes:
        if (seconds := cube.get("seconds")) is None:
            rows.append((cube.tool, cube.verdict, "", "", "", "", ""))
            continue
        nbytes = cube.get("peak_nbytes") or 0
        rows.append(
            (
                cube.tool,
                cube.verdict,
                f"{seconds:.2f}",
                f"{seconds / best:.1f}" if best else "",
                f"{cube.get('processor_seconds'):.2f}",
                f"{nbytes / 1e6:.0f}",
                f"{nbytes / min(peers):.2f}" if peers else "",
            )
        )
    print_table(WHAT[task].format(count=archive.count, chunks=archive.chunk_count), COLUMNS, rows)
    return _missed(task, cubes, peers)


def _is_ours(cube: Cube) -> bool:
    return cube.tool.startswith("h5zarr")


def _missed(task: str, cubes: list[Cube], peers: list[float]) -> list[tuple[str, ...]]:
    bars = {"kerchunk": 5.0, "VirtualiZarr": 5.0} if task == "files" else {"kerchunk": 10.0, "VirtualiZarr": 1.0}
    missed = []
    for ours in filter(_is_ours, cubes):
        if (seconds := ours.get("seconds")) is None:
            missed.append((task, ours.tool, "values right", "all", ours.verdict))
            continue
        for cube in cubes:
            bar = bars.get(cube.tool.partition(",")[0])
            theirs = cube.get("seconds")
            if bar is not None and theirs is not None and theirs / seconds < bar:
                missed.append(
                    (task, ours.tool, f"times faster than {cube.tool}", f"{bar:g}", f"{theirs / seconds:.1f}")
                )
        nbytes = ours.get("peak_nbytes") or 0
        if task != "files" and peers and nbytes > 0.5 * min(peers):
            missed.append((task, ours.tool, "memory of the leaner peer", "0.5", f"{nbytes / min(peers):.2f}"))
    return missed


def measure_opening(archive: Archive, below: Path, repeat: int) -> list[tuple[str, ...]]:
    """Return rows: how long a cube and one file take to open, and to read one time step of all variables."""
    import h5zarr

    paths = archive.files(below)
    middle = len(paths) // 2
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for form in ("JSON", "Parquet", "Icechunk"):
            one, many = (f"{directory}/{name}.{form.lower()}" for name in ("one", "many"))
            targets = [f"icechunk+file://{out}" if form == "Icechunk" else out for out in (one, many)]
            h5zarr.translate(paths[middle], targets[0])
            h5zarr.combine(paths, targets[1], along="time")
            rows.append(_opening_row(form, archive, (one, 1), (many, 4 * middle + 1), repeat))
    return rows


def _opening_row(form: str, archive: Archive, one: Any, many: Any, repeat: int) -> tuple[str, ...]:
    taken: dict[str, list[tuple[float, float]]] = {"one": [], "many": []}
    for _ in range(repeat):
        for name, (out, step) in (("one", one), ("many", many)):
            begin = time.perf_counter()
            with open_cube(f"h5zarr, {form}", out) as cube:
                opened = time.perf_counter()
                cube.isel(time=step)[list(FIELDS)].load()
            taken[name].append((opened - begin, time.perf_counter() - opened))
    cells = []
    for part in (0, 1):
        values = [statistics.median(row[part] for row in taken[name]) * 1e3 for name in ("one", "many")]
        cells += [f"{values[0]:.1f}", f"{values[1]:.1f}", f"{values[1] / values[0]:.1f}"]
    return (f"{archive.count:,} files, {form}", *cells)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("files", "memory", "disk", "opening"))
    parser.add_argument("--count", type=int, help="number of files, instead of 1,000 and 2,500")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--directory", type=Path, default=default_directory())
    arguments = parser.parse_args()
    print_machine()
    missed: list[tuple[str, ...]] = []
    below = arguments.directory
    tools = [tool for tool in TOOLS if tool.startswith("h5zarr") or not arguments.no_peers]
    for task, archive in TASKS.items():
        archive = Archive(archive.name, arguments.count or archive.count, archive.shape, archive.chunk_shape)
        if arguments.only in (None, task):
            archive.files(below)
            if task != "files":
                for tool in ("h5zarr",) if arguments.no_peers else ("h5zarr", "kerchunk"):
                    prepare_references(archive, below, tool)
            cubes = []
            for tool in tools:
                with tempfile.TemporaryDirectory() as scratch:
                    out = Path(scratch) / f"cube.{tool.rpartition(' ')[2].lower()}"
                    cubes.append(make_cube(task, tool, archive, below, arguments.repeat, arguments.patience, out))
            missed += print_cubes(task, archive, cubes)
        if arguments.only in (None, "opening") and task != "disk":
            columns = (
                "cube",
                *[
                    f"{what}, {who}"
                    for what in ("opens", "reads a step")
                    for who in ("one file, ms", "cube, ms", "ratio")
                ],
            )
            print_table("opening, and reading one time step", columns, measure_opening(archive, below, 9))
    if missed:
        print_table("Bars that are missed", ("task", "cube by", "what", "bar", "measured"), missed)


if __name__ == "__main__":
    main()
