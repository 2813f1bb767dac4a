"""A position in a header that advances as fields are read."""

from __future__ import annotations


class HeaderCut(Exception):
    """The header continues beyond the bytes that were read, at least up to byte `needed`.

    Caught inside this package.
    """

    def __init__(self, needed: int) -> None:
        self.needed = needed


class Cursor:
    """Reads big-endian fields from the beginning of a file, never past the available bytes.

    `wide` is True for CDF-5, where counts, lengths and dimension IDs take eight bytes instead of four.
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
        """Return the next `nbytes` bytes and skip padding to four bytes.

        Like netCDF-C, it ignores the padding's content.
        """
        return self.take(nbytes + -nbytes % 4)[:nbytes]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def count(self) -> int:
        """Return a count, length or ID: NON_NEG in the specification. It is read as unsigned, as netCDF-C does."""
        return int.from_bytes(self.take(8 if self.wide else 4), "big")
