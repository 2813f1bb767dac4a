"""Nodes of one size, a whole level of a tree at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import LoneSpan, Span

_SLAB_NBYTES = 1 << 19  # small enough for the processor's cache; and a million chunks then need little memory


def node_spans(
    addresses: npt.NDArray[np.int64],
    nbytes: int | npt.NDArray[np.int64],
    sizes: Sizes,
    what: str,
    *,
    lone: bool = False,
) -> list[Span]:
    """Return the spans of distinct nodes that the file can hold together, or raise.

    `nbytes` is the size of all nodes or of each. `lone` says that chunks lie between them.
    """
    each = np.broadcast_to(nbytes, addresses.shape)
    outside = (addresses < sizes.base) | (addresses > sizes.end - each)
    if outside.any():
        first = int(outside.argmax())
        raise MalformedFile(f"{what} of {int(each[first])} bytes reaches outside the file", at=int(addresses[first]))
    if int(each.sum()) > sizes.end:
        raise MalformedFile(f"{len(addresses)} {what}s of {int(each.sum())} bytes are more than the file has")
    if len(addresses) > 1:
        ordered = np.sort(addresses)
        twice = ordered[1:] == ordered[:-1]
        if twice.any():
            raise MalformedFile(f"{what} is reached twice", at=int(ordered[1:][twice][0]))
    kind = LoneSpan if lone else Span
    pairs = zip(addresses.tolist(), each.tolist(), strict=True)
    return list(map(tuple.__new__, repeat(kind), pairs))  # what the named tuple's own __new__ does


def node_slabs(blocks: Sequence[memoryview], nbytes: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the number of the first node and the nodes' bytes, a row each, a few megabytes at a time."""
    step = max(1, _SLAB_NBYTES // max(1, nbytes))
    for first in range(0, len(blocks), step):
        slab = blocks[first : first + step]
        content = slab[0] if len(slab) == 1 else b"".join(slab)
        yield first, np.frombuffer(content, np.uint8).reshape(len(slab), nbytes)


def check_nodes(rows: npt.NDArray[np.uint8], prefix: bytes, what: str, addresses: npt.NDArray[np.int64]) -> None:
    """Raise unless every row begins with `prefix`: a signature, and whatever follows it in every node."""
    wrong = rows[:, : len(prefix)] != np.frombuffer(prefix, np.uint8)
    if wrong.any():
        number = int(wrong.argmax()) // len(prefix)
        found = rows[number, : len(prefix)].tobytes()
        raise MalformedFile(f"{what} begins with {found!r}, expected {prefix!r}", at=int(addresses[number]))
