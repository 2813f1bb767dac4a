"""Text of any length as the bytes of Zarr's `vlen-utf8` codec: a count, then the length and the UTF-8 of each."""

from __future__ import annotations

import struct
from typing import Any

import numpy.typing as npt


def encode_texts(texts: npt.NDArray[Any]) -> bytes:
    """Return the chunk that holds `texts`, in row-major order."""
    parts = [struct.pack("<I", texts.size)]
    for one in texts.reshape(-1).tolist():
        content = one.encode()
        parts += (struct.pack("<I", len(content)), content)
    return b"".join(parts)
