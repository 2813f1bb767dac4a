"""Read arrays by selection: threads fetch all required chunks together, and decode them into the result."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, SourceError, Unsupported
from h5zarr.io.location import Location
from h5zarr.io.ranges import RangeReader
from h5zarr.limits import LimitReached
from h5zarr.read.chunk_rows import ChunkRows, ChunkTable
from h5zarr.read.decoding import Decoder, find_decoder
from h5zarr.read.placing import Placing
from h5zarr.read.reading_ahead import Range, ReadingAhead, plain_ranges
from h5zarr.read.sources import Sources, in_each, sized
from h5zarr.zarr_model.chunk_selection import AxisSelection, Column, Key
from h5zarr.zarr_model.fill_values import decode_fill
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest

_MOST_TABLES = 32  # of arrays that were sent to this process
_NONE = Manifest(index=np.empty((0, 0), np.int64), address=np.empty(0, np.int64), nbytes=np.empty(0, np.int64))


class ArrayValues:
    """An array of a hierarchy. It can be pickled, and read by many threads."""

    def __init__(self, path: str, node: ArrayNode, decoder: Decoder, sources: Sources) -> None:
        self.path = path
        self._table: ChunkTable | ChunkRows = ChunkTable(node.grid, node.manifest)
        self._sources = sources
        # Reading does not need the manifest's columns or the attributes, and pickles would contain them.
        self._describe(replace(node, manifest=_NONE, attributes={}), decoder)

    def _describe(self, node: ArrayNode, decoder: Decoder) -> None:
        self._node = node
        self._decoder = decoder
        try:
            self._fill = decode_fill(node.fill_value, decoder.dtype)
        except MalformedFile as error:
            raise error.naming(self.path) from None

    def _rows(self, wanted: Column) -> ChunkRows:
        """Return rows of the manifest that include the wanted chunks. Unless pickled, they are built when needed."""
        return self._table if isinstance(self._table, ChunkRows) else self._table.rows(wanted)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._decoder.dtype

    def __getstate__(self) -> tuple[Any, ...]:
        table = self._table
        if isinstance(table, ChunkTable) and table.state is None:
            table = table.everything()
        return self.path, table, self._sources, self._node

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.path, table, self._sources, node = state
        self._table = _shared(self.path, table)
        decoder = find_decoder(node, self._sources.access.limits)
        assert decoder is not None
        self._describe(node, decoder)

    def __repr__(self) -> str:
        return f"<ArrayValues {self.path} {self.shape} {self.dtype}>"

    def __getitem__(self, key: tuple[Key, ...]) -> npt.NDArray[Any]:
        """Return the values that `key` selects. It has an entry for each axis."""
        if self._one_inline_chunk is not None and not any(isinstance(one, np.ndarray) for one in key):
            return self._take(self._one_inline_chunk, key)
        axes = self._node.grid.select(key)
        ranges = None if self._ahead is None else plain_ranges(key, self.shape)
        values = self._read(axes) if self._ahead is None or ranges is None else self._ahead.get(ranges)
        kept = tuple(axis.count for axis in axes if not axis.is_dropped)
        return values.reshape(kept)

    @cached_property
    def _ahead(self) -> ReadingAhead | None:
        """Reads ahead of loops; None if that is switched off, or the array has one chunk."""
        most, grid = self._sources.access.network.prefetch_nbytes, self._node.grid
        if not most or grid.chunk_count <= 1:
            return None
        # Not a reference to itself: what was read ahead should be freed together with the array.
        return ReadingAhead(partial(_read_ranges, weakref.ref(self)), grid, self.dtype.itemsize, most)

    @cached_property
    def _one_inline_chunk(self) -> bytes | None:
        """The only chunk of the array, if it is inlined. Most coordinates are, which readers load first."""
        if self._node.grid.chunk_count != 1 or self.shape != self._decoder.stored_shape:
            return None
        return next(iter(self._rows(np.zeros(1, np.int64)).inline), None)

    def _take(self, content: bytes, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        try:
            whole = self._decoder.decode(content, self.shape)
        except (MalformedFile, Unsupported, LimitReached) as error:
            raise error.naming(self.path) from None
        return np.array(whole[(*key, ...)])

    def _read(self, axes: Sequence[AxisSelection]) -> npt.NDArray[Any]:
        shape = tuple(axis.count for axis in axes)
        wanted = self._node.grid.touched(axes)
        found = self._rows(wanted)
        rows, inline = found.find(wanted), found.find_inline(wanted)
        values = np.empty(shape, self.dtype)
        if bool(((rows < 0) & (inline < 0)).any()):
            values[...] = self._fill
        placing = Placing(values, axes, self._decoder, self._node.grid)
        try:
            for position in np.flatnonzero(inline >= 0).tolist():
                placing.place([position], [memoryview(found.inline[int(inline[position])])])
            self._fetch(found, wanted, rows, placing)
        except (MalformedFile, Unsupported, LimitReached) as error:
            raise error.naming(self._name(found)) from None
        return values

    def _describe_part(self, numbers: Column) -> str:
        """Return the part of the array that has these chunks."""
        grid = self._node.grid
        index = np.unravel_index(numbers, grid.grid_shape)
        part = grid.part([int(one.min()) for one in index], [int(one.max()) + 1 for one in index])
        return f"it has {self.path}[{', '.join(f'{one.start}:{one.stop}' for one in part)}]"

    def _name(self, rows: ChunkRows) -> str:
        """Return the name of the array for errors: its path, after that of the file if all chunks are in one file."""
        source, urls = rows.source, self._sources.urls
        return f"{Location.parse(urls[source])}:{self.path}" if isinstance(source, int) and urls else self.path

    def _fetch(self, table: ChunkRows, wanted: Column, rows: Column, placing: Placing) -> None:
        """Read the wanted chunks, which are `rows` of the table if they are in it, from their files."""
        positions = np.flatnonzero(rows >= 0)
        if not len(positions):
            return  # references that inline everything may name no file
        found = rows[positions]
        address, nbytes = table.address[found], table.nbytes[found]
        source = table.source if isinstance(table.source, int) else table.source[found]

        def locate(reader: RangeReader, here: Column) -> tuple[Column, Column]:
            return placing.narrow(positions[here], address[here], sized(nbytes[here], reader))

        def read(number: int, here: Column) -> None:
            reader = self._sources.reader(number)
            try:
                placing.read(reader, positions[here], *locate(reader, here))
            except SourceError as error:
                if len(groups) > 1:
                    error.saying(self._describe_part(wanted[positions[here]]))
                raise

        groups = [(source, np.arange(len(found)))] if isinstance(source, int) else list(_by_source(source))
        number, here = groups[0]
        if len(groups) == 1:
            read(number, here)
        elif self._sources.reader(number).is_fast:
            in_each([partial(read, *group) for group in groups])
        else:
            from h5zarr.io.many_files import FileRanges, read_files  # rarely needed, and slow to import

            def ranges_of(number: int, here: Column) -> FileRanges:
                reader = self._sources.reader(number)
                part = partial(self._describe_part, wanted[positions[here]])
                return FileRanges(reader, *locate(reader, here), placing.receive(positions[here]), part)

            read_files(ranges_of(*group) for group in groups)


_tables: OrderedDict[tuple[str, str], ChunkTable] = OrderedDict()
_tables_lock = threading.Lock()


def _shared(path: str, table: ChunkTable | ChunkRows) -> ChunkTable | ChunkRows:
    """Return a table that was sent to this process; an earlier one of the same array, if that was sent, too.

    The tasks of a cluster arrive with a copy each. Their tables have no rows, and should not all read them.
    """
    if isinstance(table, ChunkRows) or table.state is None:
        return table
    key = path, table.state
    with _tables_lock:
        found = _tables.setdefault(key, table)
        _tables.move_to_end(key)
        while len(_tables) > _MOST_TABLES:
            _tables.popitem(last=False)
    return found


def _forget() -> None:
    """Drop the lock in a child process: a thread of the parent may have held it."""
    global _tables_lock
    _tables_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _read_ranges(array: Callable[[], ArrayValues | None], ranges: Sequence[Range]) -> npt.NDArray[Any]:
    values = array()
    assert values is not None
    return values._read(values._node.grid.select([slice(*one) for one in ranges]))


def _by_source(source: npt.NDArray[np.int32]) -> Iterator[tuple[int, Column]]:
    """Yield each source, and the rows that it has."""
    order = np.argsort(source, kind="stable")
    numbers, first = np.unique(source[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, first[1:]), strict=True)
