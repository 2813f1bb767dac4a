"""One task on the cube of a large archive, in a process of its own.

    python benchmarks/living_tasks.py TASK ARCHIVE COUNT INDEX CUBE

prints what it took, as JSON. The index has a catalog and shards, as `large_archives.py` makes them; files that change
later have references of their own. Nothing else is prepared: reading the catalog, joining and writing are timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from container_writers import measured
from large_archives import ARCHIVES, RECIPE, LargeArchive

from h5zarr.commands.catalog.catalog import Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.cubes import CubeSpec, discard_shards, follow
from h5zarr.containers.fitting import fit
from h5zarr.io.access import Access

_PATIENCE = 1800.0
_SAMPLE = 60


def update(archive: LargeArchive, index: Path, cube: str, *, prune: bool = False) -> dict[str, float]:
    """Bring the cube up to date with the index."""
    import pyarrow.parquet  # noqa: F401  imports do not count
    import zarr  # noqa: F401

    from h5zarr.commands.catalog.catalog_table import use_system_memory

    if cube.startswith("icechunk"):
        import icechunk  # noqa: F401
    use_system_memory()  # as the command does
    done: list[Any] = []
    spec = CubeSpec(out=cube, recipe=RECIPE if "laid" not in cube else _laid_out(archive))
    taken = measured(lambda: done.append(follow(spec, Place(str(index)), Access(), None, prune=prune)), _PATIENCE)
    (outcome,) = done
    if outcome.done is None or outcome.done.misfits or outcome.done.known_misfits:
        raise SystemExit("\n".join(outcome.lines()))
    discard_shards(Place(str(index)))
    changed = sum(map(len, (outcome.done.added, outcome.done.replaced, outcome.done.removed)))
    return {**taken, "changed": changed, "files": outcome.done.file_count}


def _laid_out(archive: LargeArchive) -> Any:
    from datetime import UTC, datetime, timedelta

    stop = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=30 * (archive.count + 48))
    return replace(RECIPE, along=(f"time=2000-01-01/{stop:%Y-%m-%dT%H:%M}/PT30M",))


def change(archive: LargeArchive, index: Path, number: int, version: int, *, remove: bool = False) -> None:
    """Change one file of the archive: its row in the catalog, and references of its own."""
    catalog = Catalog(Place(str(index)))
    (row,) = archive.rows_of(range(number, number + 1))
    if remove:
        catalog.remove(row.source)
    else:
        made = archive.translation(number, version)
        made = replace(made, fitted=fit(made.hierarchy))
        path = index / row.output
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        made.write(path)
        catalog.add(replace(row, identity=archive.identity(number, version)))
    catalog.fold()


def check(archive: LargeArchive, cube: str, versions: dict[int, int], gone: tuple[int, ...] = ()) -> dict[str, float]:
    """Compare random references with those of the files, and the coordinate with the files that should be there."""
    from h5zarr.opening import open_hierarchy
    from h5zarr.read.chunk_rows import ChunkTable
    from h5zarr.zarr_model.hierarchy import ArrayNode

    opened = open_hierarchy(cube)
    numbers = [number for number in range(archive.count) if number not in gone]
    random, equal, checked = np.random.default_rng(5), 0, 0
    picked = {*random.choice(numbers, _SAMPLE).tolist(), *(number for number in versions if number not in gone)}
    for field, name in enumerate(archive.fields):
        node = opened.hierarchy.nodes[f"/{name}"]
        assert isinstance(node, ArrayNode)
        assert "laid" in cube or node.shape[0] == len(numbers), (node.shape, len(numbers))
        table = ChunkTable(node.grid, node.manifest)
        for number in sorted(picked):
            step = number if "laid" in cube else number - sum(one < number for one in gone)
            addresses, sizes = (column[field] for column in archive.chunks(number, versions.get(number, 0)))
            chunks = step * len(addresses) + np.arange(len(addresses))
            rows = table.rows(chunks)
            at = rows.find(chunks)
            sources = np.broadcast_to(rows.source, len(rows.number))[at]
            right = (rows.address[at] == addresses) & (rows.nbytes[at] == sizes) & (at >= 0)
            right &= np.array([opened.sources.urls[one].endswith(archive.url(number)) for one in sources.tolist()])
            states = [opened.sources.expected[one] for one in sources.tolist()]
            right &= np.array([one == archive.identity(number, versions.get(number, 0)) for one in states])
            equal, checked = equal + int(right.sum()), checked + len(right)
    return {"equal": equal, "checked": checked}


def bare_icechunk(archive: LargeArchive, cube: str) -> dict[str, float]:
    """Pass the same references to Icechunk, with nothing but its own calls: a call for each file and array, and commits
    of as many references as h5zarr's. The references are in memory.
    """
    import icechunk
    import zarr

    path = cube.removeprefix("icechunk+file://")
    per_field = archive.rows * archive.columns
    held = [archive.chunks(number) for number in range(archive.count)]

    def work() -> None:
        config = icechunk.RepositoryConfig.default()
        store = icechunk.local_filesystem_store("/archive")
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer("file:///archive/", store))
        axis = icechunk.ManifestSplitDimCondition.Axis
        split = {icechunk.ManifestSplitCondition.AnyArray(): {axis(0): 20_000 // per_field}}
        config.manifest = icechunk.ManifestConfig(splitting=icechunk.ManifestSplittingConfig.from_dict(split))
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(path), config)
        session = repository.writable_session("main")
        root = zarr.open_group(session.store, mode="w")
        shape = (archive.count, archive.rows * 40, archive.columns * 40)
        for name in archive.fields:
            root.create_array(name, shape=shape, chunks=(1, 40, 40), dtype="f4", filters=None, compressors=None)
        session.commit("metadata")
        step = max(1, 200_000 // per_field)
        for field, name in enumerate(archive.fields):
            for first in range(0, archive.count, step):
                session = repository.writable_session("main")
                for number in range(first, min(archive.count, first + step)):
                    address, nbytes = (column[field].astype(np.uint64) for column in held[number])
                    session.store.set_virtual_refs_arr(
                        name,
                        (1, archive.rows, archive.columns),
                        [f"file://{archive.url(number)}"] * per_field,
                        address,
                        nbytes,
                        arr_offset=(number, 0, 0),
                        validate_containers=number == first,
                    )
                session.commit(f"{name} {first}")

    return measured(work, _PATIENCE)


def nbytes_of(cube: str) -> int:
    path = cube.removeprefix("icechunk+file://")
    return sum(os.path.getsize(os.path.join(above, name)) for above, _, names in os.walk(path) for name in names)


def open_cube(cube: str) -> dict[str, float]:
    """Open a cube as xarray does."""
    import xarray as xr

    began = time.perf_counter()
    with xr.open_dataset(cube, engine="h5zarr") as opened:
        return {"seconds": time.perf_counter() - began, "steps": opened.sizes["time"]}


def main() -> None:
    task, name, count, place, cube = sys.argv[1:]
    archive, index = replace(ARCHIVES[name], count=int(count)), Path(place)
    kind, _, rest = task.partition(":")
    if kind == "update":
        taken = update(archive, index, cube, prune=rest == "prune")
    elif kind == "check":
        told = json.loads(rest or "{}")
        versions = {int(number): version for number, version in told.get("versions", {}).items()}
        taken = check(archive, cube, versions, tuple(told.get("gone", ())))
    elif kind == "bare":
        taken = bare_icechunk(archive, cube)
    elif kind == "open":
        taken = open_cube(cube)
    else:
        raise SystemExit(f"there is no task {task}")
    print(json.dumps({**taken, "cube_nbytes": 0 if cube.startswith("http") else nbytes_of(cube)}))


if __name__ == "__main__":
    main()
