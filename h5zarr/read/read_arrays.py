"""Read arrays by selection: threads fetch all required chunks together, and decode them into the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.io.location import Location
from h5zarr.limits import LimitReached
from h5zarr.read.chunk_rows import ChunkRows, chunk_rows
from h5zarr.read.decoding import Decoder, find_decoder
from h5zarr.read.placing import Placing
from h5zarr.read.sources import Sources, in_each, sized
from h5zarr.zarr_model.chunk_selection import AxisSelection, Column, Key
from h5zarr.zarr_model.fill_values import decode_fill
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest

_NONE = Manifest(index=np.empty((0, 0), np.int64), address=np.empty(0, np.int64), nbytes=np.empty(0, np.int64))


class ArrayValues:
    """An array of a hierarchy. It can be pickled, and read by many threads."""

    def __init__(self, path: str, node: ArrayNode, decoder: Decoder, sources: Sources) -> None:
        self.path = path
        self._manifest_of: ArrayNode | None = node
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

    @cached_property
    def _rows(self) -> ChunkRows:
        """The rows of the manifest, built on the first read: most arrays of a file are never read."""
        assert self._manifest_of is not None
        return chunk_rows(self._manifest_of)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._decoder.dtype

    def __getstate__(self) -> tuple[Any, ...]:
        return self.path, self._rows, self._sources, self._node

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.path, rows, self._sources, node = state
        self._manifest_of = None
        self.__dict__["_rows"] = rows
        decoder = find_decoder(node, self._sources.access.limits)
        assert decoder is not None
        self._describe(node, decoder)

    def __repr__(self) -> str:
        return f"<ArrayValues {self.path} {self.shape} {self.dtype}>"

    def __getitem__(self, key: tuple[Key, ...]) -> npt.NDArray[Any]:
        """Return the values that `key` selects. It has an entry for each axis."""
        if self._is_one_inline_chunk and not any(isinstance(one, np.ndarray) for one in key):
            return self._take(key)
        axes = self._node.grid.select(key)
        values = self._read(axes)
        kept = tuple(axis.count for axis in axes if not axis.is_dropped)
        return values.reshape(kept)

    @cached_property
    def _is_one_inline_chunk(self) -> bool:
        """Whether the array is a single inlined chunk. This is true for most coordinates, which readers load first."""
        return len(self._rows.inline) == 1 and self.shape == self._decoder.stored_shape

    def _take(self, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        try:
            whole = self._decoder.decode(self._rows.inline[0], self.shape)
        except (MalformedFile, Unsupported, LimitReached) as error:
            raise error.naming(self.path) from None
        return np.array(whole[(*key, ...)])

    def _read(self, axes: Sequence[AxisSelection]) -> npt.NDArray[Any]:
        shape = tuple(axis.count for axis in axes)
        wanted = self._node.grid.touched(axes)
        rows = self._rows.find(wanted)
        inline = self._rows.find_inline(wanted)
        values = np.empty(shape, self.dtype)
        if bool(((rows < 0) & (inline < 0)).any()):
            values[...] = self._fill
        placing = Placing(values, axes, self._decoder, self._node.grid)
        try:
            for position in np.flatnonzero(inline >= 0).tolist():
                placing.place([position], [memoryview(self._rows.inline[int(inline[position])])])
            self._fetch(np.flatnonzero(rows >= 0), rows, placing)
        except (MalformedFile, Unsupported, LimitReached) as error:
            raise error.naming(self._name) from None
        return values

    @property
    def _name(self) -> str:
        """The name of the array in errors: its path, after that of the file if all chunks are in one file."""
        source = self._rows.source
        urls = self._sources.urls
        return f"{Location.parse(urls[source])}:{self.path}" if isinstance(source, int) and urls else self.path

    def _fetch(self, positions: Column, rows: Column, placing: Placing) -> None:
        """Read the chunks at `positions`, which are rows of the manifest, from their files."""
        if not len(positions):
            return  # references that inline everything may name no file
        found = rows[positions]
        address, nbytes = self._rows.address[found], self._rows.nbytes[found]
        source = self._rows.source if isinstance(self._rows.source, int) else self._rows.source[found]

        def read(number: int, here: npt.NDArray[np.bool_] | slice) -> None:
            reader = self._sources.reader(number)
            where, wanted = address[here], sized(nbytes[here], reader)
            placing.read(reader, positions[here], *placing.narrow(positions[here], where, wanted))

        if isinstance(source, int):
            read(source, slice(None))
        else:
            in_each([partial(read, number, source == number) for number in np.unique(source).tolist()])
