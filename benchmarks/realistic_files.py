"""Files as data centres have them: variables of a model, the same cloud-optimised, and one written step by step.

Seeded and made once, as those of `files.py`. Chunks are of noise, and written as they are: what counts is where they
lie and what describes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from files import EDITION, SEED, made

VARIABLE_COUNT = 60
PAGE_NBYTES = 4 * 1024 * 1024
STEP_COUNT = 256
STEP_VARIABLES = 40


def model_output(directory: Path) -> Path:
    """The path of a netCDF-4 file of about 60 MB: 60 variables on five dimensions, chunks of 64 kB."""
    return made(directory / f"model_output.{EDITION}.nc", lambda path: _make_model(path))


def paged_output(directory: Path) -> Path:
    """The path of the same file with paged aggregation, in pages of 4 MiB: metadata and data never share a page."""
    return made(directory / f"model_output_paged.{EDITION}.nc", lambda path: _make_model(path, PAGE_NBYTES))


def appended_output(directory: Path) -> Path:
    """The path of a file of 1 GB: 40 variables, to which 256 time steps of 100 kB each were appended one by one.

    Their B-trees grew as the file did, so that the nodes lie scattered through all of it.
    """
    return made(directory / f"appended_output.{EDITION}.h5", _make_appended)


def _make_model(path: Path, page_nbytes: int | None = None) -> None:
    paging = {} if page_nbytes is None else {"fs_strategy": "page", "fs_page_size": page_nbytes, "libver": "v110"}
    random = np.random.default_rng(SEED)
    with h5py.File(path, "w", track_order=True, **paging) as file:
        file.attrs["Conventions"] = "CF-1.11"
        file.attrs["title"] = "model output"
        file.attrs["history"] = "made by the benchmarks; " * 20
        scales = dict(_make_coordinates(file))
        for number in range(VARIABLE_COUNT):
            names = ("time", "level", "latitude", "longitude") if number % 3 else ("time", "latitude", "longitude")
            _make_variable(file, f"variable_{number:02}", [scales[name] for name in names], random)


def _make_coordinates(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    extents = {"time": 8, "level": 4, "latitude": 128, "longitude": 256, "nv": 2}
    for number, (name, extent) in enumerate(extents.items()):
        unlimited = name == "time"
        scale = file.create_dataset(
            name,
            data=np.linspace(0, 90, extent),
            maxshape=(None,) if unlimited else (extent,),
            chunks=(512,) if unlimited else None,
        )
        scale.make_scale(name)
        scale.attrs["_Netcdf4Dimid"] = np.int32(number)
        scale.attrs["units"] = "hours since 2000-01-01" if unlimited else "1"
        scale.attrs["long_name"] = f"the coordinate {name}"
        yield name, scale


def _make_variable(file: h5py.File, name: str, scales: list[h5py.Dataset], random: np.random.Generator) -> None:
    shape = tuple(len(scale) for scale in scales)
    chunks = (1,) * (len(shape) - 2) + (64, 128)
    variable = file.create_dataset(
        name,
        shape,
        "<f4",
        chunks=chunks,
        maxshape=(None, *shape[1:]),
        shuffle=True,
        compression="gzip",
        compression_opts=4,
        fillvalue=np.float32(9.96921e36),
    )
    for axis, scale in enumerate(scales):
        variable.dims[axis].attach_scale(scale)
    texts = ("long_name", "standard_name", "units", "cell_methods", "grid_mapping", "coordinates")
    for text in texts:
        variable.attrs[text] = f"{text} of {name}"
    for attribute in ("_FillValue", "missing_value"):
        variable.attrs[attribute] = np.array([9.96921e36], "<f4")
    for index in np.ndindex(tuple(extent // chunk for extent, chunk in zip(shape, chunks, strict=True))):
        origin = tuple(number * chunk for number, chunk in zip(index, chunks, strict=True))
        variable.id.write_direct_chunk(origin, random.bytes(int(random.integers(8_000, 12_000))))


def _make_appended(path: Path) -> None:
    random = np.random.default_rng(SEED)
    payload = random.bytes(100_000)
    with h5py.File(path, "w") as file:
        variables = []
        for number in range(STEP_VARIABLES):
            options = {"chunks": (1, 160, 160), "maxshape": (None, 160, 160), "compression": "gzip"}
            variable = file.create_dataset(f"variable_{number:02}", (0, 160, 160), "<f4", **options)
            variable.attrs["units"] = "K"
            variable.attrs["long_name"] = f"variable {number}, appended to step by step"
            variables.append(variable)
        for step in range(STEP_COUNT):
            for variable in variables:
                variable.resize(step + 1, axis=0)
                variable.id.write_direct_chunk((step, 0, 0), payload[: int(random.integers(90_000, 100_000))])
            file.flush()  # as a model does, so that what ran so far is not lost
