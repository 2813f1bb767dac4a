"""Read the values of datasets that cannot be referenced: variable-length text, references, unusual types.

The values of all other datasets are referenced and never read.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.filters.pipeline import ChunkedArray
from h5zarr.hdf5.cache_image import CachedEntry, overlay
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.model import ChunkedLayout, CompactLayout, ContiguousLayout, Dataset
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from h5zarr.io.steps import Step, guarded


class Contents:
    """Reads values of one file, using the context of its scan."""

    def __init__(self, context: Context, cached: list[CachedEntry]) -> None:
        self._context = context
        self._cached = cached

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the heaps that the scan has read: they are read again if a value needs them.
        return _restore, (self._context.sizes, self._cached)

    def read_values(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        """Return all values in the dataset's shape, followed by the axes of an array type. See `numpy_values.py`."""
        return overlay(guarded(self._read(dataset)), self._cached)

    def _read(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        raw = yield from read_elements(dataset)
        values = yield from self._context.values.read(dataset.datatype, raw, dataset.dataspace.count)
        return values.reshape(dataset.dataspace.shape + values.shape[1:])


def _restore(sizes: Sizes, cached: list[CachedEntry]) -> Contents:
    return Contents(Context.of(sizes, SharedMessages(sizes)), cached)


def read_elements(dataset: Dataset) -> Step[bytes]:
    """Return the raw elements of a dataset in row-major order, with filters undone and unwritten space filled."""
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
    raise Unsupported(f"values with a {type(dataset.layout).__name__} cannot be read here")


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
