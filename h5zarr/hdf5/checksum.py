"""Bob Jenkins' lookup3 hash, the checksum of newer HDF5 structures. Spec: III.A.2 and others.

numcodecs, a dependency of zarr, has a compiled version, but importing it takes longer than scanning a small file. So
the first few kilobytes are hashed in Python, unless numcodecs is already imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile

Buffer: TypeAlias = bytes | memoryview
IntColumn: TypeAlias = npt.NDArray[np.int64]

_MASK = 0xFFFFFFFF
_INTERPRETED_NBYTES = 24_576  # about 8 ms, compared with 80 to 200 ms for the import


def lookup3(content: Buffer) -> int:
    """Return the 32-bit hash of `content`, with an initial value of zero."""
    return _hasher(content)


def check_checksum(block: Buffer, what: str, at: int) -> None:
    """Raise MalformedFile unless the last four bytes of `block` are the checksum of the others."""
    if lookup3(block[:-4]) != int.from_bytes(block[-4:], "little"):
        raise MalformedFile(f"{what} fails its checksum", at=at)


def check_checksums(rows: npt.NDArray[np.uint8], nbytes: IntColumn, what: str, addresses: IntColumn) -> None:
    """Raise MalformedFile unless the first `nbytes[i]` bytes of each row end with a valid checksum.

    Equivalent to `check_checksum` in a loop, at half the cost for tens of thousands of small blocks.
    """
    hasher = _hasher if rows.size < _INTERPRETED_NBYTES else _hasher.compiled()
    starts = np.arange(0, rows.size, rows.shape[1])
    ends = starts + nbytes - 4
    content = rows.reshape(-1).data
    hashes = [hasher(content[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    # A view of the 32-bit words at every byte of the rows.
    stored = np.ndarray(rows.size - 3, "<u4", content, strides=1)[ends]
    if (wrong := stored != np.array(hashes, np.uint32)).any():
        raise MalformedFile(f"{what} fails its checksum", at=int(addresses[wrong.argmax()]))


def _rotate(value: int, count: int) -> int:
    return (value << count | value >> (32 - count)) & _MASK


def interpreted_lookup3(content: Buffer) -> int:
    """Return the hash, computed in pure Python."""
    nbytes = len(content)
    a = b = c = (0xDEADBEEF + nbytes) & _MASK
    if nbytes == 0:
        return c
    padded = bytes(content) + bytes(-nbytes % 12)
    words = memoryview(padded).cast("I")  # little-endian hosts only, like numpy's own wheels
    last = len(words) - 3
    for position in range(0, last, 3):
        a = (a + words[position]) & _MASK
        b = (b + words[position + 1]) & _MASK
        c = (c + words[position + 2]) & _MASK
        a = ((a - c) ^ _rotate(c, 4)) & _MASK
        c = (c + b) & _MASK
        b = ((b - a) ^ _rotate(a, 6)) & _MASK
        a = (a + c) & _MASK
        c = ((c - b) ^ _rotate(b, 8)) & _MASK
        b = (b + a) & _MASK
        a = ((a - c) ^ _rotate(c, 16)) & _MASK
        c = (c + b) & _MASK
        b = ((b - a) ^ _rotate(a, 19)) & _MASK
        a = (a + c) & _MASK
        c = ((c - b) ^ _rotate(b, 4)) & _MASK
        b = (b + a) & _MASK
    a = (a + words[last]) & _MASK
    b = (b + words[last + 1]) & _MASK
    c = (c + words[last + 2]) & _MASK
    return _final(a, b, c)


def _final(a: int, b: int, c: int) -> int:
    c = ((c ^ b) - _rotate(b, 14)) & _MASK
    a = ((a ^ c) - _rotate(c, 11)) & _MASK
    b = ((b ^ a) - _rotate(a, 25)) & _MASK
    c = ((c ^ b) - _rotate(b, 16)) & _MASK
    a = ((a ^ c) - _rotate(c, 4)) & _MASK
    b = ((b ^ a) - _rotate(a, 14)) & _MASK
    return ((c ^ b) - _rotate(b, 24)) & _MASK


def _is_imported() -> bool:
    return "numcodecs" in sys.modules


class _FirstInterpreted:
    """Hashes in Python for the first `_INTERPRETED_NBYTES`, then with the compiled function.

    If numcodecs is already imported, it uses the compiled function at once.
    """

    def __init__(self) -> None:
        self._left = _INTERPRETED_NBYTES
        self._compiled: Callable[[Buffer], int] | None = None

    def __call__(self, content: Buffer) -> int:
        if self._compiled is not None:
            return self._compiled(content)
        self._left -= len(content)
        if self._left < 0 or _is_imported():
            return self.compiled()(content)
        return interpreted_lookup3(content)

    def compiled(self) -> Callable[[Buffer], int]:
        """Return the compiled function and use it from now on."""
        if self._compiled is None:
            from numcodecs.jenkins import jenkins_lookup3

            self._compiled = jenkins_lookup3
        return self._compiled


_hasher = _FirstInterpreted()
