"""What a run holds does not grow with what it has done."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.commands.catalog.listing import Listed
from h5zarr.commands.catalog.rows import Row
from h5zarr.commands.index import running
from h5zarr.commands.index.planning import Task
from tests.commands.index.jobs import environment, fill

COMMAND = """
import sys
from h5zarr.cli import main
if __name__ == "__main__":  # which processes that it starts are not
    assert main(["index", *sys.argv[1:]]) == 0
    import pyarrow
    print(pyarrow.default_memory_pool().backend_name, *sys.modules)
"""

ENCODE = """
from datetime import UTC, datetime
from pathlib import Path
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.catalog.catalog_table import encode_table, make_table, use_system_memory
from h5zarr.io.source import Identity

def make(number):
    identity = Identity(nbytes=number, etag=f'"{number:032x}"')
    names = {"source": f"s3://bucket/{number:08d}.nc", "output": f"{number:08d}.nc.json", "found_by": "s3://bucket/*.nc"}
    return Row(**names, identity=identity, settings="abc", status=Status.INDEXED, time=datetime.now(UTC))

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

use_system_memory()
encode_table(make_table(map(make, range(2_000))))  # so that what comes with the first one does not count
table = make_table(map(make, range(50_000)))
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew, at what is held now
before = peak()
encode_table(table)
print(table.nbytes, peak() - before)
"""


class AtOnce(Executor):
    """Does at once what it is asked for."""

    def submit(self, act: Any, /, *arguments: Any, **choices: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(act(*arguments, **choices))
        return future


def held() -> Counter[type]:
    """Return how many things of each kind there are in this process."""
    return Counter(type(one) for one in gc.get_objects())


def test_neither_the_listing_nor_what_was_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count, most_rows = 60, 8
    fill(tmp_path / "data", count)
    monkeypatch.setattr(running, "_FLUSH_ROWS", most_rows)
    seen: list[Counter[type]] = []
    gc.collect()
    before = held()
    note = lambda row: seen.append(held())  # noqa: E731
    h5zarr.index(tmp_path / "data", tmp_path / "refs", executor=AtOnce(), workers=1, on_row=note)
    assert len(seen) == count
    assert seen[0][Task] - before[Task] == count
    assert all(one[Listed] == before[Listed] for one in seen)
    assert seen[-1][Task] - before[Task] <= 4  # those that were done together with the last one
    assert seen[-1][Row] - before[Row] <= most_rows + 4


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of memory")
def test_what_it_takes_to_write_a_catalog_does_not_grow_with_its_rows() -> None:
    command = [sys.executable, "-c", ENCODE]
    told = {name: value for name, value in environment().items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=True)
    table_nbytes, growth_nbytes = map(int, done.stdout.split())
    assert table_nbytes > 8_000_000
    assert growth_nbytes < table_nbytes  # half of that; in one piece it was nearly twice as much


def test_the_command_does_without_pandas_and_without_the_allocators_of_arrow(tmp_path: Path) -> None:
    fill(tmp_path / "data", 3)
    arguments = [str(tmp_path / "data"), str(tmp_path / "refs"), "--workers", "1", "--quiet"]
    command = [sys.executable, "-c", COMMAND, *arguments]
    told = {name: value for name, value in environment().items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=True)
    pool, *modules = done.stdout.split()
    assert pool == "system"
    assert "pyarrow.parquet" in modules
    assert "pandas" not in modules
