"""Chunks put together to the array that they are parts of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.filters.pipeline import Applied, undo_filters


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedArray:
    """What chunks are parts of: elements of `element_nbytes` bytes, and `fill` where no chunk is."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    element_nbytes: int
    fill: bytes | None
    filters: Sequence[Applied]

    def assemble(
        self, contents: Sequence[bytes | memoryview], index: npt.NDArray[np.int64], masks: Sequence[int]
    ) -> npt.NDArray[Any]:
        """Return the array of raw elements, of type `V`; `index` is (count, rank) coordinates in the chunk grid."""
        element = np.dtype(f"V{self.element_nbytes}")
        whole = np.zeros(self.shape, element)
        if self.fill is not None:
            whole[...] = np.frombuffer(self.fill, element, 1)[0]
        chunk_nbytes = element.itemsize * prod(self.chunk_shape)
        for content, mask, coordinates in zip(contents, masks, index.tolist(), strict=True):
            plain = undo_filters(bytes(content), self.filters, mask, chunk_nbytes)
            if len(plain) < chunk_nbytes:
                raise MalformedFile(f"chunk {tuple(coordinates)} has {len(plain)} bytes instead of {chunk_nbytes}")
            block = np.frombuffer(plain, element, prod(self.chunk_shape)).reshape(self.chunk_shape)
            corner = [number * extent for number, extent in zip(coordinates, self.chunk_shape, strict=True)]
            place = tuple(slice(start, start + n) for start, n in zip(corner, self.chunk_shape, strict=True))
            part = tuple(slice(0, max(0, end - start)) for start, end in zip(corner, self.shape, strict=True))
            whole[place] = block[part]
        return whole
