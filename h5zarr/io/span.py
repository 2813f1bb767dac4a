"""A range of bytes that somebody wants."""

from __future__ import annotations

from collections.abc import Sequence
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


class AmongData(NamedTuple):
    """Says of what is asked for next that it lies among data: in a file with pages, nothing near it will be wanted."""

    spans: Sequence[Span]


class Rounds(NamedTuple):
    """Says that what is asked for next is the first link of a chain: so many rounds, one after the other, at least."""

    to_come: int
