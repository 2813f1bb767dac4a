"""Records of chunks that are not in memory: read from other cubes when they are written, or copied as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.containers.late_manifest import KnownRecords, LateManifest
from h5zarr.containers.records import Rows, identify, number_chunks
from h5zarr.errors import MalformedFile
from h5zarr.io.ranges import Column
from h5zarr.zarr_model.hierarchy import ChunkLocations, RecordTotals
from h5zarr.zarr_model.joined_manifest import JoinedManifest, Window


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record that is stored in the same form: as number `number` of a container."""

    known: KnownRecords
    number: int

    @property
    def totals(self) -> RecordTotals:
        return self.known.totals[self.number]

    def load(self) -> bytes:
        """Return the record as it is stored."""
        assert self.known.load_stored is not None
        return self.known.load_stored(self.number)


@dataclass(frozen=True, slots=True, eq=False)
class StreamedRecords:
    """The records of `size` chunks each of a grid, in ascending order.

    Those that are stored in the same form are not read, where the container can use them: `copies_from` tells.
    """

    manifest: JoinedManifest
    grid: tuple[int, ...]
    size: int
    copies_from: Callable[[KnownRecords], bool]

    @property
    def most(self) -> int:
        """The largest possible number of records."""
        return -(-prod(self.grid) // self.size)

    def identify(self) -> Iterator[bytes]:
        """Yield what the records depend on: the states of the containers that have them, and parts of these."""
        for window in self.manifest.windows:
            known = window.chunks.known if isinstance(window.chunks, LateManifest) else None
            place = (window.first, window.end, window.position, window.grid)
            yield repr((None if known is None else known.token, place)).encode()
            if known is None:
                yield from identify(window.chunks)

    def __iter__(self) -> Iterator[tuple[int, Rows | StoredRecord]]:
        """Yield the number of each record that has chunks, and its content."""
        pending = _Pending(self.grid, self.size)
        for window in self.manifest.windows:
            known = self._find_stored(window)
            if known is None:
                for slab in window.slabs():
                    yield from pending.add(slab)
                continue
            shift = (window.position - window.first) * window.stride // self.size
            for record in window.records():
                totals = known.totals.get(record)
                if totals is None or totals.is_empty:
                    continue
                if self._is_same(window, record, record + shift):
                    yield from pending.finish()
                    yield record + shift, StoredRecord(known, record)
                else:
                    yield from pending.add(window.read(record))
        yield from pending.finish()

    def _find_stored(self, window: Window) -> KnownRecords | None:
        """Return the records of a window if they have the same size, and begin where records begin here."""
        chunks, moved = window.chunks, (window.position - window.first) * window.stride
        if not isinstance(chunks, LateManifest) or chunks.record_size != self.size or window.grid[1:] != self.grid[1:]:
            return None
        known = chunks.known
        return known if known is not None and moved % self.size == 0 and self.copies_from(known) else None

    def _is_same(self, window: Window, record: int, number: int) -> bool:
        """Return whether a record has the same rows here as where it is stored."""
        stored, rows = (prod(grid) - at * self.size for grid, at in ((window.grid, record), (self.grid, number)))
        return window.is_inside(record) and min(self.size, stored) == min(self.size, rows)


class _Pending:
    """Collects the chunks of a record until the next one begins."""

    def __init__(self, grid: tuple[int, ...], size: int) -> None:
        self._grid, self._size = grid, size
        self._record, self._last = 0, -1
        self._parts: list[tuple[Column, Column, Column, npt.NDArray[np.int32]]] = []
        self._inline: dict[int, bytes] = {}

    def add(self, slab: ChunkLocations) -> Iterator[tuple[int, Rows]]:
        """Add chunks, which follow those before. Yield the records that are complete."""
        numbers = number_chunks(slab.index, self._grid)
        keys = np.array(list(slab.inline), np.int64).reshape(len(slab.inline), len(self._grid))
        inline = dict(zip(number_chunks(keys, self._grid).tolist(), slab.inline.values(), strict=True))
        every = np.sort(np.concatenate([numbers, np.array(list(inline), np.int64)]))
        if not len(every):
            return
        if every[0] <= self._last or (np.diff(every) <= 0).any() or (np.diff(numbers) <= 0).any():
            raise MalformedFile("the chunks of a cube are not in order")
        self._last = int(every[-1])
        sources = np.broadcast_to(np.asarray(slab.source, np.int32), len(numbers))
        for record in np.unique(every // self._size).tolist():
            if record != self._record:
                yield from self.finish()
                self._record = record
            first = record * self._size
            rows = slice(*np.searchsorted(numbers, [first, first + self._size]).tolist())
            self._parts.append((numbers[rows] - first, slab.address[rows], slab.nbytes[rows], sources[rows]))
            self._inline |= {at - first: one for at, one in inline.items() if at // self._size == record}

    def finish(self) -> Iterator[tuple[int, Rows]]:
        """Yield the record that was begun, if any."""
        if self._parts:
            place, address, nbytes, source = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            count = min(self._size, prod(self._grid) - self._record * self._size)
            columns: dict[str, Any] = {"place": place, "address": address, "nbytes": nbytes, "source": source}
            yield self._record, Rows(count=count, **columns, inline=self._inline)
        self._parts, self._inline = [], {}
