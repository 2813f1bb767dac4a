"""Chunks of arrays that follow each other along the first axis: looked up where they are, never all in memory.

Many files are joined in steps: a cube of cubes. What a cube stores is read record by record, in the order in which it
is written again, so the memory that this takes does not depend on the number of chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import ChunkLocations, Manifest, RecordTotals

Sources = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """The chunks of an array from number `first` along its first axis on, before number `end`.

    `grid` is the shape of its grid. In the result, the first of them has number `position`, and file `n` the number
    `sources[n]`; with an int, `n + sources`.
    """

    chunks: ChunkLocations
    grid: tuple[int, ...]
    first: int
    end: int
    position: int = 0
    sources: int | Sources = 0

    @property
    def stride(self) -> int:
        """The number of chunks of the grid at one position along the first axis."""
        return prod(self.grid[1:])

    @property
    def is_whole(self) -> bool:
        return self.first == 0 and self.end == self.grid[0]

    def cut(self, first: int, end: int) -> Window:
        """Return the part from position `first` to `end` of the result, which begins there."""
        return replace(self, first=self.first + first - self.position, end=self.first + end - self.position, position=0)

    def records(self) -> range:
        """The numbers of the records that the window touches."""
        size = self.chunks.record_size
        assert size is not None
        return range(self.first * self.stride // size, -(-self.end * self.stride // size))

    def is_inside(self, record: int) -> bool:
        """Return whether a whole record is in the window."""
        size = self.chunks.record_size
        assert size is not None
        last = min((record + 1) * size, prod(self.grid))
        return self.first * self.stride <= record * size and last <= self.end * self.stride

    def totals(self) -> RecordTotals:
        """The number of chunks, and of their bytes. Only records that are partly in the window are read."""
        known = self.chunks.totals
        if known is None:
            return sum(map(_totals_of, self.slabs()), RecordTotals())
        touched = [record for record in self.records() if record in known]
        return sum(
            (known[record] if self.is_inside(record) else _totals_of(self.read(record)) for record in touched),
            RecordTotals(),
        )

    def inline(self) -> Mapping[tuple[int, ...], bytes]:
        """Return the inlined chunks, with their positions in the result. Only records that have some are read."""
        known = self.chunks.totals
        if known is None:
            slabs = list(self.slabs())
        else:
            slabs = [self.read(record) for record in self.records() if record in known and known[record].inline_count]
        return {key: content for slab in slabs for key, content in slab.inline.items()}

    def read(self, record: int) -> Manifest:
        """Return the chunks of a record that are in the window, with their positions in the result."""
        return self._moved(self.chunks.read_records([record])[0])

    def slabs(self) -> Iterator[Manifest]:
        """Yield the chunks in row-major order, with their positions in the result."""
        if self.chunks.record_size is None:
            yield self._moved(self.chunks)
            return
        known = self.chunks.totals
        for record in self.records():
            if known is None or record in known:
                yield self.read(record)

    def _moved(self, found: ChunkLocations) -> Manifest:
        index = found.index
        rows = slice(*np.searchsorted(index[:, 0], [self.first, self.end]).tolist())
        moved = index[rows].copy()
        moved[:, 0] += self.position - self.first
        source: int | Sources = found.source if isinstance(found.source, int) else found.source[rows]
        if isinstance(self.sources, int):
            source = source + self.sources if isinstance(source, int) else source + np.int32(self.sources)
        elif len(moved):
            mapped = self.sources[source]
            if np.any(mapped < 0):
                raise MalformedFile("a chunk is in a file that is not among the sources")
            source = mapped if isinstance(mapped, np.ndarray) else int(mapped)
        inline = {
            (key[0] + self.position - self.first, *key[1:]): content
            for key, content in found.inline.items()
            if self.first <= key[0] < self.end
        }
        return Manifest(
            index=moved, address=found.address[rows], nbytes=found.nbytes[rows], source=source, inline=inline
        )


def _totals_of(found: ChunkLocations) -> RecordTotals:
    return RecordTotals(found.count, found.referenced_nbytes, found.inline_count)


class JoinedManifest:
    """`ChunkLocations` of windows that follow each other along the first axis."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = tuple(sorted(windows, key=lambda one: one.position))

    @cached_property
    def _totals(self) -> RecordTotals:
        return sum((window.totals() for window in self.windows), RecordTotals())

    @property
    def count(self) -> int:
        return self._totals.count

    @property
    def referenced_nbytes(self) -> int:
        return self._totals.nbytes

    @cached_property
    def inline(self) -> Mapping[tuple[int, ...], bytes]:
        if not self.inline_count:
            return {}
        return {key: content for window in self.windows for key, content in window.inline().items()}

    @property
    def inline_count(self) -> int:
        return self._totals.inline_count

    @property
    def state(self) -> None:
        return None

    @property
    def record_size(self) -> int | None:
        return None

    @property
    def totals(self) -> None:
        return None

    def read_records(self, numbers: Sequence[int]) -> Sequence[ChunkLocations]:
        raise TypeError("this manifest has no records")

    def slabs(self) -> Iterator[Manifest]:
        """Yield all chunks in row-major order."""
        for window in self.windows:
            yield from window.slabs()

    @cached_property
    def _whole(self) -> Manifest:
        """All chunks in memory, for users that need them at once."""
        found = list(self.slabs())
        rank = len(self.windows[0].grid)
        none = np.empty(0, np.int64)
        sources = [np.broadcast_to(np.asarray(one.source, np.int32), one.count) for one in found]
        return Manifest(
            index=np.concatenate([none.reshape(0, rank), *[one.index for one in found]]),
            address=np.concatenate([none, *[one.address for one in found]]),
            nbytes=np.concatenate([none, *[one.nbytes for one in found]]),
            source=np.concatenate([np.empty(0, np.int32), *sources]),
            inline={key: content for one in found for key, content in one.inline.items()},
        )

    @property
    def index(self) -> npt.NDArray[np.int64]:
        return self._whole.index

    @property
    def address(self) -> npt.NDArray[np.int64]:
        return self._whole.address

    @property
    def nbytes(self) -> npt.NDArray[np.int64]:
        return self._whole.nbytes

    @property
    def source(self) -> int | Sources:
        return self._whole.source

    def window(self, first: int, end: int) -> JoinedManifest:
        """Return the chunks from number `first` along the first axis on, before `end`, which then begin at 0."""
        kept = []
        for one in self.windows:
            begin, stop = max(first, one.position), min(end, one.position + one.end - one.first)
            if begin < stop:
                kept.append(replace(one.cut(begin, stop), position=begin - first))
        return JoinedManifest(kept) if kept else JoinedManifest([replace(self.windows[0], end=self.windows[0].first)])

    def placed(self, position: int, first_url: int) -> list[Window]:
        """Return the windows `position` chunks further along the first axis, with other numbers of files."""
        moved = []
        for one in self.windows:
            sources = one.sources + first_url if isinstance(one.sources, int) else one.sources + np.int32(first_url)
            moved.append(replace(one, position=one.position + position, sources=sources))
        return moved

    def renumbered(self, table: Sources) -> JoinedManifest:
        """Return the same chunks with new numbers of files: `table[n]` for file `n`, -1 for none.

        Raises MalformedFile, when the chunks are read, if one is in a file without a number.
        """
        return JoinedManifest([replace(one, sources=_compose(one.sources, table)) for one in self.windows])


def _compose(sources: int | Sources, table: Sources) -> int | Sources:
    if not isinstance(sources, int):
        return np.where(sources >= 0, table[np.maximum(sources, 0)], np.int32(-1))
    shifted = table[sources:]
    first = int(shifted[0]) if len(shifted) else 0
    return first if np.array_equal(shifted, np.arange(first, first + len(shifted))) else shifted


def is_late(chunks: ChunkLocations) -> bool:
    """Return whether chunks are read in records, of which it is known what they have."""
    if isinstance(chunks, JoinedManifest):
        return True
    return chunks.record_size is not None and chunks.totals is not None


def as_joined(chunks: ChunkLocations, grid: tuple[int, ...]) -> JoinedManifest:
    """Return chunks as windows."""
    if isinstance(chunks, JoinedManifest):
        return chunks
    return JoinedManifest([Window(chunks=chunks, grid=grid, first=0, end=grid[0])])
