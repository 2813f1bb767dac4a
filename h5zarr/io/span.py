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


class Pages:
    """Says of a file that it keeps its metadata together, in pages of their own: the rest need not be read."""

    __slots__ = ()


class Rounds(NamedTuple):
    """Says that what is asked for next is the first link of a chain: so many rounds, one after the other, at least."""

    to_come: int
