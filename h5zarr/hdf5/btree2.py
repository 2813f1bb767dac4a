"""Version 2 B-trees with records of any type, read level by level. Spec: III.A.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum, check_checksums
from h5zarr.hdf5.columns import interleave_rows, uint_column
from h5zarr.hdf5.nodes import check_nodes, node_slabs, node_spans
from h5zarr.hdf5.on_disk import U8, U16, U32, Address, Length, OnDisk, check_signature, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_PREFIX_NBYTES = 6  # signature, version, type
_CHECKSUM_NBYTES = 4
_MAX_DEPTH = 32


@on_disk(b"BTHD")
class BTree2Header(OnDisk):
    """Header of a version 2 B-tree. Spec: III.A.2."""

    version: U8
    type: U8
    node_nbytes: U32
    record_nbytes: U16
    depth: U16
    split_percent: U8
    merge_percent: U8
    root: Address
    root_count: U16
    total_count: Length
    checksum: U32


class _Level(NamedTuple):
    """The widths of the address and counts in child pointers at one height. Leaves have no pointers."""

    address_width: int
    count_width: int
    total_width: int

    @property
    def pointer_nbytes(self) -> int:
        return self.address_width + self.count_width + self.total_width


Rows: TypeAlias = npt.NDArray[np.uint8]


class _Nodes(NamedTuple):
    """Nodes of one level, the number of records in each, and the record between each node and the next."""

    addresses: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    between: Rows


_Slabs: TypeAlias = Iterator[tuple[_Nodes, Rows]]


def read_records(address: int, sizes: Sizes, *types: int) -> Step[tuple[int, list[Rows]]]:
    """Return the tree's type, which must be one of `types`, and its records as rows of bytes, in any order."""
    header = yield from read_btree2_header(address, sizes, *types)
    slabs: list[Rows] = []
    yield from walk_records(header, sizes, slabs.append)
    return header.type, slabs


def read_btree2_header(address: int, sizes: Sizes, *types: int) -> Step[BTree2Header]:
    """Return the header of a tree. Checks that its type is one of `types` and that its records fit into the file."""
    (head,) = yield [BTree2Header.span(address, sizes)]
    header = BTree2Header.decode(head, sizes, at=address)
    if header.type not in types:
        raise MalformedFile(f"B-tree has type {header.type}, expected {' or '.join(map(str, types))}", at=address)
    if header.total_count * header.record_nbytes > sizes.end or header.depth > _MAX_DEPTH:
        raise MalformedFile(
            f"B-tree has an impossible size: {header.total_count} records, depth {header.depth}", at=address
        )
    return header


def walk_records(header: BTree2Header, sizes: Sizes, take: Callable[[Rows], None]) -> Step[None]:
    """Pass all records to `take` in order, as rows of bytes, many at a time. Checks their number.

    Each level takes one round. Records are not kept here, because a tree may have millions of them.
    """
    if header.root is None:
        return
    if header.depth == 0:
        take((yield from _read_only_leaf(header, header.root, sizes)))
        return
    levels = _levels(header, sizes, header.root)
    nothing = np.empty((0, header.record_nbytes), np.uint8)
    nodes = _Nodes(np.array([header.root]), np.array([header.root_count]), nothing)
    for height in range(header.depth, 0, -1):
        slabs = yield from _read_nodes(nodes, header, height, levels[height], sizes)
        nodes = _below(slabs, levels[height], sizes)
    count = int(nodes.counts.sum()) + len(nodes.between)
    if count != header.total_count:
        raise MalformedFile(f"B-tree has {count} records, but its header says {header.total_count}", at=header.root)
    for part, rows in (yield from _read_nodes(nodes, header, 0, levels[0], sizes)):
        take(interleave_rows(rows, _PREFIX_NBYTES, part.counts, part.between))


def _read_only_leaf(header: BTree2Header, address: int, sizes: Sizes) -> Step[Rows]:
    """Return the records of a tree with a single leaf. Most trees have one leaf, and each object may have a tree."""
    used = _PREFIX_NBYTES + header.root_count * header.record_nbytes + _CHECKSUM_NBYTES
    (block,) = yield [sizes.span(address, used, "B-tree node")]
    check_signature(block, b"BTLF" + bytes((0, header.type)), "B-tree node", address)
    check_checksum(block, "B-tree node", address)
    if header.root_count != header.total_count:
        raise MalformedFile(
            f"B-tree with one node has {header.root_count} records, not {header.total_count}", at=address
        )
    content = np.frombuffer(block, np.uint8, used - _PREFIX_NBYTES - _CHECKSUM_NBYTES, _PREFIX_NBYTES)
    return content.reshape(header.root_count, header.record_nbytes)


def _levels(header: BTree2Header, sizes: Sizes, address: int) -> list[_Level]:
    """Return the widths of the child pointers at each height. Height 0, the leaves, has none."""
    room = header.node_nbytes - _PREFIX_NBYTES - _CHECKSUM_NBYTES
    if header.record_nbytes == 0 or room < header.record_nbytes:
        raise MalformedFile(
            f"B-tree has records of {header.record_nbytes} bytes in nodes of {header.node_nbytes}", at=address
        )
    most_below = room // header.record_nbytes
    count_width = _width(most_below)  # the count in a pointer is always as wide as that of a leaf
    levels = [_Level(0, 0, 0)]
    for height in range(1, header.depth + 1):
        level = _Level(sizes.offset_nbytes, count_width, _width(most_below) if height > 1 else 0)
        most = (room - level.pointer_nbytes) // (header.record_nbytes + level.pointer_nbytes)
        if most < 1:
            raise MalformedFile(f"B-tree nodes of {header.node_nbytes} bytes are too small for a record", at=address)
        most_below = (most + 1) * most_below + most
        levels.append(level)
    return levels


def _width(most: int) -> int:
    """Return the number of bytes needed for a count of up to `most`."""
    return (most.bit_length() + 7) // 8


def _read_nodes(nodes: _Nodes, header: BTree2Header, height: int, level: _Level, sizes: Sizes) -> Step[_Slabs]:
    """Return the nodes of a level, read in one round and verified lazily."""
    used = _PREFIX_NBYTES + nodes.counts * header.record_nbytes + _CHECKSUM_NBYTES
    if height:
        used += (nodes.counts + 1) * level.pointer_nbytes
    if (too_many := used > header.node_nbytes).any():
        raise MalformedFile("B-tree node has more records than it can hold", at=int(nodes.addresses[too_many][0]))
    # All nodes are read up to the length of the fullest one, so that all spans have the same size.
    blocks = yield node_spans(nodes.addresses, int(used.max()), sizes, "B-tree node")
    signature = (b"BTIN" if height else b"BTLF") + bytes((0, header.type))
    return _verify(blocks, nodes, used, signature)


def _verify(blocks: Sequence[memoryview], nodes: _Nodes, used: npt.NDArray[np.int64], signature: bytes) -> _Slabs:
    """Yield slabs of verified nodes with their bytes, one row per node."""
    for first, rows in node_slabs(blocks, int(used.max())):
        part = slice(first, first + len(rows))
        check_nodes(rows, signature, "B-tree node", nodes.addresses[part])
        check_checksums(rows, used[part], "B-tree node", nodes.addresses[part])
        yield _Nodes(nodes.addresses[part], nodes.counts[part], nodes.between[part]), rows


def _below(slabs: _Slabs, level: _Level, sizes: Sizes) -> _Nodes:
    """Return the child nodes of a level. The pointers follow the records in each node."""
    pointers: list[bytes] = []
    between: list[Rows] = []
    for part, rows in slabs:
        # The records of a node lie between its children. The record between two nodes lies between the last child of
        # the first and the first child of the second.
        between.append(interleave_rows(rows, _PREFIX_NBYTES, part.counts, part.between))
        starts = _PREFIX_NBYTES + part.counts * part.between.shape[1]
        ends = starts + (part.counts + 1) * level.pointer_nbytes
        for row, start, end in zip(rows, starts.tolist(), ends.tolist(), strict=True):
            pointers.append(row[start:end].tobytes())
    children = np.frombuffer(b"".join(pointers), np.uint8).reshape(-1, level.pointer_nbytes)
    addresses = uint_column(children, 0, level.address_width) + sizes.base
    counts = uint_column(children, level.address_width, level.count_width)
    return _Nodes(addresses, counts, np.concatenate(between))
