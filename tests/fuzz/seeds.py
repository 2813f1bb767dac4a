"""Seeds to damage: sample files with a map of their structures, references to them, and chunks of every filter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import h5zarr
import h5zarr.hdf5.checksum as checksum
from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.checksum import interpreted_lookup3
from h5zarr.hdf5.file import read_file
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from h5zarr.netcdf3.header import read_header
from tests.collections_of_files import SAMPLES, classic_samples, sample_files
from tests.fuzz.mutating import Seed

MOST_NBYTES = 60_000


class _Recorder:
    """Replaces the hash function, and records the blocks it is called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, int]] = []

    def __call__(self, content: Any) -> int:
        hashed = interpreted_lookup3(content)
        self.seen.append((bytes(content), hashed))
        return hashed

    def compiled(self) -> _Recorder:
        return self


def map_hdf5(name: str, content: bytes) -> Seed:
    """Return a file with the spans of its structures, which a scan reads, and of their checksums."""
    spans: set[tuple[int, int]] = set()
    view = memoryview(content)

    def read_many(wanted: Sequence[Span]) -> list[memoryview]:
        spans.update((address, address + nbytes) for address, nbytes in wanted if nbytes)
        return [view[address : address + nbytes] for address, nbytes in wanted]

    usual, recorder = checksum._hasher, _Recorder()
    checksum._hasher = recorder  # type: ignore[assignment]
    try:
        run(read_file(name, len(content)), read_many)
    except H5ZarrError:
        pass
    finally:
        checksum._hasher = usual
    checks = set()
    for block, hashed in recorder.seen:
        begin = content.find(block + hashed.to_bytes(4, "little"))
        if begin >= 0:
            checks.add((begin, begin + len(block) + 4))
    targets = sorted({begin for begin, _ in spans})
    words = {address.to_bytes(8, "little") for address in targets if address}
    pointers = [place for begin, end in spans for place in range(begin, end - 7) if content[place : place + 8] in words]
    return Seed(
        name=name,
        content=content,
        spans=tuple(sorted(spans)),
        checks=tuple(sorted(checks)),
        pointers=tuple(sorted(set(pointers))),
        targets=tuple(targets) or (0,),
    )


def map_classic(name: str, content: bytes) -> Seed:
    """Return a netCDF-3 file whose header is to be damaged."""
    view = memoryview(content)
    header = run(read_header(len(content)), lambda wanted: [view[at : at + nbytes] for at, nbytes in wanted])
    return Seed(name=name, content=content, spans=((0, header.nbytes),), order="big")


@cache
def hdf5_seeds() -> tuple[Seed, ...]:
    files = [path for path in sample_files() if path.stat().st_size < MOST_NBYTES]
    return tuple(map_hdf5(path.name, path.read_bytes()) for path in files)


@cache
def classic_seeds() -> tuple[Seed, ...]:
    files = [path for path in classic_samples() if path.stat().st_size < MOST_NBYTES]
    return tuple(map_classic(path.name, path.read_bytes()) for path in files)


REFERRED = (
    "ocean.nc",
    "filters_standard_latest.h5",
    "filters_szip.h5",
    "classic_types_cdf5.nc",
    "fill_types_latest.h5",
)
TEMPLATED = {
    "version": 1,
    "templates": {"u": "s3://bucket"},
    "refs": {
        ".zgroup": {"zarr_format": 2},
        "w/.zarray": {
            "zarr_format": 2,
            "shape": [4, 3],
            "chunks": [1, 3],
            "dtype": "<M8[s]",
            "fill_value": 5,
            "order": "F",
            "dimension_separator": "/",
            "filters": [{"id": "delta", "dtype": "<i8"}, {"id": "shuffle", "elementsize": 8}],
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
        },
        **{f"w/{place}/0": ["{{u}}/a", place, 5] for place in range(4)},
    },
}


@cache
def json_seeds() -> tuple[Any, ...]:
    """Return documents whose metadata are objects, so that damage reaches them."""
    made: list[Any] = [TEMPLATED]
    for name in REFERRED:
        for zarr_format in (2, 3):
            done = h5zarr.translate(SAMPLES / name, zarr_format=zarr_format)
            made.append(unfold(_document(done)))
    return tuple(made)


def _document(done: h5zarr.Translation) -> Any:
    from h5zarr.containers.json.json_writing import write_json

    parts: list[bytes] = []

    class Sink:
        def write(self, data: bytes, /) -> None:
            parts.append(bytes(data))

    write_json(done.fitted, done.provenance, Sink())
    return json.loads(b"".join(parts))


def unfold(document: Any) -> Any:
    refs = document["refs"]
    for key, value in refs.items():
        if isinstance(value, str) and value.startswith("{"):
            refs[key] = json.loads(value)
    return document


@dataclass(frozen=True)
class ParquetSeed:
    """The files of a directory of references."""

    name: str
    files: dict[str, bytes]


def parquet_seeds(folder: Path) -> tuple[ParquetSeed, ...]:
    """Return references in Parquet, which are written to `folder`."""
    folder.mkdir()
    made = []
    for name in REFERRED[:3]:
        out = folder / f"{name}.parquet"
        h5zarr.translate(SAMPLES / name, out)
        files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
        made.append(ParquetSeed(name, files))
    return tuple(made)


@dataclass(frozen=True)
class ChunkSeed:
    """A filtered chunk, which has `nbytes` bytes without filters."""

    name: str
    number: int
    values: tuple[int, ...]
    content: bytes
    nbytes: int


@cache
def chunk_seeds() -> tuple[ChunkSeed, ...]:
    """Return a chunk for every known filter."""
    from tests.filters.test_hostile import DAMAGED
    from tests.filters.written import numbers, write

    made = []
    for name, (dtype, setting) in DAMAGED.items():
        try:
            chunk = write(numbers((31, 41), dtype), setting)
        except ValueError:  # of plugins that this libhdf5 cannot use
            continue
        (one,) = chunk.filters
        made.append(ChunkSeed(name, one.number, one.values, chunk.content, chunk.nbytes))
    return tuple(made)


def write_small_hdf5(path: Path, *, libver: str) -> None:
    """Write a file with every kind of storage and type."""
    chance = np.random.default_rng(0)
    with h5py.File(path, "w", libver=libver) as file:
        file["plain"] = np.arange(20.0)
        file["scalar"] = 7
        file.create_dataset("deflated", data=chance.integers(0, 9, (10, 12)), chunks=(5, 4), compression="gzip")
        file.create_dataset("shuffled", data=np.arange(100, dtype=">i2"), chunks=(30,), shuffle=True, fletcher32=True)
        file.create_dataset("growing", data=np.arange(9.0), chunks=(2,), maxshape=(None,))
        file.create_dataset("sparse", (50,), "f4", chunks=(5,), fillvalue=-1)[12:14] = 3
        file.create_dataset("group/compact", data=np.arange(6, dtype="u1"))
        file["plain"].attrs["units"] = "m"
        file["plain"].attrs["_FillValue"] = 3.0
