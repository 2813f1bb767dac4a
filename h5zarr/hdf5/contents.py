"""The values of a dataset, for the few datasets whose values must be known: text of any length, references, odd types.

Everything else is referred to, and never read.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.filters.assembly import ChunkedArray
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
    match dataset.layout:
        case CompactLayout(content=content):
            return content
        case ContiguousLayout(address=None):
            return (dataset.fill.unwritten or bytes(dataset.datatype.nbytes)) * dataset.dataspace.count
        case ContiguousLayout(address=address, nbytes=nbytes):
            assert address is not None
            (buffer,) = yield [Span(address, nbytes)]
            return bytes(buffer)
        case ChunkedLayout() as layout:
            return (yield from _read_chunks(dataset, layout))
    raise Unsupported(f"values of a {type(dataset.layout).__name__} in this place")


def _read_chunks(dataset: Dataset, layout: ChunkedLayout) -> Step[bytes]:
    table = layout.chunks
    contents = yield [Span(*row) for row in zip(table.address.tolist(), table.nbytes.tolist(), strict=True)]
    whole = ChunkedArray(
        shape=dataset.dataspace.shape,
        chunk_shape=layout.chunk_shape,
        element_nbytes=dataset.datatype.nbytes,
        fill=dataset.fill.unwritten,
        filters=dataset.filters,
    )
    return whole.assemble(contents, table.index, table.filter_mask.tolist()).tobytes()
