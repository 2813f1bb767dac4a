"""Filter 3, fletcher32: four bytes of checksum behind the content. No client data. Source: H5Zfletcher32.c.

It may stand anywhere in a pipeline, and is verified wherever it stands.
"""

from __future__ import annotations

import numpy as np

from h5zarr.errors import MalformedFile

CHECKSUM_NBYTES = 4
_SLAB_NBYTES = 1 << 17


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the content without its checksum, which is verified.

    libhdf5 before 1.6.3 summed little-endian words on little-endian machines, which swaps the bytes of both halves of
    the checksum; later versions accept both, and so does this.
    """
    if len(content) < CHECKSUM_NBYTES:
        raise MalformedFile(f"content of {len(content)} bytes has no room for its checksum")
    summed, stored = content[:-CHECKSUM_NBYTES], content[-CHECKSUM_NBYTES:]
    expected = checksum(summed).to_bytes(CHECKSUM_NBYTES, "little")
    if stored != expected and stored != bytes(expected[at] for at in (1, 0, 3, 2)):
        raise MalformedFile("content fails its checksum (fletcher32)")
    return summed


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the content with its checksum behind it."""
    return content + checksum(content).to_bytes(CHECKSUM_NBYTES, "little")


def checksum(content: bytes) -> int:
    """Return the checksum: two sums of big-endian words, folded to 16 bits each. An odd last byte is a high one."""
    plain = weighted = 0
    for start in range(0, len(content), _SLAB_NBYTES):
        slab = content[start : start + _SLAB_NBYTES]
        words = np.frombuffer(slab + b"\0" * (len(slab) % 2), ">u2").astype(np.int64)
        weighted += plain * len(words) + int((words * np.arange(len(words), 0, -1)).sum())
        plain += int(words.sum())
    return _folded(weighted, plain) << 16 | _folded(plain, plain)


def _folded(total: int, of: int) -> int:
    """Return a sum modulo 65535, for which 65535 stands where it is zero, unless nothing was summed."""
    return (total - 1) % 65535 + 1 if of else 0
