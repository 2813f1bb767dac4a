"""Write chunks with h5py and return what libhdf5 reads from them, and read chunks of h5zarr with libhdf5."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import h5py
import hdf5plugin
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from h5zarr.hdf5.model import Filter

DTYPES: dict[str, Any] = {
    "i1": "i1",
    "u2": "<u2",
    "i4": "<i4",
    "i4be": ">i4",
    "f4": "<f4",
    "f8be": ">f8",
    "compound": [("a", "<i2"), ("b", "<f8"), ("c", "u1")],
}
SHAPES = ((1,), (7,), (1031,), (12, 10), (13, 1, 37))

Setting = Callable[[h5p.PropDCID], object]


def plugin(made: Mapping[str, Any]) -> Setting:
    """Return a function that adds a filter of hdf5plugin to a pipeline."""
    return lambda dcpl: dcpl.set_filter(made["compression"], h5py.h5z.FLAG_OPTIONAL, made["compression_opts"])


DEFLATE: Setting = lambda dcpl: dcpl.set_deflate(4)  # noqa: E731
SHUFFLE: Setting = lambda dcpl: dcpl.set_shuffle()  # noqa: E731
FLETCHER32: Setting = lambda dcpl: dcpl.set_fletcher32()  # noqa: E731
LZF: Setting = lambda dcpl: dcpl.set_filter(32000, h5py.h5z.FLAG_OPTIONAL)  # noqa: E731
NBIT: Setting = lambda dcpl: dcpl.set_filter(h5py.h5z.FILTER_NBIT)  # noqa: E731

# Filters for elements of any type.
PIPELINES: dict[str, tuple[Setting, ...]] = {
    "deflate": (DEFLATE,),
    "shuffle": (SHUFFLE,),
    "fletcher32": (FLETCHER32,),
    "lzf": (LZF,),
    "nbit": (NBIT,),
    "lz4": (plugin(hdf5plugin.LZ4()),),
    "lz4 in blocks": (plugin(hdf5plugin.LZ4(nbytes=100)),),
    "zstd": (plugin(hdf5plugin.Zstd(clevel=7)),),
    "bzip2": (plugin(hdf5plugin.BZip2(blocksize=2)),),
    "bitshuffle": (plugin(hdf5plugin.Bitshuffle(cname="none")),),
    "bitshuffle of 64": (plugin(hdf5plugin.Bitshuffle(nelems=64, cname="none")),),
    "bitshuffle, lz4": (plugin(hdf5plugin.Bitshuffle(cname="lz4")),),
    "bitshuffle of 128, lz4": (plugin(hdf5plugin.Bitshuffle(nelems=128, cname="lz4")),),
    "bitshuffle, zstd": (plugin(hdf5plugin.Bitshuffle(cname="zstd", clevel=2)),),
    "blosc": (plugin(hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.BITSHUFFLE)),),
    "blosc, zstd": (plugin(hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=hdf5plugin.Blosc.NOSHUFFLE)),),
    "blosc2": (plugin(hdf5plugin.Blosc2(cname="zstd", clevel=3)),),
    "blosc2, lz4": (plugin(hdf5plugin.Blosc2(cname="lz4", filters=hdf5plugin.Blosc2.NOFILTER)),),
    "shuffle, deflate, fletcher32": (SHUFFLE, DEFLATE, FLETCHER32),
    "fletcher32, shuffle, lzf": (FLETCHER32, SHUFFLE, LZF),
    "deflate, shuffle": (DEFLATE, SHUFFLE),
    "deflate, deflate": (DEFLATE, DEFLATE),
    "lz4, fletcher32, zstd": (plugin(hdf5plugin.LZ4()), FLETCHER32, plugin(hdf5plugin.Zstd())),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The only chunk of a dataset: the stored bytes, and those that libhdf5 reads from them."""

    filters: tuple[Filter, ...]
    mask: int
    content: bytes
    plain: bytes
    chunk_shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return len(self.plain)


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return values that compress somewhat: a random walk in small steps, of both signs if the type is signed."""
    steps = np.random.default_rng(len(shape)).integers(-3, 4, shape).cumsum(axis=-1) + 40
    dtype = np.dtype(dtype)
    if dtype.names is None:
        return steps.astype(dtype)
    rows = np.zeros(shape, dtype)
    for number, name in enumerate(dtype.names):
        rows[name] = steps + number
    return rows


def properties(chunk_shape: tuple[int, ...], *settings: Setting) -> h5p.PropDCID:
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk_shape)
    for setting in settings:
        setting(dcpl)
    return dcpl


def write(values: np.ndarray, *settings: Setting, datatype: h5t.TypeID | None = None) -> Written:
    """Write values with these filters into one chunk, and return it."""
    return write_with(values, properties(values.shape, *settings), datatype)


def write_with(values: np.ndarray, dcpl: h5p.PropDCID, datatype: h5t.TypeID | None = None) -> Written:
    stored = io.BytesIO()
    datatype = datatype or h5t.py_create(values.dtype, logical=True)
    with h5py.File(stored, "w") as file:
        new = h5d.create(file.id, b"d", datatype, h5s.create_simple(values.shape), dcpl)
        new.write(h5s.ALL, h5s.ALL, values)
    return read(stored)


def write_elements(elements: np.ndarray, datatype: h5t.TypeID, *settings: Setting) -> Written:
    """Write elements of the dataset's type, one per row of bytes, without conversion, and return the chunk."""
    stored = io.BytesIO()
    with h5py.File(stored, "w") as file:
        shape = (len(elements),)
        new = h5d.create(file.id, b"d", datatype, h5s.create_simple(shape), properties(shape, *settings))
        new.write(h5s.ALL, h5s.ALL, elements, datatype)
    return read(stored)


def read(stored: io.BytesIO) -> Written:
    """Return the chunk of a closed file, so that lossy filters have been applied."""
    with h5py.File(stored, "r") as file:
        dataset = file["d"]
        dcpl = dataset.id.get_create_plist()
        mask, content = dataset.id.read_direct_chunk((0,) * dataset.ndim)
        return Written(
            filters=tuple(described(dcpl)),
            mask=mask,
            content=content,
            plain=unconverted(dataset.id),
            chunk_shape=dataset.chunks,
        )


def described(dcpl: h5p.PropDCID) -> list[Filter]:
    found = []
    for position in range(dcpl.get_nfilters()):
        number, flags, values, name = dcpl.get_filter(position)
        found.append(Filter(number=number, name=name.decode(), optional=bool(flags & 1), values=tuple(values)))
    return found


def unconverted(dataset: h5d.DatasetID) -> bytes:
    """Return the elements after the filters. The memory type is that of the file, so nothing is converted."""
    datatype = dataset.get_type()
    elements = np.zeros((*dataset.shape, datatype.get_size()), np.uint8)
    dataset.read(h5s.ALL, h5s.ALL, elements, datatype)
    return elements.tobytes()


def read_by_hdf5(values: np.ndarray, dcpl: h5p.PropDCID, content: bytes) -> bytes:
    """Return what libhdf5 reads if `content` is the only chunk of a dataset like `values`."""
    stored = io.BytesIO()
    with h5py.File(stored, "w") as file:
        new = h5d.create(
            file.id, b"d", h5t.py_create(values.dtype, logical=True), h5s.create_simple(values.shape), dcpl
        )
        new.write_direct_chunk((0,) * values.ndim, content)
    return read(stored).plain
