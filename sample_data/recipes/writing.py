"""Shared by the recipes: how to begin a file and how to create a dataset with exactly the properties wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from .catalogue import Unavailable

EARLIEST_AND_LATEST = ("earliest", "latest")
V110_AND_LATEST = ("v110", "latest")

FORMAT_VERSIONS = {
    "earliest": h5f.LIBVER_EARLIEST,
    "v108": h5f.LIBVER_V18,
    "v110": h5f.LIBVER_V110,
    "v112": h5f.LIBVER_V112,
    "latest": h5f.LIBVER_LATEST,
}


def new_file(
    path: Path,
    libver: str = "earliest",
    *,
    creation: Callable[[h5p.PropFCID], object] | None = None,
    access: Callable[[h5p.PropFAID], object] | None = None,
) -> h5py.File:
    """Return a new file, open for writing, without timestamps. `creation` and `access` may set more properties."""
    fapl = h5p.create(h5p.FILE_ACCESS)
    fapl.set_libver_bounds(FORMAT_VERSIONS[libver], h5f.LIBVER_LATEST)
    fapl.set_fclose_degree(h5f.CLOSE_STRONG)
    fcpl = h5p.create(h5p.FILE_CREATE)
    fcpl.set_obj_track_times(False)
    if access:
        access(fapl)
    if creation:
        creation(fcpl)
    return h5py.File(h5f.create(str(path).encode(), h5f.ACC_TRUNC, fcpl=fcpl, fapl=fapl))


def dataset_properties(
    chunk_shape: tuple[int, ...] | None = None,
    *,
    layout: int | None = None,
    fill: np.ndarray | np.generic | None = None,
    fill_time: int | None = None,
    alloc_time: int | None = None,
) -> h5p.PropDCID:
    """Return dataset creation properties without timestamps. What is not given is left to libhdf5."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_obj_track_times(False)
    if chunk_shape is not None:
        dcpl.set_chunk(chunk_shape)
    if layout is not None:
        dcpl.set_layout(layout)
    if fill is not None:
        dcpl.set_fill_value(np.asarray(fill))
    if fill_time is not None:
        dcpl.set_fill_time(fill_time)
    if alloc_time is not None:
        dcpl.set_alloc_time(alloc_time)
    return dcpl


def space_of(shape: tuple[int, ...], maxshape: tuple[int | None, ...] | None = None) -> h5s.SpaceID:
    """Return a simple dataspace; None in `maxshape` is an unlimited axis."""
    if not shape:
        return h5s.create(h5s.SCALAR)
    limits = shape if maxshape is None else tuple(h5s.UNLIMITED if limit is None else limit for limit in maxshape)
    return h5s.create_simple(shape, limits)


def new_dataset(
    group: h5py.Group,
    name: str,
    datatype: h5t.TypeID | Any,
    shape: tuple[int, ...],
    properties: h5p.PropDCID | None = None,
    *,
    maxshape: tuple[int | None, ...] | None = None,
) -> h5py.Dataset:
    """Create a dataset of a datatype (libhdf5's or numpy's) that is stored exactly as given."""
    type_id = datatype if isinstance(datatype, h5t.TypeID) else h5t.py_create(np.dtype(datatype), logical=True)
    created = h5d.create(
        group.id, name.encode(), type_id, space_of(shape, maxshape), dcpl=properties or dataset_properties()
    )
    return h5py.Dataset(created)


def write_values(dataset: h5py.Dataset, values: Any) -> None:
    """Write all elements, converted by libhdf5 and not by h5py, which knows only the datatypes that numpy has."""
    dataset.id.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values))


def write_stored_bytes(dataset: h5py.Dataset, stored: bytes) -> None:
    """Write elements given in the dataset's own datatype, so that no conversion takes place."""
    dataset.id.write(h5s.ALL, h5s.ALL, np.frombuffer(stored, "u1"), mtype=dataset.id.get_type())


def numbers(shape: tuple[int, ...], dtype: str = "i4") -> np.ndarray:
    """Return 0, 1, 2, ... in C order: every element tells where it belongs. Wraps round in one-byte types."""
    return np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)


def optional_module(name: str) -> Any:
    """Import a package that only some recipes need."""
    try:
        return __import__(name)
    except ImportError as error:
        raise Unavailable(f"{name} is not installed") from error
