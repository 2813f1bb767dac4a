"""Variables as Zarr arrays. What must be read for that is asked for, as any step does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.encode.chunks import plan_chunks, read_chunks
from h5zarr.encode.data_types import encode_dtype, encode_fill, encode_serializer
from h5zarr.encode.options import Budget
from h5zarr.encode.text import encode_texts
from h5zarr.errors import H5ZarrError, Unsupported
from h5zarr.filters.assembly import ChunkedArray
from h5zarr.hierarchy import ArrayNode, Json, Manifest
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.tree import ConvertedValues, HeldBytes, StoredChunks, Variable


def encode_array(
    variable: Variable, attributes: Mapping[str, Json], is_coordinate: bool, budget: Budget
) -> Step[ArrayNode]:
    """Return the array of a variable, with the bytes of those chunks that are to be inlined."""
    array = ArrayNode(
        shape=variable.shape,
        data_type=encode_dtype(variable.dtype),
        chunk_shape=tuple(max(1, extent) for extent in variable.shape),
        codecs=(encode_serializer(variable.dtype),),
        fill_value=encode_fill(variable.dtype, variable.fill),
        dimension_names=variable.dimensions,
        attributes=attributes,
        manifest=_inline_manifest(len(variable.shape), None),
    )
    match variable.storage:
        case StoredChunks() as stored:
            return (yield from _encode_stored(array, variable, stored, None, is_coordinate, budget))
        case ConvertedValues() as converted:
            return (yield from _encode_converted(array, variable, converted, budget))
        case HeldBytes(content=content):
            budget.require(len(content), "values that stand among the metadata must be inlined")
            return replace(array, manifest=_inline_manifest(len(variable.shape), content if content else None))


def _encode_stored(
    array: ArrayNode, variable: Variable, stored: StoredChunks, codec: Json | None, is_coordinate: bool, budget: Budget
) -> Step[ArrayNode]:
    """Return an array whose chunks are in files; all of them are inlined where they take few bytes."""
    element_nbytes = stored.element_nbytes or variable.dtype.itemsize
    plan = plan_chunks(stored, variable.dtype, element_nbytes, codec)
    count = len(stored.address)
    if plan.odd.any():
        budget.require(plan.odd_nbytes, "some chunks skipped a filter that others have not, and must be inlined")
    if is_coordinate and count > 1 and codec is None:
        whole = yield from _encode_whole(array, variable, stored, budget)
        if whole is not None:
            return whole
    total = int(stored.nbytes.sum()) if count else 0
    limit = budget.inlining.coordinate_nbytes if is_coordinate else budget.inlining.array_nbytes
    inline = np.full(count, 0 < total <= limit and isinstance(stored.source, int) and budget.allows(total))
    if not isinstance(stored.source, int) and plan.odd.any():
        raise Unsupported("some chunks skipped a filter that others have not, and they lie in several files")
    manifest = yield from read_chunks(plan, inline)
    return replace(array, chunk_shape=stored.chunk_shape, codecs=plan.codecs, manifest=manifest)


def _encode_whole(array: ArrayNode, variable: Variable, stored: StoredChunks, budget: Budget) -> Step[ArrayNode | None]:
    """Return an array whose chunks are put together to one, and inlined; None where it is too large or not readable.

    Coordinates along an unlimited dimension often have a chunk for each step, and readers load every one of them.
    """
    nbytes = variable.dtype.itemsize * prod(variable.shape)
    is_small = nbytes <= budget.inlining.coordinate_nbytes and isinstance(stored.source, int)
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
    except H5ZarrError:  # for want of a package, or because a chunk is broken: whoever reads it will be told
        return None
    return replace(array, manifest=_inline_manifest(values.ndim, values.tobytes()))


def _encode_converted(
    array: ArrayNode, variable: Variable, converted: ConvertedValues, budget: Budget
) -> Step[ArrayNode]:
    """Return an array whose values are inlined as readers should see them; large ones are left to a codec."""
    if converted.stored is not None and converted.codec is not None:
        small = converted.nbytes <= budget.inlining.converted_nbytes
        if not (small and budget.allows(converted.nbytes)):
            return (yield from _encode_stored(array, variable, converted.stored, converted.codec, False, budget))
    else:
        budget.require(converted.nbytes, "the values are not in the file as readers see them, and must be inlined")
    values = yield from converted.read()
    if values.dtype != variable.dtype:  # text that turned out not to be UTF-8
        serializer = (encode_serializer(values.dtype),)
        fill = encode_fill(values.dtype, None)
        array = replace(array, data_type=encode_dtype(values.dtype), codecs=serializer, fill_value=fill)
    return replace(
        array,
        chunk_shape=tuple(max(1, extent) for extent in values.shape),
        manifest=_inline_manifest(values.ndim, _encode_values(values) if values.size else None),
    )


def _encode_values(values: npt.NDArray[Any]) -> bytes:
    return encode_texts(values) if values.dtype.kind == "O" else values.tobytes()


def _inline_manifest(rank: int, content: bytes | None) -> Manifest:
    """Return the manifest of an array that is one inlined chunk, or none where it has no content."""
    none = np.empty(0, np.int64)
    inline = {} if content is None else {(0,) * rank: content}
    return Manifest(index=np.empty((0, rank), np.int64), address=none, nbytes=none, inline=inline)
