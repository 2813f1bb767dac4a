"""Filter 3, fletcher32: four bytes of checksum after the content. No client data. Source: H5Zfletcher32.c.

The checksum is verified wherever the filter is in the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters.toolkit import Codec, Values

CHECKSUM_NBYTES = 4
_SLAB_NBYTES = 1 << 17


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the content without its checksum, after verifying it.

    libhdf5 before 1.6.3 summed little-endian words on little-endian machines, which swaps the bytes of both halves of
    the checksum. Like later versions of libhdf5, accept both.
    """
    if len(content) < CHECKSUM_NBYTES:
        raise MalformedFile(f"content of {len(content)} bytes has no room for its checksum")
    summed, stored = content[:-CHECKSUM_NBYTES], content[-CHECKSUM_NBYTES:]
    expected = checksum(summed).to_bytes(CHECKSUM_NBYTES, "little")
    if stored != expected and stored != bytes(expected[at] for at in (1, 0, 3, 2)):
        raise MalformedFile("content fails its checksum (fletcher32)")
    return summed


def encode(content: bytes, values: Values) -> bytes:
    """Return the content followed by its checksum."""
    return content + checksum(content).to_bytes(CHECKSUM_NBYTES, "little")


def checksum(content: bytes) -> int:
    """Return the checksum: two sums of big-endian words, folded to 16 bits each. A last odd byte is a high byte."""
    plain = weighted = 0
    for start in range(0, len(content), _SLAB_NBYTES):
        slab = content[start : start + _SLAB_NBYTES]
        words = np.frombuffer(slab + b"\0" * (len(slab) % 2), ">u2").astype(np.int64)
        weighted += plain * len(words) + int((words * np.arange(len(words), 0, -1)).sum())
        plain += int(words.sum())
    return _folded(weighted, plain) << 16 | _folded(plain, plain)


def _folded(total: int, of: int) -> int:
    """Return a sum modulo 65535; 65535 instead of zero, unless the sum of all words is zero."""
    return (total - 1) % 65535 + 1 if of else 0


def to_codec(values: Values, nbytes: int | None) -> Codec:
    """Return `numcodecs.fletcher32`, which knows only the checksum of libhdf5 1.6.3 and later.

    The metadata of a file do not say which of the two it has.
    """
    return {"name": "numcodecs.fletcher32", "configuration": {}}


def from_codec(configuration: Mapping[str, Any]) -> Values:
    return ()


def netcdf_encoding(values: Values) -> dict[str, Any]:
    return {"fletcher32": True}
