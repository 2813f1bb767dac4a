"""One container of references, written by one tool in a process of its own.

    python benchmarks/container_writers.py TOOL COUNT OUT PATIENCE

prints what it took, as JSON. The references are those of one array of COUNT chunks, as a tool holds them before it
writes: a hierarchy, a dictionary, a manifest. Neither making them nor imports count; the memory that they take does.
Writing is stopped after PATIENCE seconds: then nothing is printed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from translators import _peak_nbytes

RECORD_SIZE = 100_000  # rows of a Parquet file by the peers, which is their default; h5zarr chooses by itself
URL = "s3://bucket/some/way/down/simulation.nc"
SOURCE = "simulation.nc"
_ROW = 100


def columns(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The addresses and sizes of chunks, seeded."""
    sizes = np.random.default_rng(1).integers(20_000, 90_000, count)
    return np.concatenate([[4096], 4096 + np.cumsum(sizes)[:-1]]), sizes


def url_for(out: str) -> str:
    """What references lead to: for Icechunk a file, since its readers show bytes, and no references."""
    return f"file://{Path(out).parent / SOURCE}" if out.endswith(".icechunk") else URL


def shape_of(count: int) -> tuple[int, int, int]:
    return count // _ROW, _ROW // 10 * 30, 10 * 40


CHUNK_SHAPE = (1, 30, 400 // 10)


def prepare_h5zarr(count: int, out: str) -> Callable[[], Any]:
    from h5zarr.commands.translate.options import Options
    from h5zarr.commands.translate.translation import Translation
    from h5zarr.containers.fitting import fit
    from h5zarr.containers.provenance import Provenance
    from h5zarr.containers.source_state import SourceState
    from h5zarr.io.local import format_mtime
    from h5zarr.io.log import RequestLog
    from h5zarr.io.source import Identity
    from h5zarr.zarr_model.grid import RegularGrid
    from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Manifest

    addresses, sizes = columns(count)
    grid = RegularGrid(shape_of(count), CHUNK_SHAPE)
    index = np.stack(np.unravel_index(np.arange(count), grid.grid_shape), axis=1)
    node = ArrayNode(
        grid=grid,
        data_type="float32",
        codecs=(
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "numcodecs.zlib", "configuration": {}},
        ),
        fill_value=0.0,
        dimension_names=("t", "y", "x"),
        attributes={},
        manifest=Manifest(index=index, address=addresses, nbytes=sizes),
    )
    url, is_icechunk = url_for(out), out.endswith(".icechunk")
    mtime = format_mtime(os.stat(url.removeprefix("file://")).st_mtime_ns) if is_icechunk else None
    identity = Identity(nbytes=int(addresses[-1] + sizes[-1]), mtime=mtime)
    made = Translation(
        source=url,
        fitted=fit(Hierarchy(nodes={"/": GroupNode(attributes={}), "/v": node}, urls=(url,))),
        provenance=Provenance("0", (SourceState(url, identity),)),
        options=Options(),
        log=RequestLog(),
        source_nbytes=0,
        seconds=0,
    )
    return lambda: made.write(f"icechunk+file://{out}" if is_icechunk else out)


def h5zarr_json(count: int, out: str) -> Callable[[], Any]:
    return prepare_h5zarr(count, out)


def h5zarr_parquet(count: int, out: str) -> Callable[[], Any]:
    import pyarrow.parquet  # noqa: F401  which it imports when it needs it

    return prepare_h5zarr(count, out)


def h5zarr_icechunk(count: int, out: str) -> Callable[[], Any]:
    import zarr  # noqa: F401  which it imports when it needs it, as the others

    import h5zarr.containers.icechunk.icechunk_writing  # noqa: F401
    from h5zarr.containers.icechunk.storage import check_place
    from h5zarr.io.location import Location

    check_place(Location.parse(f"icechunk+file://{out}"))
    return prepare_h5zarr(count, out)


def _dictionary(count: int) -> dict[str, Any]:
    addresses, sizes = columns(count)
    metadata = {
        "zarr_format": 2,
        "shape": shape_of(count),
        "chunks": CHUNK_SHAPE,
        "dtype": "<f4",
        "compressor": {"id": "zlib", "level": 1},
        "fill_value": 0.0,
        "order": "C",
        "filters": None,
    }
    entries: dict[str, Any] = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        "v/.zarray": json.dumps(metadata),
        "v/.zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["t", "y", "x"]}),
    }
    places = zip(addresses.tolist(), sizes.tolist(), strict=True)
    for number, (address, size) in enumerate(places):
        entries[f"v/{number // _ROW}.{number // 10 % 10}.{number % 10}"] = [URL, address, size]
    return {"version": 1, "refs": entries}


def kerchunk_json(count: int, out: str) -> Callable[[], Any]:
    import kerchunk.hdf  # noqa: F401  where such a dictionary comes from
    import ujson

    references = _dictionary(count)

    def write() -> None:
        with open(out, "w") as file:
            ujson.dump(references, file)

    return write


def kerchunk_parquet(count: int, out: str) -> Callable[[], Any]:
    import fastparquet  # noqa: F401
    import kerchunk.hdf  # noqa: F401
    from kerchunk.df import refs_to_dataframe

    references = _dictionary(count)
    return lambda: refs_to_dataframe(references, out, record_size=RECORD_SIZE)


def _virtual_dataset(count: int, url: str) -> Any:
    import virtualizarr  # noqa: F401
    import xarray as xr
    from virtualizarr.manifests import ChunkManifest, ManifestArray
    from virtualizarr.manifests.utils import create_v3_array_metadata

    addresses, sizes = columns(count)
    grid = (count // _ROW, 10, 10)
    manifest = ChunkManifest.from_arrays(
        paths=np.full(grid, url, dtype=np.dtypes.StringDType()),
        offsets=addresses.astype(np.uint64).reshape(grid),
        lengths=sizes.astype(np.uint64).reshape(grid),
    )
    metadata = create_v3_array_metadata(
        shape=shape_of(count),
        data_type=np.dtype("<f4"),
        chunk_shape=CHUNK_SHAPE,
        fill_value=0.0,
        codecs=[
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "numcodecs.zlib", "configuration": {"level": 1}},
        ],
    )
    return xr.Dataset({"v": (("t", "y", "x"), ManifestArray(metadata=metadata, chunkmanifest=manifest))})


def virtualizarr_json(count: int, out: str) -> Callable[[], Any]:
    made = _virtual_dataset(count, URL)
    return lambda: made.vz.to_kerchunk(out, format="json")


def virtualizarr_parquet(count: int, out: str) -> Callable[[], Any]:
    import fastparquet  # noqa: F401
    import kerchunk.df  # noqa: F401

    made = _virtual_dataset(count, URL)
    return lambda: made.vz.to_kerchunk(out, format="parquet", record_size=RECORD_SIZE)


def virtualizarr_icechunk(count: int, out: str) -> Callable[[], Any]:
    """As its documentation says: a repository that may refer to the files, a session, `to_icechunk`, a commit."""
    import icechunk

    url = url_for(out)
    made = _virtual_dataset(count, url)

    def write() -> None:
        prefix = url.rpartition("/")[0] + "/"
        store = icechunk.local_filesystem_store(prefix.removeprefix("file://"))
        config = icechunk.RepositoryConfig.default()
        config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
        repository = icechunk.Repository.create(icechunk.local_filesystem_storage(out), config=config)
        repository.save_config()
        session = repository.writable_session("main")
        made.vz.to_icechunk(session.store)
        session.commit("as of May")

    return write


WRITERS: dict[str, Callable[[int, str], Callable[[], Any]]] = {
    "h5zarr, JSON": h5zarr_json,
    "h5zarr, Parquet": h5zarr_parquet,
    "h5zarr, Icechunk": h5zarr_icechunk,
    "kerchunk, JSON": kerchunk_json,
    "kerchunk, Parquet": kerchunk_parquet,
    "VirtualiZarr, JSON": virtualizarr_json,
    "VirtualiZarr, Parquet": virtualizarr_parquet,
    "VirtualiZarr, Icechunk": virtualizarr_icechunk,
}


def measured(work: Callable[[], Any], patience: float) -> dict[str, float]:
    """What it took; the process ends itself, whatever it does, when it takes longer than so many seconds."""
    before = _peak_nbytes()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, patience)
    start, processor = time.perf_counter(), time.process_time()
    work()
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"seconds": seconds, "processor_seconds": processor, "before_nbytes": before, "peak_nbytes": _peak_nbytes()}


def main() -> None:
    warnings.simplefilter("ignore")
    tool, count, out, patience = sys.argv[1:]
    print(json.dumps(measured(WRITERS[tool](int(count), out), float(patience))))


if __name__ == "__main__":
    main()
