"""Jobs for tests: as a function, as a process that can be killed, and what they have left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5zarr
from h5zarr.commands.index.catalog import Catalog
from h5zarr.commands.index.place import Place
from h5zarr.commands.index.rows import Row, Status

PROJECT = Path(__file__).resolve().parents[3]
SAMPLES = PROJECT / "sample_data"
GOOD = ("ocean.nc", "links_compact.h5", "netcdf4_coordinates.nc")


def fill(directory: Path, count: int) -> list[Path]:
    """Write so many files that can be translated, some of them further below."""
    paths = [directory / f"{number % 3}" / f"file{number:04d}.nc" for number in range(count)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / GOOD[number % len(GOOD)], path)
    return paths


def rows_of(out: str | Path, options: Mapping[str, Any] | None = None) -> dict[str, Row]:
    """Return the rows of a catalog, by source; fail where a source has two."""
    rows = list(Catalog(Place(out, options)).rows())
    found = {row.source: row for row in rows}
    assert len(found) == len(rows)
    return found


def environment() -> dict[str, str]:
    """Return the environment in which this very package is imported by another process, and nothing else is told."""
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def start(*arguments: object, **choices: Any) -> subprocess.Popen[bytes]:
    """Start the command, in a group of processes of its own."""
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **choices}
    command = [sys.executable, "-m", "h5zarr", "index", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), cwd=PROJECT, **given)


def finish(process: subprocess.Popen[bytes], seconds: float = 180) -> tuple[int, str]:
    """Return the exit code of a command and what it said, when it has ended; it is not let go on after that."""
    try:
        said = process.communicate(timeout=seconds)[1].decode()
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


@contextmanager
def started(*arguments: object, **choices: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Give the command as it runs, and see that it does not outlive the test."""
    process = start(*arguments, **choices)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(number: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(int(entry.name)) == number:
            found |= {int(entry.name)} | children(int(entry.name))
    return found


def parent_of(number: int) -> int | None:
    """Return the parent of a process; None where there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[1])


def eventually(is_so: Callable[[], bool], seconds: float = 10) -> bool:
    """Return whether something comes to be so, in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.01)
    return is_so()


def files_below(out: Path) -> set[str]:
    """Return the names of all files below a directory."""
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def served(count: int) -> dict[str, bytes]:
    """Return so many files for a server, by their paths there."""
    return {f"/d/{number:03d}.nc": (SAMPLES / GOOD[number % len(GOOD)]).read_bytes() for number in range(count)}


def check_index(out: Path, sources: Iterable[str | Path], tmp_path: Path) -> None:
    """Fail unless there is one right row for each source, the output that `translate` writes, and nothing else."""
    rows = rows_of(out)
    assert set(rows) == {str(source) for source in sources}
    for source, row in rows.items():
        assert row.status is Status.INDEXED, row
        made = h5zarr.translate(source, tmp_path / "expected.json")
        assert row.identity == made.provenance.sources[0].identity
        assert (row.arrays, row.problems) == (len(made.arrays()), made.problems)
        assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes(), source
    assert len({row.output for row in rows.values()}) == len(rows)
    assert files_below(out) == {row.output for row in rows.values()} | {"_h5zarr/catalog.parquet"}
