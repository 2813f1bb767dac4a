"""The files of the benchmarks: made once, seeded, and reused.

    python benchmarks/files.py [directory]

makes all of them. A file is written under another name and moved when whole, so an interrupted run leaves no half file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import h5py
import numpy as np
import numpy.typing as npt

Libver = Literal["earliest", "latest"]
ChunkIndex = Literal["btree1", "fixed_array", "extensible_array", "btree2"]

SEED = 20261101
EDITION = 1  # part of every file's name: raise it when a maker changes
CHUNK_INDEXES: tuple[ChunkIndex, ...] = ("btree1", "fixed_array", "extensible_array", "btree2")
GRIDS: dict[int, tuple[int, int]] = {10_000: (100, 100), 100_000: (250, 400), 1_000_000: (1000, 1000)}
LARGEST: dict[int, tuple[int, int]] = {10_000_000: (2500, 4000)}  # takes minutes to make, and 1.4 GB
LIBVERS: tuple[Libver, ...] = ("earliest", "latest")
DATASET_COUNTS = (200, 2_000, 20_000)
MANY_DATASETS = 2_050

CHUNK_SHAPE = (8, 8)
PAYLOAD_COUNT = 256
ELEMENT = np.dtype("<i2")


def default_directory() -> Path:
    """Where files go unless a directory is named."""
    return Path(os.environ.get("H5ZARR_BENCHMARK_DIR", Path(tempfile.gettempdir()) / "h5zarr-benchmarks"))


def many_chunks(directory: Path, count: int, index: ChunkIndex) -> Path:
    """The path of a file with one dataset of `count` chunks, shuffled and deflated, found through `index`."""
    grid = {**GRIDS, **LARGEST}[count]
    return made(directory / f"chunks_{index}_{count}.{EDITION}.h5", lambda path: _make_many_chunks(path, grid, index))


def many_datasets(directory: Path, count: int, libver: Libver) -> Path:
    """The path of a file with `count` small chunked datasets in groups of about 20, nine attributes each."""
    path = directory / f"datasets_{libver}_{count}.{EDITION}.h5"
    return made(path, lambda path: _make_many_datasets(path, count, libver))


def made(path: Path, make: Callable[[Path], None]) -> Path:
    """`path`, having made the file if it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        try:
            make(unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def _payloads(random: np.random.Generator) -> list[bytes]:
    """Chunks as stored: of rising noise, so that their sizes vary, about 90 bytes on average."""
    payloads = []
    for number in range(PAYLOAD_COUNT):
        noise = 2 + number
        elements = (1000 + random.integers(0, noise, CHUNK_SHAPE)).astype(ELEMENT)
        shuffled = elements.view(np.uint8).reshape(-1, ELEMENT.itemsize).T.tobytes()
        payloads.append(zlib.compress(shuffled, 1))
    return payloads


def _make_many_chunks(path: Path, grid: tuple[int, int], index: ChunkIndex) -> None:
    random = np.random.default_rng(SEED)
    payloads = _payloads(random)
    choice = random.integers(0, len(payloads), grid).tolist()
    shape = (grid[0] * CHUNK_SHAPE[0], grid[1] * CHUNK_SHAPE[1])
    max_shapes: dict[ChunkIndex, tuple[int | None, int | None] | None] = {
        "btree1": (None, shape[1]),
        "fixed_array": None,
        "extensible_array": (None, shape[1]),
        "btree2": (None, None),
    }
    with h5py.File(path, "w", libver="earliest" if index == "btree1" else "latest") as file:
        dataset = file.create_dataset(
            "values",
            shape,
            ELEMENT,
            chunks=CHUNK_SHAPE,
            maxshape=max_shapes[index],
            shuffle=True,
            compression="gzip",
            compression_opts=1,
        )
        write = dataset.id.write_direct_chunk
        rows, columns = CHUNK_SHAPE
        for row, choices in enumerate(choice):
            for column, number in enumerate(choices):
                write((row * rows, column * columns), payloads[number])


def _make_many_datasets(path: Path, count: int, libver: Libver) -> None:
    random = np.random.default_rng(SEED)
    group_count = count // 20 // 10 * 10  # 2,050 datasets: 100 groups
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["Conventions"] = "CF-1.8"
        file.attrs["title"] = np.bytes_("benchmark file")
        for number in range(group_count):
            members = count // group_count + (number < count % group_count)
            group = file.create_group(f"group_{number:04}")
            group.attrs["institution"] = "somewhere"
            group.attrs["member"] = np.int32(number)
            _fill_group(group, members, random)


def _fill_group(group: h5py.Group, members: int, random: np.random.Generator) -> None:
    """Two dimension scales, and variables of four chunks each on them."""
    shape, chunks = (26, 32), (13, 16)
    scales = []
    for name, extent in zip(("y", "x"), shape, strict=True):
        scale = group.create_dataset(name, data=np.linspace(0, 1, extent), chunks=(extent,), maxshape=(None,))
        scale.make_scale(name)
        _add_attributes(scale, name, random)
        scales.append(scale)
    for number in range(members - len(scales)):
        kind = ("<f4", "<f8", "<i2", "<i4", "|u1", ">f4")[number % 6]
        name = f"variable_{number:02}"
        variable = group.create_dataset(
            name,
            data=random.integers(0, 100, shape).astype(kind),
            chunks=chunks,
            shuffle=True,
            compression="gzip",
            compression_opts=1,
            fillvalue=np.array(99, kind)[()],
        )
        for axis, scale in enumerate(scales):
            variable.dims[axis].attach_scale(scale)
        _add_attributes(variable, name, random)


def _add_attributes(dataset: h5py.Dataset, name: str, random: np.random.Generator) -> None:
    """Nine attributes, one more than libhdf5 keeps in an object header of the latest format."""
    values: dict[str, npt.NDArray[np.generic] | np.generic | str] = {
        "long_name": f"the variable called {name} in {dataset.parent.name}",
        "units": "kg m-2 s-1",
        "standard_name": np.bytes_(f"standard_{name}"),
        "_FillValue": np.array([99], dataset.dtype),
        "scale_factor": np.float32(0.5),
        "add_offset": np.float64(random.normal()),
        "valid_range": np.array([0, 98], dataset.dtype),
        "flag_values": np.arange(5, dtype="<i4"),
        "comment": np.array(["one", "two and more", "three"], dtype=h5py.string_dtype()),
    }
    for key, value in values.items():
        dataset.attrs[key] = value


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else default_directory()
    makers: list[Callable[[], Path]] = [
        *(partial(many_chunks, directory, count, index) for index in CHUNK_INDEXES for count in GRIDS),
        *(
            partial(many_datasets, directory, count, libver)
            for libver in LIBVERS
            for count in (MANY_DATASETS, *DATASET_COUNTS)
        ),
    ]
    for make in makers:
        start = time.perf_counter()
        path = make()
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB  {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
