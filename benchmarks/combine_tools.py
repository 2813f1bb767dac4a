"""One cube, made by one tool in a process of its own; or compared with the files.

    python benchmarks/combine_tools.py make TASK TOOL BELOW COUNT OUT PATIENCE
    python benchmarks/combine_tools.py check TASK TOOL BELOW COUNT OUT

prints what it took, or how many values are right, as JSON. The clock runs until the cube is on disk. With the task
"files", it starts with the names of the files; with "memory", with the references of each file in memory, in the form
of each tool: results of h5zarr.translate, dictionaries of kerchunk, virtual datasets of VirtualiZarr; with "disk", with
references of each file on disk: the output of h5zarr index, and JSON files of kerchunk. Imports do not count.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from archive_files import DAILY, FIELDS, FINE, STEPS, Archive
from container_writers import measured

TASKS = {"files": DAILY, "memory": FINE, "disk": FINE}
_SAMPLE = 40

Make = Callable[[], Any]


def references_of(archive: Archive, below: Path, tool: str) -> Path:
    """Return the directory with the references of each file that a tool has made beforehand."""
    return below / f"{archive.directory(below).name}.{tool}"


def prepare_references(archive: Archive, below: Path, tool: str) -> None:
    """Make the references of each file, unless they are there."""
    directory = references_of(archive, below, tool)
    paths = archive.files(below)
    if tool == "h5zarr":
        import h5zarr

        h5zarr.index(str(archive.directory(below) / "*.nc"), directory)
    if tool == "kerchunk":
        import ujson
        from kerchunk.hdf import SingleHdf5ToZarr

        directory.mkdir(exist_ok=True)
        for path in paths:
            if not (target := directory / f"{path.name}.json").exists():
                target.write_text(ujson.dumps(SingleHdf5ToZarr(str(path), inline_threshold=0).translate()))


def h5zarr_into(form: str) -> Callable[[str, Archive, Path, str], Make]:
    def prepare(task: str, archive: Archive, below: Path, out: str) -> Make:
        import numcodecs.checksum32  # noqa: F401  which it imports when it needs them, as the others
        import pyarrow.parquet  # noqa: F401
        import zarr  # noqa: F401

        import h5zarr
        import h5zarr.commands.combine.combine

        if form == "Icechunk":
            import icechunk  # noqa: F401

        sources: Any = references_of(archive, below, "h5zarr") if task == "disk" else archive.files(below)
        if task == "memory":
            sources = [h5zarr.translate(path) for path in sources]
        target = f"icechunk+file://{out}" if form == "Icechunk" else out
        return lambda: h5zarr.combine(sources, target, along="time")

    return prepare


def kerchunk_json(task: str, archive: Archive, below: Path, out: str) -> Make:
    """As its documentation says: translate each file, and combine what they have."""
    import ujson
    from kerchunk.combine import MultiZarrToZarr
    from kerchunk.hdf import SingleHdf5ToZarr

    paths = [str(path) for path in archive.files(below)]
    directory = references_of(archive, below, "kerchunk")

    def load() -> list[Any]:
        return [ujson.loads(path.read_text()) for path in sorted(directory.iterdir())]

    held = load() if task == "memory" else []

    def work() -> None:
        if task == "files":
            references = [SingleHdf5ToZarr(path, inline_threshold=0).translate() for path in paths]
        else:
            references = held or load()
        made = MultiZarrToZarr(
            references, concat_dims=["time"], identical_dims=["lat", "lon"], coo_map={"time": "cf:time"}
        )
        with open(out, "w") as file:
            ujson.dump(made.translate(), file)

    return work


def virtualizarr_into(form: str) -> Callable[[str, Archive, Path, str], Make]:
    def prepare(task: str, archive: Archive, below: Path, out: str) -> Make:
        import icechunk
        import xarray as xr
        from obspec_utils.registry import ObjectStoreRegistry
        from obstore.store import LocalStore
        from virtualizarr import open_virtual_dataset
        from virtualizarr.parsers import HDFParser

        urls = [f"file://{path}" for path in archive.files(below)]
        registry = ObjectStoreRegistry({"file://": LocalStore()})

        def open_all() -> list[Any]:
            how: dict[str, Any] = {"registry": registry, "loadable_variables": ["time", "lat", "lon"]}
            return [open_virtual_dataset(url, parser=HDFParser(), **how) for url in urls]

        if task == "disk":
            raise SystemExit("it keeps no references of single files on disk")
        held = open_all() if task == "memory" else []

        def work() -> None:
            how: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
            made = xr.concat(held or open_all(), "time", combine_attrs="override", **how)
            if form == "JSON":
                made.vz.to_kerchunk(out, format="json")
                return
            config = icechunk.RepositoryConfig.default()
            store = icechunk.local_filesystem_store(str(archive.directory(below)))
            prefix = f"file://{archive.directory(below)}/"
            config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
            allowed = {prefix: None}
            storage = icechunk.local_filesystem_storage(out)
            repository = icechunk.Repository.create(storage, config=config, authorize_virtual_chunk_access=allowed)
            repository.save_config()
            session = repository.writable_session("main")
            made.vz.to_icechunk(session.store)
            session.commit("joined")

        return work

    return prepare


TOOLS: dict[str, Callable[[str, Archive, Path, str], Make]] = {
    "h5zarr, JSON": h5zarr_into("JSON"),
    "h5zarr, Parquet": h5zarr_into("Parquet"),
    "h5zarr, Icechunk": h5zarr_into("Icechunk"),
    "kerchunk, JSON": kerchunk_json,
    "VirtualiZarr, JSON": virtualizarr_into("JSON"),
    "VirtualiZarr, Icechunk": virtualizarr_into("Icechunk"),
}


def open_cube(tool: str, out: str, files: Path | None = None) -> Any:
    """Return a cube as users of the tool open it. Icechunk must be told where the files are that it may read."""
    import xarray as xr

    if tool.startswith("h5zarr"):
        return xr.open_dataset(f"icechunk+file://{out}" if tool.endswith("Icechunk") else out, engine="h5zarr")
    if tool.endswith("JSON"):
        return xr.open_dataset(out, engine="kerchunk")
    import icechunk

    allowed = {f"file://{files}/": None}
    storage = icechunk.local_filesystem_storage(out)
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)
    return xr.open_zarr(repository.readonly_session("main").store, consolidated=False, chunks=None)


def check(tool: str, paths: Sequence[Path], out: str) -> dict[str, int]:
    """Compare the values of some time steps, the first and the last of a file among them, with xarray's."""
    import xarray as xr

    picked = np.random.default_rng(3).integers(0, len(paths) * STEPS, _SAMPLE).tolist()
    steps = sorted({0, STEPS - 1, STEPS, len(paths) * STEPS - 1, *picked})
    checked = equal = 0
    with open_cube(tool, out, paths[0].parent) as cube:
        if cube.sizes["time"] != len(paths) * STEPS:
            return {"checked": len(paths) * STEPS, "equal": 0}
        for step in steps:
            with xr.open_dataset(paths[step // STEPS], engine="netcdf4") as file:
                here, there = cube.isel(time=step), file.isel(time=step % STEPS)
                for name in (*FIELDS, "time", "lat", "lon"):
                    checked += there[name].size
                    equal += int((here[name].values == there[name].values).sum())
    return {"checked": checked, "equal": equal}


def main() -> None:
    warnings.simplefilter("ignore")
    what, task, tool, below, count, out, *patience = sys.argv[1:]
    archive = TASKS[task]
    archive = Archive(archive.name, int(count), archive.shape, archive.chunk_shape)
    if what == "check":
        print(json.dumps(check(tool, archive.files(Path(below)), out)))
    else:
        print(json.dumps(measured(TOOLS[tool](task, archive, Path(below), out), float(patience[0]))))


if __name__ == "__main__":
    main()
