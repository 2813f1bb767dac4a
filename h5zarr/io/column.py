"""Many spans of one size, as a column of addresses, and what a memory-mapped file answers to them.

A tree may have tens of thousands of nodes in one level. A Python object for each costs more than to copy its bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, overload

from h5zarr.io.span import Span

if TYPE_CHECKING:  # a column comes from somebody who has numpy; to open a file does not take it
    import numpy as np
    import numpy.typing as npt

_MOST_MAPPED = 1 << 28
_AROUND = 1 << 16  # so many bytes the system maps around one that is read


class SpanColumn(Sequence[Span]):
    """Spans of `nbytes` bytes each.

    Whoever iterates over it gets spans: a source that is far away, or a round that has requests of others, too.
    """

    __slots__ = ("addresses", "nbytes")

    def __init__(self, addresses: npt.NDArray[np.int64], nbytes: int) -> None:
        self.addresses = addresses
        self.nbytes = nbytes

    def __len__(self) -> int:
        return len(self.addresses)

    def __iter__(self) -> Iterator[Span]:
        pairs = zip(self.addresses.tolist(), repeat(self.nbytes))
        return map(tuple.__new__, repeat(Span), pairs)  # what the named tuple's own __new__ does

    def outermost(self) -> list[Span]:
        """Return the first and the last span of the file: where they are inside it, all are."""
        return [self[int(self.addresses.argmin())], self[int(self.addresses.argmax())]] if len(self) else []

    @overload
    def __getitem__(self, number: int) -> Span: ...
    @overload
    def __getitem__(self, number: slice) -> SpanColumn: ...
    def __getitem__(self, number: int | slice) -> Span | SpanColumn:
        if isinstance(number, slice):
            return SpanColumn(self.addresses[number], self.nbytes)
        return Span(int(self.addresses[number]), self.nbytes)


class BlockColumn(Sequence[memoryview]):
    """The bytes of a column's spans, which lie inside `file`. Nothing is copied, nor a view made before it is used."""

    __slots__ = ("file", "spans")

    def __init__(self, file: memoryview, spans: SpanColumn) -> None:
        self.file = file
        self.spans = spans

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, number: int) -> memoryview: ...
    @overload
    def __getitem__(self, number: slice) -> BlockColumn: ...
    def __getitem__(self, number: int | slice) -> memoryview | BlockColumn:
        if isinstance(number, slice):
            return BlockColumn(self.file, self.spans[number])
        span = self.spans[number]
        return self.file[span.address : span.end]

    def pieces(self, step: int) -> Iterator[tuple[int, BlockColumn]]:
        """Yield the number of the first block and `step` blocks at a time, which are to be copied before the next.

        Pages of the file that were read count as memory of this process, until the system is told to take them back.
        """
        mapped = 0
        for first in range(0, len(self), step):
            piece = self[first : first + step]
            mapped += piece._reach()
            if mapped > _MOST_MAPPED:
                self._let_go()
                mapped = piece._reach()
            yield first, piece

    def _reach(self) -> int:
        """Return how much of the file the system maps when all blocks are read, at most."""
        addresses, nbytes = self.spans.addresses, self.spans.nbytes
        return min(len(self) * (_AROUND + nbytes), int(addresses.max() - addresses.min()) + _AROUND + nbytes)

    def _let_go(self) -> None:
        """Have the system take back the pages. Views of them stay: it reads a page again when somebody looks at it."""
        file = self.file.obj
        if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            file.madvise(mmap.MADV_DONTNEED)
