"""Byte ranges, and hints about them for the planner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """`nbytes` bytes, beginning at `address`, which counts from the first byte of the source."""

    address: int
    nbytes: int

    @property
    def end(self) -> int:
        """The address of the first byte after the span."""
        return self.address + self.nbytes


class Pages:
    """A hint that the file keeps its metadata in separate pages, so reading ahead elsewhere is useless."""

    __slots__ = ()


class AmongData(NamedTuple):
    """A hint that the next spans are between data. In a file with pages, no bytes near them will be needed."""

    spans: Sequence[Span]


class Rounds(NamedTuple):
    """A hint that the next request begins a chain of at least `to_come` rounds."""

    to_come: int
