"""A position in a message that advances as fields are read."""

from __future__ import annotations

from typing import NoReturn

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.sizes import Sizes


class Cursor:
    """Reads little-endian fields from `content`, never past its end."""

    __slots__ = ("_content", "_sizes", "_what", "position")

    def __init__(self, content: bytes, what: str, sizes: Sizes | None = None) -> None:
        self._content = content
        self._what = what
        self._sizes = sizes or Sizes()
        self.position = 0

    @property
    def left(self) -> int:
        """The number of remaining bytes."""
        return len(self._content) - self.position

    def take(self, nbytes: int) -> bytes:
        """Return the next `nbytes` bytes."""
        end = self.position + nbytes
        if nbytes < 0 or end > len(self._content):
            self._complain()
        taken = self._content[self.position : end]
        self.position = end
        return taken

    def _complain(self) -> NoReturn:
        raise MalformedFile(f"{self._what} ends after {len(self._content)} bytes, inside a field")

    def skip(self, nbytes: int) -> None:
        self.take(nbytes)

    def uint(self, nbytes: int) -> int:
        """Return an unsigned integer of `nbytes` bytes."""
        start = self.position
        self.position = end = start + nbytes
        if end > len(self._content):
            self._complain()
        return int.from_bytes(self._content[start:end], "little")

    def u8(self) -> int:
        start = self.position
        self.position = start + 1
        if start >= len(self._content):
            self._complain()
        return self._content[start]

    def u16(self) -> int:
        return self.uint(2)

    def u32(self) -> int:
        return self.uint(4)

    def length(self) -> int:
        """Return an integer of the file's length size."""
        return self.uint(self._sizes.length_nbytes)

    def address(self) -> int | None:
        """Return an absolute address, or None for the undefined one."""
        return self._sizes.address(self.uint(self._sizes.offset_nbytes))

    def terminated(self) -> bytes:
        """Return the bytes up to the next NUL, and skip the NUL."""
        end = self._content.find(b"\0", self.position)
        if end < 0:
            raise MalformedFile(f"{self._what} has an unterminated name")
        taken = self._content[self.position : end]
        self.position = end + 1
        return taken

    def align(self, nbytes: int, start: int = 0) -> None:
        """Advance to the next multiple of `nbytes`, counted from `start`."""
        self.skip(-(self.position - start) % nbytes)


def text(stored: bytes) -> str:
    """Decode a name or string as UTF-8, or as Latin-1 if it is not valid UTF-8. Latin-1 accepts every byte."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")
