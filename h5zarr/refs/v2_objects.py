"""Texts that version 2 has as JSON, turned into those of version 3.

kerchunk embedded text of any length this way, with the codec `json2` of numcodecs, which version 3 lacks. A chunk is a
list of the values, the type and the shape. Where it is inline, its texts can be written again for `vlen-utf8`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from h5zarr.encode.text import encode_texts
from h5zarr.errors import Unsupported
from h5zarr.hierarchy import Json

CODEC = "json2"


def convert_texts(content: bytes, chunk_shape: tuple[int, ...]) -> bytes:
    """Return a chunk of the codec `vlen-utf8` with the texts of one of `json2`.

    Raises Unsupported unless there is a text for each element.
    """
    try:
        items = json.loads(content.decode())
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list) or len(items) < 2 or items[-1] != list(chunk_shape):
        raise Unsupported(f'a chunk is not what the codec "{CODEC}" gives for its shape')
    texts = list(_leaves(items[:-2], chunk_shape or (1,)))
    if not all(isinstance(text, str) for text in texts):
        raise Unsupported(f'the values in the codec "{CODEC}" are not all text, which Zarr version 3 has no type for')
    array = np.empty(len(texts), object)
    array[:] = texts
    try:
        return encode_texts(array)
    except UnicodeEncodeError:
        raise Unsupported(f'the text in the codec "{CODEC}" is no Unicode') from None


def _leaves(items: Json, shape: tuple[int, ...]) -> Iterator[Json]:
    """Yield what stands in lists inside lists, in order. Raises Unsupported unless they are as long as `shape` says."""
    if not isinstance(items, list) or len(items) != shape[0]:
        raise Unsupported(f'a chunk is not what the codec "{CODEC}" gives for its shape')
    if len(shape) == 1:
        yield from items
        return
    for item in items:
        yield from _leaves(item, shape[1:])
