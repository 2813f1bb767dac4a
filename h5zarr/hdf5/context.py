"""What the parsers of one file share."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes
from h5zarr.hdf5.values import ValueReader


@dataclass(frozen=True, slots=True)
class Context:
    """The file's sizes, and the things that are read once for all objects."""

    sizes: Sizes
    shared: SharedMessages
    heap: GlobalHeap
    values: ValueReader

    @classmethod
    def of(cls, sizes: Sizes, shared: SharedMessages) -> Context:
        heap = GlobalHeap(sizes)
        return cls(sizes, shared, heap, ValueReader(sizes, heap))
