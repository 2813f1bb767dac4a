"""Run index jobs in tests, as a function or as a process that can be killed, and check what they leave behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5zarr
from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status

PROJECT = Path(__file__).resolve().parents[3]
SAMPLES = PROJECT / "sample_data"
OWN_FILES = {"_h5zarr/catalog.parquet", "_h5zarr/last_run"}
GOOD = ("ocean.nc", "links_compact.h5", "netcdf4_coordinates.nc")


def fill(directory: Path, count: int) -> list[Path]:
    """Write `count` files that can be translated, some of them in subdirectories."""
    paths = [directory / f"{number % 3}" / f"file{number:04d}.nc" for number in range(count)]
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / GOOD[number % len(GOOD)], path)
    return paths


def rows_of(out: str | Path, options: Mapping[str, Any] | None = None) -> dict[str, Row]:
    """Return the rows of a catalog by source. Fail if a source has two rows."""
    rows = list(Catalog(Place(out, options)).rows())
    found = {row.source: row for row in rows}
    assert len(found) == len(rows)
    return found


def environment() -> dict[str, str]:
    """Return an environment in which another process imports this copy of the package."""
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def start(*arguments: object, **choices: Any) -> subprocess.Popen[bytes]:
    """Start the command in its own process group."""
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True, **choices}
    command = [sys.executable, "-m", "h5zarr", "index", *map(str, arguments)]
    return subprocess.Popen(command, env=environment(), cwd=PROJECT, **given)


def finish(process: subprocess.Popen[bytes], seconds: float = 180) -> tuple[int, str]:
    """Wait for a command to end, and return its exit code and output. Kill it if it takes too long."""
    try:
        said = process.communicate(timeout=seconds)[1].decode()
    finally:
        process.kill()
        process.wait()
    return process.returncode, said


@contextmanager
def started(*arguments: object, **choices: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the running command, and make sure that it ends with the test."""
    process = start(*arguments, **choices)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(number: int) -> set[int]:
    """Return all descendants of a process."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and parent_of(int(entry.name)) == number:
            found |= {int(entry.name)} | children(int(entry.name))
    return found


def parent_of(number: int) -> int | None:
    """Return the parent of a process; None if the process does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[1])


def eventually(is_so: Callable[[], bool], seconds: float = 10) -> bool:
    """Return whether a condition becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.01)
    return is_so()


def unmarked(text: str) -> str:
    """Return what a run said, without the id of the run at the start of each line."""
    return re.sub(r"^\[[\w.:+-]+\] ", "", text, flags=re.MULTILINE)


def files_below(out: Path) -> set[str]:
    """Return the names of all files below a directory."""
    return {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}


def served(count: int) -> dict[str, bytes]:
    """Return `count` files for a server, by path."""
    return {f"/d/{number:03d}.nc": (SAMPLES / GOOD[number % len(GOOD)]).read_bytes() for number in range(count)}


def check_index(out: Path, sources: Iterable[str | Path], tmp_path: Path) -> None:
    """Fail unless each source has one correct row and the output that `translate` writes, and there is nothing else."""
    rows = rows_of(out)
    assert set(rows) == {str(source) for source in sources}
    for source, row in rows.items():
        assert row.status is Status.INDEXED, row
        made = h5zarr.translate(source, tmp_path / "expected.json")
        assert row.identity == made.provenance.sources[0].identity
        assert (row.arrays, row.problems) == (len(made.arrays()), made.problems)
        assert (out / row.output).read_bytes() == (tmp_path / "expected.json").read_bytes(), source
    assert len({row.output for row in rows.values()}) == len(rows)
    assert files_below(out) == {row.output for row in rows.values()} | OWN_FILES
