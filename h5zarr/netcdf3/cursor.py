"""A place in a header, which moves on as fields are taken."""

from __future__ import annotations


class HeaderCut(Exception):
    """The header goes on behind what was read: at least up to byte `needed`. Never leaves this room."""

    def __init__(self, needed: int) -> None:
        self.needed = needed


class Cursor:
    """Takes big-endian fields from the beginning of a file, one after the other; never past what was read.

    `wide` is True for CDF-5, where counts, lengths and numbers of dimensions take eight bytes instead of four.
    """

    __slots__ = ("_content", "position", "wide")

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.position = 0
        self.wide = False

    def take(self, nbytes: int) -> memoryview:
        """Return the next `nbytes` bytes."""
        start, self.position = self.position, self.position + nbytes
        if self.position > len(self._content):
            raise HeaderCut(self.position)
        return self._content[start : self.position]

    def take_padded(self, nbytes: int) -> memoryview:
        """Return the next `nbytes` bytes, and pass over padding to four, whatever it holds: netCDF-C does not look."""
        return self.take(nbytes + -nbytes % 4)[:nbytes]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def count(self) -> int:
        """Return a count, length or number: NON_NEG of the specification, read without sign as netCDF-C does."""
        return int.from_bytes(self.take(8 if self.wide else 4), "big")
