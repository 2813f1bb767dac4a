"""The `encoding` of variables, as xarray's netCDF engine reports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from h5zarr.engine.elements import Presentation
from h5zarr.filters.table import FILTERS
from h5zarr.tree import StoredFilter, StoredForm
from h5zarr.zarr_model.codecs import find_similar_filter
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode

# What netCDF4-python reports, in its order: later compressors determine `complevel`.
_NETCDF_NAMES = ("zlib", "zstd", "bzip2", "blosc", "szip", "shuffle", "fletcher32")


def netcdf_encoding(
    array: ArrayNode, form: StoredForm | None, presentation: Presentation, source: str, *, is_classic: bool = False
) -> dict[str, Any]:
    """Return the encoding of a variable, except for `_FillValue` and entries that come from attributes.

    If no `form` is recorded, it is derived from the chunks and codecs of the array. Classic files have neither chunks
    nor filters.
    """
    encoding: dict[str, Any] = {"dtype": presentation.in_encoding}
    if not is_classic:
        form = form or derive_form(array)
        is_regular = isinstance(array.grid, RegularGrid)
        chunking = _chunking(form.chunk_shape, array) if is_regular else _uneven_chunking(array)
        encoding |= _filters(form.filters) | chunking
    return encoding | {"source": source, "original_shape": array.shape}


def _chunking(chunk_shape: tuple[int, ...] | None, array: ArrayNode) -> dict[str, Any]:
    if chunk_shape is None:
        return {"contiguous": True, "chunksizes": None}
    chunk_shape += array.shape[len(chunk_shape) :]  # an array type adds axes after those of the chunks
    return {
        "contiguous": False,
        "chunksizes": chunk_shape,
        "preferred_chunks": dict(zip(array.dimension_names, chunk_shape, strict=True)),
    }


def _filters(filters: Sequence[StoredFilter]) -> dict[str, Any]:
    """Return how netCDF4-python describes a pipeline. It leaves out filters that netCDF does not know."""
    found: dict[str, Any] = dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle"), False)
    found |= {"complevel": 0, "fletcher32": False}
    by_number = {one.number: one.values for one in reversed(filters)}
    kinds = ((FILTERS.get(number), values) for number, values in by_number.items())
    described = [kind.netcdf_encoding(values) for kind, values in kinds if kind is not None]
    for name in _NETCDF_NAMES:
        for one in described:
            found |= one if name in one else {}
    return found


def _uneven_chunking(array: ArrayNode) -> dict[str, Any]:
    """Return the chunks that xarray should prefer for an array whose chunks have different lengths.

    There is no `chunksizes`: netCDF cannot write such chunks.
    """
    lengths = {}
    for name, axis in zip(array.dimension_names, array.grid.axes, strict=True):
        starts, stops = axis.bounds(np.arange(axis.count))
        lengths[name] = tuple((stops - starts).tolist())
    return {"contiguous": False, "chunksizes": None, "preferred_chunks": lengths}


def derive_form(array: ArrayNode) -> StoredForm:
    """Return how an array is probably stored in its file, judging by its chunks and codecs.

    A single plain chunk with the whole array counts as contiguous.
    """
    filters = tuple(filter(None, map(find_similar_filter, array.codecs)))
    is_plain = not filters and len(array.codecs) == 1
    chunk_shape = array.grid.largest_shape
    is_whole = all(chunk >= extent for chunk, extent in zip(chunk_shape, array.shape, strict=True))
    return StoredForm(chunk_shape=None if is_whole and is_plain else chunk_shape, filters=filters)
