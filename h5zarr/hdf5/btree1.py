"""Version 1 B-trees, which index old-style groups and most chunked datasets. Spec: III.A.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.columns import pick_rows, uint_column
from h5zarr.hdf5.nodes import check_nodes, gather, node_slabs, node_spans
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_PREFIX_NBYTES = 8  # signature, type, level, number of entries; the sibling addresses follow
_MAX_LEVEL = 32


class NodeType(IntEnum):
    GROUP = 0
    CHUNKS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The structure of a tree's nodes: up to `capacity` entries, each a key and a child address, then one last key."""

    node_type: NodeType
    capacity: int
    key_nbytes: int
    sizes: Sizes

    @property
    def entry_nbytes(self) -> int:
        return self.key_nbytes + self.sizes.offset_nbytes

    @property
    def entries_at(self) -> int:
        return _PREFIX_NBYTES + 2 * self.sizes.offset_nbytes

    @property
    def node_nbytes(self) -> int:
        return self.entries_at + self.capacity * self.entry_nbytes + self.key_nbytes


class Entries:
    """The entries of all nodes at one level, in key order."""

    def __init__(
        self, blocks: Sequence[memoryview], addresses: npt.NDArray[np.int64], level: int, shape: Shape
    ) -> None:
        self._blocks = blocks
        self._addresses = addresses
        self._prefix = b"TREE" + bytes((shape.node_type, level))
        self._shape = shape
        self.counts = gather(blocks, 6, 8).view("<u2")[:, 0].astype(np.int64)
        self.count = int(self.counts.sum())

    @property
    def address(self) -> int:
        """The address of the first node."""
        return int(self._addresses[0])

    @property
    def is_used(self) -> npt.NDArray[np.bool_]:
        """A mask of the nodes that have entries."""
        return self.counts > 0

    def edge_keys(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Return three keys of each non-empty node: the first, that of the last entry, and the one after it."""
        shape = self._shape
        parts: list[tuple[npt.NDArray[np.uint8], ...]] = []
        for first, rows in node_slabs(self._blocks, shape.node_nbytes):
            # `slabs` reports counts that are too large.
            counts = np.minimum(self.counts[first : first + len(rows)], shape.capacity)
            numbers = np.flatnonzero(counts)
            ends = shape.entries_at + counts[numbers] * shape.entry_nbytes
            starts = (np.full(len(numbers), shape.entries_at), ends - shape.entry_nbytes, ends)
            windows = sliding_window_view(rows, shape.key_nbytes, axis=1)
            parts.append(tuple(windows[numbers, start] for start in starts))
        return parts[0] if len(parts) == 1 else tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def slabs(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield rows of bytes, each a key and a child address, about a megabyte at a time."""
        shape = self._shape
        for first, rows in node_slabs(self._blocks, shape.node_nbytes):
            check_nodes(rows, self._prefix, "B-tree node", self._addresses[first:])
            counts = uint_column(rows, 6, 2)
            if (too_many := counts > shape.capacity).any():
                at = int(self._addresses[first:][too_many.argmax()])
                raise MalformedFile(f"B-tree node has more than {shape.capacity} entries", at=at)
            yield pick_rows(rows, shape.entries_at, counts, shape.entry_nbytes)

    def children(self) -> npt.NDArray[np.int64]:
        """Return the addresses that the entries point to."""
        columns = [uint_column(rows, self._shape.key_nbytes, self._shape.sizes.offset_nbytes) for rows in self.slabs()]
        return np.concatenate(columns) + self._shape.sizes.base


class CheckLevel(Protocol):
    """Raises MalformedFile if a level of a tree is inconsistent with the levels above it."""

    def __call__(self, entries: Entries, *, is_leaf: bool) -> None: ...


def read_leaf_entries(
    root: int, shape: Shape, check: CheckLevel | None = None, root_node: memoryview | None = None
) -> Step[Entries]:
    """Return the entries of the leaves of the tree at `root`. Each level takes one round, and is passed to `check`.

    `root_node` is the content of the root, if it has already been read.
    """
    addresses = np.array([root])
    level: int | None = None
    while True:
        blocks: Sequence[memoryview]
        if level is None and root_node is not None:
            blocks = [root_node]
        else:
            blocks = yield node_spans(addresses, shape.node_nbytes, shape.sizes, "B-tree node")
        level = blocks[0][5] if level is None else level - 1
        if level > _MAX_LEVEL:
            raise MalformedFile(f"B-tree has {level} levels", at=root)
        entries = Entries(blocks, addresses, level, shape)
        if check is not None:
            check(entries, is_leaf=level == 0)
        if level == 0:
            return entries
        addresses = entries.children()
        if not len(addresses):
            raise MalformedFile("B-tree has an internal level without children", at=root)
