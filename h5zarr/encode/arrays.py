"""Encode variables as Zarr arrays. These are steps: they request the bytes they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.encode.chunks import cut_oversized, is_oversized, plan_chunks, read_chunks
from h5zarr.encode.inlining import Budget
from h5zarr.encode.runs import CHUNK_NBYTES, cut_run, has_tiny_records, read_cut, read_whole
from h5zarr.errors import H5ZarrError, Unsupported
from h5zarr.filters.pipeline import ChunkedArray
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.tree import ConvertedValues, HeldBytes, StoredChunks, StoredRun, Variable
from h5zarr.zarr_model.data_types import encode_dtype, encode_serializer
from h5zarr.zarr_model.fill_values import encode_fill
from h5zarr.zarr_model.grid import RegularGrid, whole_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest
from h5zarr.zarr_model.vlen_text import encode_texts

Unfinished: TypeAlias = Callable[..., ArrayNode]
"""Makes an array from its grid, codecs and manifest. The other fields are already set."""


def encode_array(
    variable: Variable,
    attributes: Mapping[str, Json],
    is_coordinate: bool,
    budget: Budget,
    chunk_nbytes: int = CHUNK_NBYTES,
    joinable: bool = False,
) -> Step[ArrayNode]:
    """Return the array of a variable, with the bytes of the chunks to inline.

    Values without chunks are cut into chunks of about `chunk_nbytes`, unless the array is `joinable`. The chunks and
    codecs of a joinable array do not depend on its length, so that they are the same in similar files.
    """
    array = partial(
        ArrayNode,
        data_type=encode_dtype(variable.dtype),
        fill_value=encode_fill(variable.dtype, variable.fill),
        dimension_names=variable.dimensions,
        attributes=attributes,
    )
    match variable.storage:
        case StoredChunks() as stored:
            return (yield from _encode_stored(array, variable, stored, None, is_coordinate, budget, joinable))
        case StoredRun() as run:
            cut_nbytes = None if joinable else chunk_nbytes
            return (yield from _encode_run(array, variable, run, is_coordinate, budget, cut_nbytes))
        case ConvertedValues() as converted:
            return (yield from _encode_converted(array, variable, converted, budget, joinable))
        case HeldBytes(content=content):
            budget.require(len(content), "values stored in the metadata must be inlined")
            return _one_chunk(array, whole_grid(variable.shape), variable.dtype, content)


def _encode_stored(
    array: Unfinished,
    variable: Variable,
    stored: StoredChunks,
    codec: Json | None,
    is_coordinate: bool,
    budget: Budget,
    joinable: bool,
) -> Step[ArrayNode]:
    """Return an array whose chunks are in files. All of them are inlined if they take few bytes."""
    element_nbytes = stored.element_nbytes or variable.dtype.itemsize
    plan = plan_chunks(stored, variable.dtype, element_nbytes, codec, joinable=joinable)
    count = len(stored.address)
    if plan.odd is not None:
        budget.require(plan.odd_nbytes, "some chunks skipped a filter that others use, and must be inlined")
    whole_nbytes = budget.inlining.coordinate_nbytes if is_coordinate and count > 1 else 0
    if joinable and count and len(plan.codecs) > 1 and is_oversized(variable.shape, stored.chunk_shape):
        whole_nbytes = max(whole_nbytes, budget.inlining.converted_nbytes)
    if whole_nbytes and codec is None:
        whole = yield from _encode_whole(array, variable, stored, budget, whole_nbytes)
        if whole is not None:
            return whole
    total = int(stored.nbytes.sum()) if count else 0
    limit = budget.inlining.coordinate_nbytes if is_coordinate else budget.inlining.array_nbytes
    inline = 0 < total <= limit and isinstance(stored.source, int) and budget.allows(total)
    if not isinstance(stored.source, int) and plan.odd is not None:
        raise Unsupported("some chunks skipped a filter that others use, and the chunks are in several files")
    manifest = yield from read_chunks(plan, inline=inline)
    grid = RegularGrid(variable.shape, stored.chunk_shape)
    found = array(grid=grid, codecs=plan.codecs, manifest=manifest)
    return cut_oversized(found, plan.chunk_nbytes) if joinable else found


def _encode_run(
    array: Unfinished, variable: Variable, run: StoredRun, is_coordinate: bool, budget: Budget, chunk_nbytes: int | None
) -> Step[ArrayNode]:
    """Return an array whose values are contiguous in a file. They are inlined as one chunk if they take few bytes.

    Without `chunk_nbytes`, the values become one chunk, or one chunk per record, even if they could be inlined as one.
    """
    dtype = variable.dtype
    fill = np.zeros((), dtype).tobytes() if variable.fill is None else np.asarray(variable.fill, dtype).tobytes()
    nbytes = dtype.itemsize * prod(run.shape)
    as_coordinate = is_coordinate or has_tiny_records(run, dtype)
    limit = budget.inlining.coordinate_nbytes if as_coordinate else budget.inlining.array_nbytes
    keeps_records = chunk_nbytes is None and run.stride is not None and nbytes > 0 and not is_coordinate
    if not keeps_records and nbytes <= limit and budget.allows(nbytes):
        content = yield from read_whole(run, dtype, fill)
        return _one_chunk(array, whole_grid(variable.shape, run.shape), dtype, content)
    # A chunk may include bytes after the values, unless the variable is longer and would show those bytes.
    wanted = nbytes if chunk_nbytes is None else chunk_nbytes
    cut = cut_run(run, dtype, wanted, budget, may_reach_over=run.shape == variable.shape)
    manifest = yield from read_cut(cut, fill)
    grid = RegularGrid(variable.shape, cut.chunk_shape)
    return array(grid=grid, codecs=(encode_serializer(dtype),), manifest=manifest)


def _encode_whole(
    array: Unfinished, variable: Variable, stored: StoredChunks, budget: Budget, limit: int
) -> Step[ArrayNode | None]:
    """Return an array with all chunks inlined as one; None if it exceeds `limit` or cannot be decoded.

    Coordinates along an unlimited dimension often have one chunk per step, and readers load every one of them. Other
    arrays have a few steps in a chunk with room for many more, and could not be joined as they are stored.
    """
    nbytes = variable.dtype.itemsize * prod(variable.shape)
    is_small = nbytes <= limit and isinstance(stored.source, int)
    if not is_small or not budget.allows(nbytes):
        return None
    contents = yield [Span(*row) for row in zip(stored.address.tolist(), stored.nbytes.tolist(), strict=True)]
    whole = ChunkedArray(
        shape=variable.shape,
        chunk_shape=stored.chunk_shape,
        element_nbytes=variable.dtype.itemsize,
        fill=None if variable.fill is None else variable.fill.tobytes(),
        filters=stored.filters,
    )
    masks = [0] * len(contents) if stored.filter_mask is None else stored.filter_mask.tolist()
    try:
        values = whole.assemble(contents, stored.index, masks)
    except H5ZarrError:  # a package is missing or a chunk is broken: reading it will raise the error
        budget.give_back(nbytes)
        return None
    return _one_chunk(array, whole_grid(variable.shape), variable.dtype, values.tobytes())


def _encode_converted(
    array: Unfinished, variable: Variable, converted: ConvertedValues, budget: Budget, joinable: bool
) -> Step[ArrayNode]:
    """Return an array whose values are converted and inlined. Large and joinable arrays use a codec instead."""
    stored, codec = converted.stored, converted.codec
    if stored is not None and codec is not None:
        small = converted.nbytes <= budget.inlining.converted_nbytes and not joinable
        if not (small and budget.allows(converted.nbytes)):
            return (yield from _encode_stored(array, variable, stored, codec, False, budget, joinable))
    else:
        budget.require(converted.nbytes, "the values must be converted for readers, and inlined")
    values = yield from converted.read()
    if values.dtype != variable.dtype:  # text that turned out not to be UTF-8
        array = partial(array, data_type=encode_dtype(values.dtype), fill_value=encode_fill(values.dtype, None))
    content = _encode_values(values) if values.size else b""
    return _one_chunk(array, whole_grid(variable.shape, values.shape), values.dtype, content)


def _encode_values(values: npt.NDArray[Any]) -> bytes:
    return encode_texts(values) if values.dtype.kind == "O" else values.tobytes()


def _one_chunk(array: Unfinished, grid: RegularGrid, dtype: np.dtype[Any], content: bytes) -> ArrayNode:
    """Return an array with one inlined chunk of plain values; without any chunk if there are no values."""
    rank, none = len(grid.shape), np.empty(0, np.int64)
    inline = {(0,) * rank: content} if content else {}
    return array(
        grid=grid,
        codecs=(encode_serializer(dtype),),
        manifest=Manifest(index=np.empty((0, rank), np.int64), address=none, nbytes=none, inline=inline),
    )
