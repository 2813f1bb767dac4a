"""A run of `h5zarr index` that has nothing to do, over a catalog that was made up.

    python benchmarks/index_noop.py KIND COUNT DIRECTORY make|run

KIND is `local`: empty files, which are really listed; or `s3`: a bucket that does not exist, of which the list is made
up as well, in the form in which a real one comes. `run` prints the seconds that listing took, and the peak of memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from h5zarr.cli import main as run_command
from h5zarr.commands.catalog.listing import Listed, Listing, list_sources
from h5zarr.commands.index import index as running
from h5zarr.io.source import Identity

PATTERN = "s3://bucket/product/**/*.nc"


def names(count: int) -> Iterator[str]:
    """Paths as data centres have them: a directory for each day."""
    for number in range(count):
        day, hour = divmod(number, 24)
        yield f"{2000 + day // 360}/{day % 360:03d}/product_v2_{number:08d}_{hour:02d}00.nc"


def list_bucket(count: int) -> Listing:
    """What a list of the bucket would say."""
    found = []
    for number, name in enumerate(names(count)):
        identity = Identity(nbytes=80_000 + number, etag=f'"{number:032x}"', mtime="2026-11-01T00:00:00+00:00")
        found.append(Listed(f"s3://bucket/product/{name}", name, identity, PATTERN))
    return Listing(frozenset({PATTERN}), tuple(found))


def make(kind: str, count: int, directory: Path) -> None:
    """Make the sources where they are to be real, and a catalog in which all of them are indexed."""
    from h5zarr.commands.catalog.catalog import Catalog
    from h5zarr.commands.catalog.place import Place
    from h5zarr.commands.catalog.rows import Row, Status
    from h5zarr.commands.index.work import IndexSettings

    data = directory / "data"
    if kind == "local":
        for name in names(count):
            place = data / name
            if name.endswith("_0000.nc"):
                place.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    listing = list_sources(str(data)) if kind == "local" else list_bucket(count)
    about: dict[str, Any] = {
        "settings": IndexSettings(out="").digest,
        "arrays": 10,
        "chunks": 31,
        "requests": 1,
        "seconds": 0.05,
        "tool_version": "0",
        "time": datetime.now(UTC),
    }
    rows = (
        Row(
            source=one.url,
            found_by=one.found_by,
            identity=one.identity,
            output=f"{one.path}.json",
            status=Status.INDEXED,
            **about,
        )
        for one in listing.sources
    )
    Catalog(Place(directory / "refs"), rows).fold()


def run(kind: str, count: int, directory: Path) -> None:
    """Run the command, and print what listing took of it, and memory."""
    listing_seconds = 0.0
    really = running._list

    def listed(*arguments: Any) -> Listing:
        nonlocal listing_seconds
        started = time.perf_counter()
        listing = list_bucket(count) if kind == "s3" else really(*arguments)
        listing_seconds = time.perf_counter() - started
        return listing

    running._list = listed
    report = directory / "report.json"
    sources = PATTERN if kind == "s3" else str(directory / "data")
    code = run_command(["index", sources, str(directory / "refs"), "--quiet", "--report", str(report)])
    told = json.loads(report.read_text())
    if code or told["unchanged"] != count or told["indexed"]:
        raise SystemExit(f"{told['unchanged']:,} of {count:,} sources are unchanged, exit code {code}")
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    print(json.dumps({"listing_seconds": listing_seconds, "peak_nbytes": peak}))


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[4]](sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
