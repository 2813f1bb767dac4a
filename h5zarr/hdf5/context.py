"""What the parsers of one file share."""

from __future__ import annotations

from dataclasses import dataclass, field

from h5zarr.errors import MalformedFile
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
    _claimed: dict[int, int] = field(default_factory=dict)

    def claim(self, address: int | None, owner: int, what: str) -> None:
        """Note that a structure belongs to the object at `owner`: it is not decoded again for another."""
        if address is not None and self._claimed.setdefault(address, owner) != owner:
            raise MalformedFile(f"{what} belongs to more than one object", at=address)

    @classmethod
    def of(cls, sizes: Sizes, shared: SharedMessages) -> Context:
        heap = GlobalHeap(sizes)
        return cls(sizes, shared, heap, ValueReader(sizes, heap))
