"""Choose one codec pipeline for all chunks of an array, and re-encode the chunks that do not fit it.

HDF5 records for each chunk which filters were skipped, for instance for incompressible chunks or partial edge chunks.
Zarr has one pipeline for all chunks. If every chunk skipped the same filters, the pipeline leaves them out. If chunks
differ, the most common pipeline is chosen. The odd chunks are decoded, encoded with it, and inlined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.pipeline import redo_filters, undo_filters
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.tree import StoredChunks, StoredFilter
from h5zarr.zarr_model.codecs import encode_filters
from h5zarr.zarr_model.data_types import encode_serializer
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkPlan:
    """How the chunks of an array are encoded. `odd` marks the chunks that skipped other filters than most."""

    stored: StoredChunks
    codecs: tuple[Json, ...]
    filters: tuple[StoredFilter, ...]
    odd: Rows | None
    chunk_nbytes: int

    @property
    def odd_nbytes(self) -> int:
        """Upper limit for the inlined size of the odd chunks."""
        return 0 if self.odd is None else int(np.count_nonzero(self.odd)) * self.chunk_nbytes


def plan_chunks(
    stored: StoredChunks, dtype: np.dtype[Any], element_nbytes: int, codec: Json | None, *, joinable: bool = False
) -> ChunkPlan:
    """Return the codec pipeline: the serializer of the type, `codec` if there is one, then the filters.

    `element_nbytes` is the size of an element in the file. Raises Unsupported if a filter has no codec.
    """
    mask, odd = _common_mask(stored)
    # If no chunk is stored, the filters do not matter, unless the array is joined with chunks of other files.
    written = stored.filters if joinable or len(stored.address) else ()
    filters = tuple(one for bit, one in enumerate(written) if not mask >> bit & 1)
    chunk_nbytes = element_nbytes * prod(stored.chunk_shape)
    first = [encode_serializer(dtype)] + ([codec] if codec is not None else [])
    try:
        behind = _encode_filters(filters, chunk_nbytes)
    except Unsupported:
        if len(stored.address):
            raise
        filters, behind = (), ()
    return ChunkPlan(stored=stored, codecs=(*first, *behind), filters=filters, odd=odd, chunk_nbytes=chunk_nbytes)


@lru_cache(maxsize=256)
def _encode_filters(filters: tuple[StoredFilter, ...], nbytes: int) -> tuple[Json, ...]:
    """Return the codecs of a pipeline. Cached, because most variables of a file have the same one."""
    return encode_filters(filters, nbytes=nbytes)


def _common_mask(stored: StoredChunks) -> tuple[int, Rows | None]:
    """Return the most common filter mask, and the rows that have another one."""
    if stored.filter_mask is None or not stored.filters or not stored.filter_mask.any():
        return 0, None
    masks = stored.filter_mask & np.uint32((1 << len(stored.filters)) - 1)
    kinds, counts = np.unique(masks, return_counts=True)
    common = kinds[np.argmax(counts)]
    return int(common), masks != common if len(kinds) > 1 else None


def read_chunks(plan: ChunkPlan, *, inline: bool) -> Step[Manifest]:
    """Return the manifest. The odd chunks are inlined; with `inline`, all chunks are."""
    stored, odd = plan.stored, plan.odd
    if odd is None and not inline:
        return Manifest(index=stored.index, address=stored.address, nbytes=stored.nbytes, source=stored.source)
    rows = slice(None) if odd is None or inline else odd
    buffers = yield [
        Span(*one) for one in zip(stored.address[rows].tolist(), stored.nbytes[rows].tolist(), strict=True)
    ]
    contents = [bytes(buffer) for buffer in buffers]
    if odd is not None:
        numbers = np.arange(len(stored.address))[rows].tolist()
        contents = [
            _encode_again(plan, row, content) if odd[row] else content
            for row, content in zip(numbers, contents, strict=True)
        ]
    held = dict(zip(map(tuple, stored.index[rows].tolist()), contents, strict=True))
    return _without(stored, rows, held)


def _encode_again(plan: ChunkPlan, row: int, content: bytes) -> bytes:
    """Return an odd chunk, encoded like most chunks."""
    stored = plan.stored
    assert stored.filter_mask is not None
    plain = undo_filters(content, stored.filters, int(stored.filter_mask[row]), plan.chunk_nbytes)
    if len(plain) != plan.chunk_nbytes:
        raise MalformedFile(f"chunk {tuple(stored.index[row])} has {len(plain)} bytes instead of {plan.chunk_nbytes}")
    return redo_filters(plain, plan.filters)


def _without(stored: StoredChunks, taken: Rows | slice, held: Mapping[tuple[int, ...], bytes]) -> Manifest:
    """Return the manifest with the rows `taken` inlined as `held`. A slice means that all rows are taken."""
    rest = slice(0) if isinstance(taken, slice) else ~taken
    source = stored.source if isinstance(stored.source, int) else stored.source[rest]
    return Manifest(
        index=stored.index[rest],
        address=stored.address[rest],
        nbytes=stored.nbytes[rest],
        source=source,
        inline=held,
    )


def is_oversized(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> bool:
    """Return whether the first axis is shorter than its only chunk.

    HDF5 chooses large chunks for unlimited dimensions: a variable of 3 steps may have a chunk of 512. Arrays with such
    chunks cannot be joined.
    """
    return bool(shape) and 0 < shape[0] < chunk_shape[0]


def cut_oversized(array: ArrayNode, chunk_nbytes: int) -> ArrayNode:
    """Return an array whose only chunk along the first axis is cut to the length of the axis, if there are no filters.

    Values without filters are contiguous, so the array can use the first part of the chunk.
    """
    is_plain = len(array.codecs) == 1 and array.codecs[0]["name"] == "bytes"
    if not is_plain or not is_oversized(array.shape, array.chunk_shape):
        return array
    nbytes = chunk_nbytes // array.chunk_shape[0] * array.shape[0]
    chunks = array.manifest
    kept = Manifest(
        index=chunks.index,
        address=chunks.address,
        nbytes=np.minimum(chunks.nbytes, nbytes),
        source=chunks.source,
        inline={index: content[:nbytes] for index, content in chunks.inline.items()},
    )
    return replace(array, grid=RegularGrid(array.shape, (array.shape[0], *array.chunk_shape[1:])), manifest=kept)
