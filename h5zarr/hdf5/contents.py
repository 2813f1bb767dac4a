"""The values of a dataset, for the few datasets whose values must be known: text of any length, references, odd types.

Everything else is referred to, and never read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.pipeline import undo_filters
from h5zarr.hdf5.cache_image import CachedEntry, overlay
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.guard import guarded
from h5zarr.hdf5.model import ChunkedLayout, CompactLayout, ContiguousLayout, Dataset
from h5zarr.io.span import Span
from h5zarr.io.steps import Step


class Contents:
    """Reads values of one file, with what its scan has learned."""

    def __init__(self, context: Context, cached: list[CachedEntry]) -> None:
        self._context = context
        self._cached = cached

    def read_values(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        """Return all values, of the dataset's shape (and behind it that of an array type); see `values.py`."""
        return overlay(guarded(self._read(dataset)), self._cached)

    def _read(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        raw = yield from read_elements(dataset)
        values = yield from self._context.values.read(dataset.datatype, raw, dataset.dataspace.count)
        return values.reshape(dataset.dataspace.shape + values.shape[1:])


def read_elements(dataset: Dataset) -> Step[bytes]:
    """Return the raw elements of a dataset, in row-major order, filters undone and unwritten space filled."""
    count, element_nbytes = dataset.dataspace.count, dataset.datatype.nbytes
    fill = dataset.fill.unwritten or bytes(element_nbytes)
    match dataset.layout:
        case CompactLayout(content=content):
            return content
        case ContiguousLayout(address=None):
            return fill * count
        case ContiguousLayout(address=address, nbytes=nbytes):
            assert address is not None
            (buffer,) = yield [Span(address, nbytes)]
            return bytes(buffer)
        case ChunkedLayout() as layout:
            return (yield from _read_chunks(dataset, layout, fill))
    raise Unsupported(f"values of a {type(dataset.layout).__name__} in this place")


def _read_chunks(dataset: Dataset, layout: ChunkedLayout, fill: bytes) -> Step[bytes]:
    table, chunk_shape, shape = layout.chunks, layout.chunk_shape, dataset.dataspace.shape
    element = np.dtype(f"V{dataset.datatype.nbytes}")
    whole = np.full(shape, np.frombuffer(fill, element, 1)[0], element)
    chunk_nbytes = element.itemsize * int(np.prod(chunk_shape, dtype=np.int64))
    spans = [Span(*row) for row in zip(table.address.tolist(), table.nbytes.tolist(), strict=True)]
    contents = yield spans
    for content, mask, index in zip(contents, table.filter_mask.tolist(), table.index.tolist(), strict=True):
        plain = undo_filters(bytes(content), dataset.filters, mask, chunk_nbytes)
        if len(plain) < chunk_nbytes:
            raise MalformedFile(f"chunk {tuple(index)} has {len(plain)} bytes instead of {chunk_nbytes}")
        block = np.frombuffer(plain, element, chunk_nbytes // element.itemsize).reshape(chunk_shape)
        corner = [number * extent for number, extent in zip(index, chunk_shape, strict=True)]
        place = tuple(slice(start, start + n) for start, n in zip(corner, chunk_shape, strict=True))
        part = tuple(slice(0, max(0, end - start)) for start, end in zip(corner, shape, strict=True))
        whole[place] = block[part]
    return whole.tobytes()
