"""Archives of so many files that only their references are made: as an index holds them, in shards beside its catalog.

    python benchmarks/large_archives.py NAME COUNT DIRECTORY FIRST END

makes the shards of files FIRST to END. All references are those of one real file, with the time, name, state and chunk
addresses of each file, which are seeded: `LargeArchive.chunks` tells what any reference must be.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

import h5zarr
from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.combine.recipe import Recipe
from h5zarr.commands.index.work import IndexSettings
from h5zarr.commands.update.shards import ShardStore
from h5zarr.io.access import Access
from h5zarr.io.source import Identity

BATCH = 64  # files that a worker joins
_EDGE = 40  # elements
_MINUTES = 30


@dataclass(frozen=True)
class LargeArchive:
    """An archive: the number of files, and of chunks of each field in each direction."""

    name: str
    count: int
    fields: tuple[str, ...]
    rows: int
    columns: int

    @property
    def chunks_per_file(self) -> int:
        return len(self.fields) * self.rows * self.columns

    @property
    def chunk_count(self) -> int:
        return self.count * self.chunks_per_file

    @cached_property
    def template(self) -> Any:
        """The translation of a real file of this shape."""
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "template.nc"
            with netCDF4.Dataset(path, "w") as file:
                file.createDimension("time", None)
                time = file.createVariable("time", "i4", ("time",), chunksizes=(1,))
                time.units = "minutes since 2000-01-01"
                time[:] = 0
                for name, extent in (("lat", self.rows * _EDGE), ("lon", self.columns * _EDGE)):
                    file.createDimension(name, extent)
                    file.createVariable(name, "f4", (name,))[:] = np.arange(extent)
                shape = (1, self.rows * _EDGE, self.columns * _EDGE)
                for field in self.fields:
                    how: dict[str, Any] = {"zlib": True, "chunksizes": (1, _EDGE, _EDGE)}
                    variable = file.createVariable(field, "f4", ("time", "lat", "lon"), **how)
                    variable[:] = np.random.default_rng(1).normal(size=shape)
            return h5zarr.translate(path)

    def url(self, number: int) -> str:
        return f"/archive/{self.name}/{number // 48:06d}/granule.{number * _MINUTES:09d}.V07.{number:07d}.nc"

    def chunks(self, number: int, version: int = 0) -> Any:
        """Return the addresses and sizes of the chunks of each field, one after the other, in a file."""
        sizes = np.random.default_rng([number, version]).integers(
            20_000, 90_000, (len(self.fields), self.rows * self.columns)
        )
        ends = 4096 + np.cumsum(sizes).reshape(sizes.shape)
        return ends - sizes, sizes

    def identity(self, number: int, version: int = 0) -> Identity:
        addresses, sizes = self.chunks(number, version)
        seconds = 1_700_000_000 + 60 * number + version
        mtime = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000000Z")
        return Identity(nbytes=int(addresses[-1, -1] + sizes[-1, -1]), mtime=mtime)

    def translation(self, number: int, version: int = 0) -> Any:
        """Return the references of a file."""
        made, nodes = self.template, dict(self.template.hierarchy.nodes)
        addresses, sizes = self.chunks(number, version)
        time = nodes["/time"]
        content = np.array([number * _MINUTES], "<i4").tobytes()
        nodes["/time"] = replace(time, manifest=replace(time.manifest, inline={(0,): content}))
        for field, address, nbytes in zip(self.fields, addresses, sizes, strict=True):
            node = nodes[f"/{field}"]
            nodes[f"/{field}"] = replace(node, manifest=replace(node.manifest, address=address, nbytes=nbytes))
        url = self.url(number)
        state = replace(made.provenance.sources[0], url=url, identity=self.identity(number, version))
        hierarchy = replace(made.hierarchy, nodes=nodes, urls=(url,))
        fitted = replace(made.fitted, hierarchy=hierarchy)
        return replace(made, fitted=fitted, provenance=replace(made.provenance, sources=(state,)))

    def rows_of(self, numbers: range) -> Iterator[Row]:
        """Yield what the catalog of an index says about files."""
        settings, now = IndexSettings(out="refs").digest, datetime.now(UTC)
        for number in numbers:
            url = self.url(number)
            yield Row(
                source=url,
                found_by="/archive",
                identity=self.identity(number),
                output=f"{url.strip('/')}.json",
                settings=settings,
                status=Status.INDEXED,
                arrays=len(self.fields) + 3,
                chunks=self.chunks_per_file,
                time=now,
            )


GRANULES = LargeArchive("granules", 473_328, tuple("abcdefg"), 4, 3)  # as GPM IMERG: 84 chunks each
FINE = LargeArchive("fine", 25_000, tuple("abcd"), 10, 10)  # 10^7 chunks
FINEST = LargeArchive("finest", 100_000, tuple("abcdefghij"), 10, 10)  # 10^8 chunks
ARCHIVES = {one.name: one for one in (GRANULES, FINE, FINEST)}
RECIPE = Recipe(along=("time",))


def store_of(directory: Path) -> ShardStore:
    return ShardStore(Place(str(directory)), RECIPE, Access())


def make_index(archive: LargeArchive, directory: Path) -> None:
    """Make the catalog and shards of an index, unless they are there: two processes, as two workers would."""
    if (directory / "made").exists():
        return
    half = archive.count // 2 // BATCH * BATCH
    shares = ((0, half), (half, archive.count))
    command = [sys.executable, __file__, archive.name, str(archive.count), str(directory)]
    running = [subprocess.Popen([*command, str(first), str(end)]) for first, end in shares]
    if any(process.wait() for process in running):
        raise SystemExit("the archive could not be made")
    catalog = Catalog(Place(str(directory)))
    for row in archive.rows_of(range(archive.count)):
        catalog.add(row)
        if catalog.unwritten_count == 20_000:
            catalog.flush()
    catalog.fold()
    (directory / "made").touch()


def _make_shards(archive: LargeArchive, directory: Path, first: int, end: int) -> None:
    store = store_of(directory / f"from{first}")
    for batch, begin in enumerate(range(first, end, BATCH), 1):
        store.add([archive.translation(number) for number in range(begin, min(end, begin + BATCH))])
        if batch % 64 == 0:
            store.merge()
    store.merge()
    target = directory / store.folder
    target.mkdir(parents=True, exist_ok=True)
    for path in (directory / f"from{first}" / store.folder).iterdir():
        path.rename(target / path.name)


if __name__ == "__main__":
    name, count, place, start, stop = sys.argv[1:]
    _make_shards(replace(ARCHIVES[name], count=int(count)), Path(place), int(start), int(stop))
