"""The keys of an array's chunks, one by one: which are right, and which chunk each means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.refs.chunk_keys import Below, KeyLayout, decode_keys

_NUMBER = "(?:0|[1-9][0-9]{0,30})"


def decode_all(layout: KeyLayout, below: Below) -> npt.NDArray[np.int64] | None:
    """Return the coordinates of the chunks below an array, a row for each; None unless all keys are those of chunks.

    There may be a million of them: only where something is wrong are they looked at one by one.
    """
    if not layout.rank:
        return None
    try:
        kept, index = decode_keys(below, layout)
    except MalformedFile:
        return None
    return index if len(kept.keys) == len(below.keys) else None


def match_keys(layout: KeyLayout, keys: Iterable[str]) -> Iterator[tuple[int, ...] | None]:
    """Yield the coordinates of the chunk that each key means; None where it is not the key of a chunk."""
    separated = f"{_NUMBER}(?:{re.escape(layout.separator)}{_NUMBER}){{{layout.rank - 1}}}" if layout.rank else ""
    match = re.compile(f"{re.escape(layout.prefix)}({separated})").fullmatch
    for key in keys:
        found = match(key)
        if found is None:
            yield None
        else:
            yield tuple(map(int, found[1].split(layout.separator))) if layout.rank else ()
