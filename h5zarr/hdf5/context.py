"""State shared by the parsers of one file."""

from __future__ import annotations

from dataclasses import dataclass, field

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.heaps.collections import GlobalHeap
from h5zarr.hdf5.numpy_values import ValueReader
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Context:
    """The file's sizes, and structures that are read once for all objects."""

    sizes: Sizes
    shared: SharedMessages
    heap: GlobalHeap
    values: ValueReader
    _claimed: dict[int, int] = field(default_factory=dict)

    def claim(self, address: int | None, owner: int, what: str) -> None:
        """Record that the structure at `address` belongs to the object at `owner`. No other object may use it."""
        if address is not None and self._claimed.setdefault(address, owner) != owner:
            raise MalformedFile(f"{what} belongs to more than one object", at=address)

    @classmethod
    def of(cls, sizes: Sizes, shared: SharedMessages) -> Context:
        heap = GlobalHeap(sizes)
        return cls(sizes, shared, heap, ValueReader(sizes, heap))
