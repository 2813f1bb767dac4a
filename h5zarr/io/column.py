"""Many spans of one size as a column of addresses, and their bytes in a memory-mapped file.

A tree may have tens of thousands of nodes in one level. Making a Python object for each takes longer than copying its
bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, overload

from h5zarr.io.span import Span

if TYPE_CHECKING:  # opening a local file must not import numpy; code that makes columns has imported it
    import numpy as np
    import numpy.typing as npt

_MOST_MAPPED = 1 << 28
_AROUND = 1 << 16  # the system maps this many bytes around each byte that is read


class SpanColumn(Sequence[Span]):
    """Spans of `nbytes` bytes each.

    Iteration yields `Span`s, for remote sources and for rounds that merge the requests of several steps.
    """

    __slots__ = ("addresses", "nbytes")

    def __init__(self, addresses: npt.NDArray[np.int64], nbytes: int) -> None:
        self.addresses = addresses
        self.nbytes = nbytes

    def __len__(self) -> int:
        return len(self.addresses)

    def __iter__(self) -> Iterator[Span]:
        pairs = zip(self.addresses.tolist(), repeat(self.nbytes))
        return map(tuple.__new__, repeat(Span), pairs)  # what Span.__new__ does, but in C

    def outermost(self) -> list[Span]:
        """Return the spans with the lowest and the highest address. If both are inside the file, all are."""
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
    """The bytes of a column's spans, which are inside `file`. Nothing is copied; views are made when they are used."""

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
        """Yield `step` blocks at a time, with the number of the first one. Copy them before taking the next.

        Pages that were read count as memory of this process until they are released.
        """
        mapped = 0
        for first in range(0, len(self), step):
            piece = self[first : first + step]
            mapped += piece._reach()
            if mapped > _MOST_MAPPED:
                self._release_pages()
                mapped = piece._reach()
            yield first, piece

    def _reach(self) -> int:
        """Return the most bytes that the system maps while all blocks are read."""
        addresses, nbytes = self.spans.addresses, self.spans.nbytes
        return min(len(self) * (_AROUND + nbytes), int(addresses.max() - addresses.min()) + _AROUND + nbytes)

    def _release_pages(self) -> None:
        """Release the mapped pages. Views stay valid: the system reads a page again when it is used."""
        file = self.file.obj
        if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            file.madvise(mmap.MADV_DONTNEED)
