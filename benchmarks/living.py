"""Cubes of large archives: how long it takes to make one, to open it, and to change one file of it.

    python benchmarks/living.py [--only join|granules|http] [--below DIRECTORY] [--share 1.0]

The references are those of an index of 25,000 to 473,328 files; see `large_archives.py`. Each task runs in a process of
its own, with the imports done before. A cube is compared with the archive before any time is shown: the URL, state,
address and size of every chunk of 60 random files, and of those that were changed. `--share` makes smaller archives.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from containers import run
from files import default_directory
from large_archives import FINE, FINEST, GRANULES, LargeArchive, make_index
from living_tasks import change
from range_server import serving
from tables import print_machine, print_table

FORMS = ("parquet", "laid.parquet", "icechunk")  # laid: with an axis that is laid out ahead
COLUMNS = ("task", "references right", "seconds", "peak MB", "MB written", "bytes per reference", "bar", "met")


@dataclass
class Result:
    """What a task took, and whether the cube is right afterwards."""

    title: str
    taken: Any
    checked: Any = None
    seconds_bar: float | None = None
    nbytes_bar: float | None = None
    written_nbytes: int | None = None
    chunk_count: int = 0
    bar: str = ""

    @property
    def is_right(self) -> bool:
        return isinstance(self.taken, dict) and (
            self.checked is None
            or (isinstance(self.checked, dict) and self.checked["equal"] == self.checked["checked"])
        )

    def cells(self) -> tuple[str, ...]:
        if not self.is_right:
            why = self.taken if isinstance(self.taken, str) else f"WRONG: {self.checked}"
            return (self.title, why, "", "", "", "", self.bar, "no")
        seconds, peak = self.taken["seconds"], self.taken.get("peak_nbytes", 0)
        bounds = ((seconds, self.seconds_bar), (peak, self.nbytes_bar))
        met = "" if not self.bar else "no" if any(bar is not None and value > bar for value, bar in bounds) else "yes"
        return (
            self.title,
            "" if self.checked is None else f"{self.checked['equal']:,}",
            f"{seconds:.2f}",
            f"{peak / 1e6:.0f}" if peak else "",
            "" if self.written_nbytes is None else f"{self.written_nbytes / 1e6:.1f}",
            f"{self.taken['cube_nbytes'] / self.chunk_count:.1f}" if self.chunk_count else "",
            self.bar,
            met,
        )


class Bench:
    """Runs tasks on copies of the index of an archive."""

    def __init__(self, archive: LargeArchive, below: Path) -> None:
        self.archive, self.source = archive, below / f"{archive.name}-{archive.count}"
        make_index(archive, self.source)
        self.index, self.below = below / "index", below
        self.versions: dict[int, int] = {}
        self.gone: tuple[int, ...] = ()

    def renew(self) -> None:
        """Start again with the index as it was first."""
        shutil.rmtree(self.index, ignore_errors=True)
        shutil.copytree(self.source, self.index)
        self.versions, self.gone = {}, ()

    def run(self, task: str, cube: str, count: int | None = None) -> Any:
        count = count or self.archive.count
        return run("living_tasks.py", task, self.archive.name, str(count), str(self.index), cube)

    def check(self, cube: str, count: int | None = None) -> Any:
        told = json.dumps({"versions": self.versions, "gone": self.gone})
        return self.run(f"check:{told}", cube, count)

    def place(self, form: str) -> str:
        """Return where a cube is made, after removing the one that is there."""
        path = self.below / f"cube.{form}"
        shutil.rmtree(path, ignore_errors=True)
        return f"icechunk+file://{path}" if "icechunk" in form else str(path)


def join(below: Path, share: float, *, is_long: bool) -> list[Result]:
    """Return what it takes to join many references."""
    results = []
    for archive, seconds, nbytes, bar in (
        (FINE, 10.0, 0.5e9, "10 s, 0.5 GB"),
        *(((FINEST, 120.0, 1e9, "2 min, 1 GB"),) if is_long else ()),
    ):
        bench = Bench(_part(archive, share), below)
        bench.renew()
        cube = bench.place("parquet")
        title = f"join {bench.archive.chunk_count:,} references of {bench.archive.count:,} files: Parquet"
        taken = bench.run("update", cube)
        how: dict[str, Any] = {"seconds_bar": seconds, "nbytes_bar": nbytes, "bar": bar}
        results.append(Result(title, taken, bench.check(cube), chunk_count=bench.archive.chunk_count, **how))
    bench = Bench(_part(FINE, share), below)
    bench.renew()
    cube = bench.place("icechunk")
    bare = bench.run("bare", bench.place("bare.icechunk"))
    taken = bench.run("update", cube)
    bar = 1.2 * bare["seconds"] if isinstance(bare, dict) else None
    title = "the same: Icechunk"
    results.append(Result("the same, with nothing but Icechunk's own calls", bare))
    how = {"seconds_bar": bar, "nbytes_bar": 3.2e9, "bar": "1.2 times its own calls, 3.2 GB"}
    results.append(Result(title, taken, bench.check(cube), chunk_count=bench.archive.chunk_count, **how))
    return results


def granules(below: Path, share: float, form: str) -> list[Result]:
    """Return what it takes to make, open and change a cube of the shape of GPM IMERG."""
    bench = Bench(_part(GRANULES, share), below)
    bench.renew()
    cube = bench.place(form)
    how: dict[str, Any] = {"seconds_bar": 20.0, "bar": "20 s"}
    if form == "icechunk":
        how = {"seconds_bar": 2.0, "bar": "2 s, 2 MB"}
    return [*_make(bench, cube, form), *_changes(bench, cube, form, how, laid_out="laid" in form)]


def _make(bench: Bench, cube: str, form: str) -> list[Result]:
    archive = bench.archive
    title = f"{archive.count:,} files × {archive.chunks_per_file} chunks from an index: {form}"
    how: dict[str, Any] = {"seconds_bar": 120.0, "nbytes_bar": 1e9, "bar": "2 min, 1 GB"}
    made = Result(title, bench.run("update", cube), bench.check(cube), chunk_count=archive.chunk_count, **how)
    opened = Result(f"open it: {form}", bench.run("open", cube), seconds_bar=1.0, bar="1 s")
    return [made, opened]


def _changes(bench: Bench, cube: str, form: str, how: dict[str, Any], *, laid_out: bool) -> list[Result]:
    """Return what it takes to append, replace and remove one file, and to insert it again."""
    count, middle, results = bench.archive.count, bench.archive.count // 2, []

    def step(title: str, number: int, version: int, total: int, *, remove: bool = False) -> None:
        change(bench.archive, bench.index, number, version, remove=remove)
        if remove:
            bench.gone = (*bench.gone, number)
        else:
            bench.gone = tuple(one for one in bench.gone if one != number)
            bench.versions[number] = version
        before = _files(cube)
        taken = bench.run("update:prune", cube, bench.archive.count)
        written = sum(state[0] for name, state in _files(cube).items() if before.get(name) != state)
        results.append(Result(f"{title}: {form}", taken, bench.check(cube, total), written_nbytes=written, **how))

    step("append one file", count, 0, count + 1)
    how = {"seconds_bar": 2 * how["seconds_bar"], "bar": "twice that"} if laid_out else {}
    step("replace one in the middle", middle, 1, count + 1)
    step("remove it", middle, 1, count + 1, remove=True)
    step("insert it again", middle, 2, count + 1)
    return results


def _files(cube: str) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file of a cube."""
    states = ((path, path.stat()) for path in Path(cube.removeprefix("icechunk+file://")).rglob("*") if path.is_file())
    return {str(path): (state.st_size, state.st_mtime_ns) for path, state in states}


def remote(below: Path) -> list[tuple[str, ...]]:
    """Return what a cube adds to an index of 2,000 files behind 30 ms."""
    import time

    from archive_files import Archive

    import h5zarr

    archive = Archive("granule", 2_000, (60, 60), (30, 30))
    archive.files(below)
    taken: dict[str, list[float]] = {"index": [], "cube": []}
    with serving(archive.directory(below), latency=0.03, bandwidth=100e6) as server:
        urls = [f"{server.url}/{path.name}" for path in archive.files(below)]
        for _ in range(3):
            for name in taken:
                shutil.rmtree(below / "refs", ignore_errors=True)
                shutil.rmtree(below / "remote.parquet", ignore_errors=True)
                cubes = [f"{below}/remote.parquet,along=time"] if name == "cube" else []
                began = time.perf_counter()
                h5zarr.index(urls, below / "refs", cubes=cubes)
                taken[name].append(time.perf_counter() - began)
        cube = h5zarr.verify(below / "remote.parquet", sample=0.05)
    alone, both = (min(taken[name]) for name in ("index", "cube"))
    met = "yes" if both <= 1.1 * alone else "no"
    return [(str(cube.is_right), f"{alone:.2f}", f"{both:.2f}", f"{100 * (both / alone - 1):.1f} %", "10 %", met)]


def _part(archive: LargeArchive, share: float) -> LargeArchive:
    return replace(archive, count=max(200, int(archive.count * share)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("join", "granules", "http"))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="of the cube of granules")
    parser.add_argument("--below", type=Path, default=default_directory())
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--long", action="store_true", help="also join 10^8 references")
    arguments = parser.parse_args()
    arguments.below.mkdir(parents=True, exist_ok=True)
    print_machine()
    if arguments.only in (None, "join"):
        results = join(arguments.below, arguments.share, is_long=arguments.long)
        print_table("Join the references of an index", COLUMNS, [one.cells() for one in results])
    if arguments.only in (None, "granules"):
        for form in arguments.forms:
            results = granules(arguments.below, arguments.share, form)
            print_table(f"A cube of the shape of GPM IMERG: {form}", COLUMNS, [one.cells() for one in results])
    if arguments.only in (None, "http"):
        columns = ("cube right", "index alone: seconds", "index and cube", "more", "bar", "met")
        print_table("2,000 files behind 30 ms", columns, remote(arguments.below))


if __name__ == "__main__":
    main()
