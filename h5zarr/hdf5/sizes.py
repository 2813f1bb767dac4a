"""Sizes and limits that apply to all structures of a file."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.errors import MalformedFile
from h5zarr.io.span import Span

_UNDEFINED = {nbytes: (1 << 8 * nbytes) - 1 for nbytes in (2, 4, 8)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Widths of addresses and lengths, the bounds of the file, and the ranks of its version 1 B-trees.

    Every parser takes a `Sizes` and uses it to make spans. This catches addresses outside the file before anything is
    read or allocated. Spec: II.A.
    """

    offset_nbytes: int = 8
    length_nbytes: int = 8
    base: int = 0  # absolute address of the file's address zero
    end: int = 1 << 62  # absolute address of the end of the source
    group_leaf_rank: int = 4
    group_internal_rank: int = 16
    chunk_rank: int = 32

    def address(self, stored: int) -> int | None:
        """Return the absolute address for a stored address, or None for the undefined address."""
        return None if stored == _UNDEFINED[self.offset_nbytes] else stored + self.base

    @property
    def undefined(self) -> int:
        """The stored form of the undefined address."""
        return _UNDEFINED[self.offset_nbytes]

    def span(self, address: int, nbytes: int, what: str) -> Span:
        """Return the span of a structure. Raises MalformedFile if it lies outside the file."""
        if address < self.base or nbytes < 0 or address + nbytes > self.end:
            raise MalformedFile(
                f"{what} of {nbytes} bytes reaches outside the file, which ends at {self.end:#x}", at=address
            )
        return Span(address, nbytes)

    def span_up_to(self, address: int, least: int, most: int, what: str) -> Span:
        """Return a span of `most` bytes, shortened at the end of the file, but of at least `least` bytes."""
        return self.span(address, max(least, min(most, self.end - address)), what)


class Visits:
    """The nodes of one tree visited so far.

    Repeated nodes, or more nodes than fit into the file, mean a broken tree.
    """

    def __init__(self, sizes: Sizes, what: str) -> None:
        self._sizes = sizes
        self._what = what
        self._seen: set[int] = set()
        self._nbytes = 0

    def claim(self, address: int, nbytes: int) -> None:
        """Record a visit to the node at `address`. Raises MalformedFile if the tree is broken."""
        self._nbytes += nbytes
        if address in self._seen:
            raise MalformedFile(f"{self._what} reaches the same node twice", at=address)
        if self._nbytes > self._sizes.end:
            raise MalformedFile(f"{self._what} takes more bytes than the file has", at=address)
        self._seen.add(address)
