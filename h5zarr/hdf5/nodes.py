"""Read tree nodes of equal size, a whole level at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.column import BlockColumn, SpanColumn
from h5zarr.io.span import Span

_SLAB_NBYTES = 1 << 20  # fits into the processor's cache, and keeps memory low for a million chunks
_FEW_THOUSAND = 4096
_FEW = 32  # up to this many nodes, a list of spans is faster than a column


def node_spans(addresses: npt.NDArray[np.int64], nbytes: int, sizes: Sizes, what: str) -> Sequence[Span]:
    """Return the spans of nodes. Raises MalformedFile if they repeat or do not fit into the file."""
    outside = (addresses < sizes.base) | (addresses > sizes.end - nbytes)
    if outside.any():
        raise MalformedFile(f"{what} of {nbytes} bytes reaches outside the file", at=int(addresses[outside.argmax()]))
    if len(addresses) * nbytes > sizes.end:
        raise MalformedFile(f"{len(addresses)} {what}s of {nbytes} bytes exceed the size of the file")
    if len(addresses) > 1:
        ordered = np.sort(addresses)
        twice = ordered[1:] == ordered[:-1]
        if twice.any():
            raise MalformedFile(f"{what} is reached twice", at=int(ordered[1:][twice][0]))
    if len(addresses) < _FEW:
        return [Span(address, nbytes) for address in addresses.tolist()]
    return SpanColumn(addresses, nbytes)


def node_slabs(blocks: Sequence[memoryview], nbytes: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the number of the first node and the bytes of the nodes, one row each, about a megabyte at a time."""
    step = max(1, _SLAB_NBYTES // max(1, nbytes))
    if isinstance(blocks, BlockColumn):
        yield from ((first, _pick(piece, 0, nbytes)) for first, piece in blocks.pieces(step))
        return
    for first in range(0, len(blocks), step):
        yield first, gather(blocks[first : first + step], 0, nbytes)


def gather(blocks: Sequence[memoryview], start: int, end: int) -> npt.NDArray[np.uint8]:
    """Return bytes `start` to `end` of each block as rows."""
    if not isinstance(blocks, BlockColumn):
        content = b"".join([block[start:end] for block in blocks])
        return np.frombuffer(content, np.uint8).reshape(len(blocks), end - start)
    picked = np.empty((len(blocks), end - start), np.uint8)
    for first, piece in blocks.pieces(_FEW_THOUSAND):
        picked[first : first + len(piece)] = _pick(piece, start, end)
    return picked


def _pick(blocks: BlockColumn, start: int, end: int) -> npt.NDArray[np.uint8]:
    # Row n of this view begins at byte n of the file. Rows overlap, but indexing copies only the selected ones.
    count = max(0, len(blocks.file) - (end - start) + 1)
    windows = np.ndarray((count, end - start), np.uint8, blocks.file, strides=(1, 1))
    picked: npt.NDArray[np.uint8] = windows[blocks.spans.addresses + start]
    return picked


def check_nodes(rows: npt.NDArray[np.uint8], prefix: bytes, what: str, addresses: npt.NDArray[np.int64]) -> None:
    """Raise MalformedFile unless every row begins with `prefix`, the signature and the bytes common to all nodes."""
    wrong = rows[:, : len(prefix)] != np.frombuffer(prefix, np.uint8)
    if wrong.any():
        number = int(wrong.argmax()) // len(prefix)
        found = rows[number, : len(prefix)].tobytes()
        raise MalformedFile(f"{what} begins with {found!r}, expected {prefix!r}", at=int(addresses[number]))
