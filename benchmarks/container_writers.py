"""One container of references, written or opened by one tool in a process of its own.

    python benchmarks/container_writers.py write TOOL COUNT OUT
    python benchmarks/container_writers.py open READER SMALL OUT

prints what it took, as JSON. The references are those of one array of COUNT chunks, as a tool holds them before it
writes: a hierarchy, a dictionary, a manifest. Neither making them nor imports count; the memory that they take does.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from translators import _peak_nbytes

RECORD_SIZE = 100_000
URL = "s3://bucket/some/way/down/simulation.nc"
_ROW = 100


def columns(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The addresses and sizes of chunks, seeded."""
    sizes = np.random.default_rng(1).integers(20_000, 90_000, count)
    return np.concatenate([[4096], 4096 + np.cumsum(sizes)[:-1]]), sizes


def shape_of(count: int) -> tuple[int, int, int]:
    return count // _ROW, _ROW // 10 * 30, 10 * 40


CHUNK_SHAPE = (1, 30, 400 // 10)


def prepare_h5zarr(count: int) -> Callable[[str], None]:
    from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Manifest
    from h5zarr.io.log import RequestLog
    from h5zarr.io.source import Identity
    from h5zarr.refs.provenance import Provenance, SourceState
    from h5zarr.translating import Options, Translation

    addresses, sizes = columns(count)
    grid = (count // _ROW, 10, 10)
    index = np.stack(np.unravel_index(np.arange(count), grid), axis=1)
    node = ArrayNode(
        shape=shape_of(count),
        data_type="float32",
        chunk_shape=CHUNK_SHAPE,
        codecs=(
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "numcodecs.zlib", "configuration": {}},
        ),
        fill_value=0.0,
        dimension_names=("t", "y", "x"),
        attributes={},
        manifest=Manifest(index=index, address=addresses, nbytes=sizes),
    )
    made = Translation(
        hierarchy=Hierarchy(nodes={"/": GroupNode(attributes={}), "/v": node}, urls=(URL,)),
        provenance=Provenance("0", (SourceState(URL, Identity(nbytes=int(addresses[-1] + sizes[-1]))),)),
        options=Options(),
        log=RequestLog(),
        source_nbytes=0,
        seconds=0,
    )
    return made.write


def h5zarr_json(count: int) -> Callable[[str], None]:
    return prepare_h5zarr(count)


def h5zarr_parquet(count: int) -> Callable[[str], None]:
    import pyarrow.parquet  # noqa: F401  which it imports when it needs it

    return prepare_h5zarr(count)


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


def kerchunk_json(count: int) -> Callable[[str], None]:
    import ujson

    references = _dictionary(count)

    def write(out: str) -> None:
        with open(out, "w") as file:
            ujson.dump(references, file)

    return write


def kerchunk_parquet(count: int) -> Callable[[str], None]:
    import fastparquet  # noqa: F401
    from kerchunk.df import refs_to_dataframe

    references = _dictionary(count)
    return lambda out: refs_to_dataframe(references, out, record_size=RECORD_SIZE)


def _virtual_dataset(count: int) -> Any:
    import virtualizarr  # noqa: F401
    import xarray as xr
    from virtualizarr.manifests import ChunkManifest, ManifestArray
    from virtualizarr.manifests.utils import create_v3_array_metadata

    addresses, sizes = columns(count)
    grid = (count // _ROW, 10, 10)
    manifest = ChunkManifest.from_arrays(
        paths=np.full(grid, URL, dtype=np.dtypes.StringDType()),
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


def virtualizarr_json(count: int) -> Callable[[str], None]:
    made = _virtual_dataset(count)
    return lambda out: made.vz.to_kerchunk(out, format="json")


def virtualizarr_parquet(count: int) -> Callable[[str], None]:
    import fastparquet  # noqa: F401
    import kerchunk.df  # noqa: F401

    made = _virtual_dataset(count)
    return lambda out: made.vz.to_kerchunk(out, format="parquet", record_size=RECORD_SIZE)


def open_with_fsspec(out: str) -> Any:
    """As anybody would without h5zarr: xarray, zarr and fsspec's reference file system."""
    import xarray as xr

    options = {"fo": out, "remote_protocol": "file"}
    return xr.open_dataset("reference://", engine="zarr", storage_options=options, decode_cf=False)


def open_with_engine(out: str) -> Any:
    import xarray as xr

    return xr.open_dataset(out, engine="h5zarr", decode_cf=False)


WRITERS: dict[str, Callable[[int], Callable[[str], None]]] = {
    "h5zarr, JSON": h5zarr_json,
    "h5zarr, Parquet": h5zarr_parquet,
    "kerchunk, JSON": kerchunk_json,
    "kerchunk, Parquet": kerchunk_parquet,
    "VirtualiZarr, JSON": virtualizarr_json,
    "VirtualiZarr, Parquet": virtualizarr_parquet,
}
READERS: dict[str, Callable[[str], Any]] = {"fsspec": open_with_fsspec, "engine": open_with_engine}


def _write(tool: str, count: int, out: str) -> dict[str, Any]:
    write = WRITERS[tool](count)
    before = _peak_nbytes()
    start = time.perf_counter()
    write(out)
    return {"seconds": time.perf_counter() - start, "before_nbytes": before, "peak_nbytes": _peak_nbytes()}


def _open(reader: str, small: str, out: str) -> dict[str, Any]:
    """Open another container first, so that imports do not count."""
    READERS[reader](small).close()
    before = _peak_nbytes()
    start = time.perf_counter()
    opened = READERS[reader](out)
    taken = time.perf_counter() - start
    assert set(opened.variables) == {"v"}
    return {"seconds": taken, "before_nbytes": before, "peak_nbytes": _peak_nbytes()}


def main() -> None:
    warnings.simplefilter("ignore")
    what, who, other, out = sys.argv[1:]
    print(json.dumps(_write(who, int(other), out) if what == "write" else _open(who, other, out)))


if __name__ == "__main__":
    main()
