"""A range of bytes that somebody wants."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """`nbytes` bytes from `address` on, counted from the first byte of the source."""

    address: int
    nbytes: int

    @property
    def end(self) -> int:
        """The address of the first byte after the span."""
        return self.address + self.nbytes


class LoneSpan(Span):
    """A span around which nothing else will be asked for: a node of a chunk index, which lies between the chunks.

    The other structures of a file lie next to each other, so that reading ahead pays; here it moves data for nothing.
    """

    __slots__ = ()
