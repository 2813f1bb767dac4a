"""The format of Zarr's `vlen-utf8` codec: a count, then the length and the UTF-8 bytes of each text."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile


def encode_texts(texts: npt.NDArray[Any]) -> bytes:
    """Return a chunk with `texts`, in row-major order."""
    parts = [struct.pack("<I", texts.size)]
    for one in texts.reshape(-1).tolist():
        content = one.encode()
        parts += (struct.pack("<I", len(content)), content)
    return b"".join(parts)


def decode_texts(content: bytes, count: int) -> npt.NDArray[Any]:
    """Return the `count` texts of a chunk. Raises MalformedFile if the bytes are anything else."""
    try:
        (found,) = struct.unpack_from("<I", content)
        if found != count:
            raise MalformedFile(f"a chunk of text has a count of {found} instead of {count}")
        if 4 * count > len(content) - 4:
            raise MalformedFile(f"a chunk of {len(content)} bytes cannot hold {count} texts")
        texts = np.empty(count, object)
        at = 4
        for number in range(count):
            (nbytes,) = struct.unpack_from("<I", content, at)
            at += 4 + nbytes
            if at > len(content):
                raise MalformedFile("a chunk of text ends in the middle of a text")
            texts[number] = content[at - nbytes : at].decode()
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedFile(f"a chunk of text cannot be read: {error}") from error
    return texts
