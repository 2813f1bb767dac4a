"""Place chunks: copy the selected part of each chunk to its position in the result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.io.ranges import Deliver, RangeReader
from h5zarr.io.span import Span
from h5zarr.read.decoding import Decoder
from h5zarr.zarr_model.chunk_selection import AxisSelection, Column, Part
from h5zarr.zarr_model.grid import ChunkGrid


class Placing:
    """The result of a selection while threads fill it, chunk by chunk. No two chunks share an element.

    Chunks are identified by their position among the chunks of the selection, in row-major order.
    """

    def __init__(
        self,
        values: npt.NDArray[Any],
        axes: Sequence[AxisSelection],
        decoder: Decoder,
        grid: ChunkGrid,
    ) -> None:
        self._values = values
        self._axes = axes
        self._decoder = decoder
        self._counts = tuple(len(axis.numbers) for axis in axes)
        self._has_arrays = any(isinstance(part, np.ndarray) for axis in axes for part in axis.inside[:1])
        self._shape = decoder.stored_shape
        self._lengths: list[Column] = []
        inner, is_even = self._shape or (), True
        if self._shape is None:
            divided = zip(grid.axes, axes, strict=True)
            self._lengths = [division.stored_lengths(axis.numbers) for division, axis in divided]
            inner = tuple([int(lengths.max(initial=0)) for lengths in self._lengths])
            is_even = all((lengths == most).all() for lengths, most in zip(self._lengths[1:], inner[1:], strict=True))
        self._strides = tuple(decoder.dtype.itemsize * prod(inner[axis + 1 :]) for axis in range(len(axes)))
        self._chunk_nbytes = decoder.dtype.itemsize * prod(inner)
        # Only plain values have a known position in their chunk, and only slices have a first and a last element. The
        # position depends on the lengths of all axes but the first.
        self._is_narrow = decoder.is_plain and not self._has_arrays and is_even

    def narrow(self, positions: Column, address: Column, nbytes: Column) -> tuple[Column, Column]:
        """Return the bytes to read of each chunk: all of them, or only the selected range if the values are plain."""
        if not self._is_narrow:
            return address, nbytes
        self._check(positions, nbytes)
        begin = np.zeros(len(positions), np.int64)
        last = np.full(len(positions), self._decoder.dtype.itemsize, np.int64)
        for parts, axis, stride in zip(self._unravel(positions), self._axes, self._strides, strict=True):
            starts = np.array([part.start for part in axis.inside], np.int64)  # type: ignore[union-attr]
            stops = np.array([part.stop for part in axis.inside], np.int64)  # type: ignore[union-attr]
            begin += starts[parts] * stride
            last += (stops[parts] - 1) * stride
        return address + begin, last - begin

    def _check(self, positions: Column, nbytes: Column) -> None:
        """Raise MalformedFile if a chunk of plain values has more or fewer bytes than values."""
        expected = np.full(len(positions), self._chunk_nbytes)
        if self._lengths:
            expected = self._lengths[0][self._unravel(positions)[0]] * self._strides[0]
        if len(wrong := np.flatnonzero(nbytes != expected)):
            found, wanted = int(nbytes[wrong[0]]), int(expected[wrong[0]])
            raise MalformedFile(f"a chunk has {found} bytes instead of {wanted}")

    def receive(self, positions: Column) -> Deliver:
        """Return a function that places the bytes of the chunks at `positions`, by their number among these."""
        places = positions.tolist()
        put = self._place_narrow if self._is_narrow else self.place

        def deliver(numbers: Sequence[int], buffers: Sequence[memoryview]) -> None:
            put([places[number] for number in numbers], buffers)

        return deliver

    def read(self, reader: RangeReader, positions: Column, address: Column, nbytes: Column) -> None:
        """Read the chunks at `positions`, whose bytes are at `address` of one file, into the result."""
        if self._is_narrow:
            rest = self._read_into(reader, positions, address, nbytes)
            positions, address, nbytes = positions[rest], address[rest], nbytes[rest]
        if not len(positions):
            return
        is_light = self._is_narrow and self._chunk_nbytes < _WORTHWHILE_NBYTES
        reader.read(address, nbytes, self.receive(positions), is_light=is_light)

    def place(self, positions: Sequence[int], contents: Sequence[memoryview]) -> None:
        """Place whole chunks, given as bytes."""
        values, axes, decode = self._values, self._axes, self._decoder.decode
        parts = [part.tolist() for part in self._unravel(np.array(positions, np.int64))]
        for numbers, content in zip(_rows(parts, len(positions)), contents, strict=True):
            inside = tuple([axis.inside[number] for axis, number in zip(axes, numbers, strict=True)])
            outside = tuple([axis.outside[number] for axis, number in zip(axes, numbers, strict=True)])
            if self._has_arrays:
                inside, outside = _outer(inside), _outer(outside)
            shape = self._shape
            if shape is None:
                shape = tuple([int(sizes[number]) for sizes, number in zip(self._lengths, numbers, strict=True)])
            values[outside] = decode(content, shape)[inside]

    def _place_narrow(self, positions: Sequence[int], contents: Sequence[memoryview]) -> None:
        """Place plain values, given for each chunk from the first to the last selected one."""
        values, dtype = self._values, self._values.dtype
        outsides = [axis.outside for axis in self._axes]
        # A slice has the same step in every chunk.
        strides = tuple(
            stride * axis.inside[0].step  # type: ignore[union-attr]
            for stride, axis in zip(self._strides, self._axes, strict=True)
        )
        parts = [part.tolist() for part in self._unravel(np.array(positions, np.int64))]
        for numbers, content in zip(_rows(parts, len(positions)), contents, strict=True):
            # The ellipsis makes it a view even without axes.
            place = values[(*[outside[number] for outside, number in zip(outsides, numbers, strict=True)], ...)]
            place[...] = np.ndarray(place.shape, dtype, content, 0, strides)

    def _read_into(
        self, reader: RangeReader, positions: Column, address: Column, nbytes: Column
    ) -> npt.NDArray[np.bool_]:
        """Read directly into the result wherever it is laid out like the file. Return the remaining chunks.

        This pays off for long contiguous ranges, where copying from a buffer dominates.
        """
        left = np.ones(len(positions), bool)
        if self._values.dtype.hasobject:
            return left
        parts = self._unravel(positions)
        for row in np.flatnonzero(nbytes >= _WORTHWHILE_NBYTES).tolist():
            place = self._values[
                (*[axis.outside[int(part[row])] for axis, part in zip(self._axes, parts, strict=True)], ...)
            ]
            if place.nbytes != nbytes[row] or not place.flags.c_contiguous:
                continue
            out = memoryview(place.reshape(-1).view(np.uint8).data)
            left[row] = not reader.read_into(Span(int(address[row]), int(nbytes[row])), out)
        return left

    def _unravel(self, positions: Column) -> tuple[Column, ...]:
        """Return, for each axis, the index of the part at each position."""
        return np.unravel_index(positions, self._counts) if self._counts else ()


_WORTHWHILE_NBYTES = 1 << 16


def _rows(columns: list[list[int]], count: int) -> Sequence[tuple[int, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


def _outer(parts: tuple[Part, ...]) -> tuple[Any, ...]:
    """Return an index that selects each axis independently; numpy would pair several arrays elementwise."""
    arrays = iter(np.ix_(*[part for part in parts if isinstance(part, np.ndarray)]))
    return tuple(next(arrays) if isinstance(part, np.ndarray) else part for part in parts)
