"""Chunks: one pipeline of codecs for an array, and what to do with chunks that went another way.

HDF5 notes for each chunk which filters were skipped: incompressible chunks, unfiltered chunks at the edge. Zarr has one
pipeline for all. Where every chunk skipped the same filters, the pipeline is without them; where they differ, the most
common way is the pipeline, and the odd chunks are decoded, encoded again and inlined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.encode.data_types import encode_serializer
from h5zarr.encode.filters import encode_filters
from h5zarr.errors import MalformedFile
from h5zarr.filters.pipeline import undo_filters
from h5zarr.filters.redo import redo_filters
from h5zarr.hierarchy import Json, Manifest
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.tree import StoredChunks, StoredFilter

Rows = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkPlan:
    """How the chunks of an array are told: `codecs` for all, and the rows that went another way."""

    stored: StoredChunks
    codecs: tuple[Json, ...]
    filters: tuple[StoredFilter, ...]
    odd: Rows
    chunk_nbytes: int

    @property
    def odd_nbytes(self) -> int:
        """What the odd chunks take when they are inlined, at most."""
        return int(np.count_nonzero(self.odd)) * self.chunk_nbytes


def plan_chunks(stored: StoredChunks, dtype: np.dtype[Any], element_nbytes: int, codec: Json | None) -> ChunkPlan:
    """Return the pipeline of codecs: the type's, `codec` where there is one, then the filters.

    `element_nbytes` is the size of an element in the file. Raises Unsupported where a filter has no codec.
    """
    mask, odd = _common_mask(stored)
    filters = tuple(one for bit, one in enumerate(stored.filters) if not mask >> bit & 1)
    chunk_nbytes = element_nbytes * prod(stored.chunk_shape)
    first = [encode_serializer(dtype)] + ([codec] if codec is not None else [])
    behind = _encode_filters(filters, element_nbytes, chunk_nbytes)
    return ChunkPlan(stored=stored, codecs=(*first, *behind), filters=filters, odd=odd, chunk_nbytes=chunk_nbytes)


@lru_cache(maxsize=256)
def _encode_filters(filters: tuple[StoredFilter, ...], element_nbytes: int, nbytes: int) -> tuple[Json, ...]:
    """Return the codecs of a pipeline. Most variables of a file share theirs."""
    return encode_filters(filters, element_nbytes=element_nbytes, nbytes=nbytes)


def _common_mask(stored: StoredChunks) -> tuple[int, Rows]:
    """Return the mask that most chunks have, and the rows that have another one."""
    count = len(stored.address)
    if stored.filter_mask is None or not stored.filters or not stored.filter_mask.any():
        return 0, np.zeros(count, bool)
    masks = stored.filter_mask & np.uint32((1 << len(stored.filters)) - 1)
    kinds, counts = np.unique(masks, return_counts=True)
    common = kinds[np.argmax(counts)]
    return int(common), masks != common


def read_chunks(plan: ChunkPlan, inline: Rows) -> Step[Manifest]:
    """Return where the chunks are, those in `inline` and the odd ones with their bytes."""
    stored = plan.stored
    taken = inline | plan.odd
    if not taken.any():
        return Manifest(index=stored.index, address=stored.address, nbytes=stored.nbytes, source=stored.source)
    rows = np.flatnonzero(taken)
    spans = [Span(int(stored.address[row]), int(stored.nbytes[row])) for row in rows]
    buffers = yield spans
    held: dict[tuple[int, ...], bytes] = {}
    for row, buffer in zip(rows, buffers, strict=True):
        index = tuple(stored.index[row].tolist())
        held[index] = _encode_again(plan, int(row), bytes(buffer)) if plan.odd[row] else bytes(buffer)
    return _without(stored, taken, held)


def _encode_again(plan: ChunkPlan, row: int, content: bytes) -> bytes:
    """Return a chunk that skipped other filters than most, as if it had not."""
    stored = plan.stored
    assert stored.filter_mask is not None
    plain = undo_filters(content, stored.filters, int(stored.filter_mask[row]), plan.chunk_nbytes)
    if len(plain) != plan.chunk_nbytes:
        raise MalformedFile(f"chunk {tuple(stored.index[row])} has {len(plain)} bytes instead of {plan.chunk_nbytes}")
    return redo_filters(plain, plan.filters)


def _without(stored: StoredChunks, taken: Rows, held: Mapping[tuple[int, ...], bytes]) -> Manifest:
    rest = ~taken
    source = stored.source if isinstance(stored.source, int) else stored.source[rest]
    return Manifest(
        index=stored.index[rest],
        address=stored.address[rest],
        nbytes=stored.nbytes[rest],
        source=source,
        inline=held,
    )
