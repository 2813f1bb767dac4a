"""Where chunks are, by the output of each tool and by h5py, all in one form so that they can be compared."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from with_h5py import chunk_columns, walk

Chunks: TypeAlias = dict[str, dict[str, tuple[int, int] | bytes]]
"""For each array the chunks by coordinates, as in "3.14": address and size, or the content where it is inlined."""


def of_h5py(path: Path) -> Chunks:
    """The chunks of every dataset, by libhdf5."""
    if path.name.startswith("chunks_"):  # one dataset, for which columns are faster than a walk
        columns = chunk_columns(str(path))
        places = zip(columns.address.tolist(), columns.nbytes.tolist(), strict=True)
        keys = (".".join(map(str, index)) for index in columns.index.tolist())
        return {"values": dict(zip(keys, places, strict=True))}
    found: Chunks = {}
    for name, seen in walk(str(path))[0].items():
        if seen.chunk_shape is None:  # contiguous and small: one chunk for every tool
            found[name] = {".".join("0" * len(seen.shape)): seen.place}
            continue
        found[name] = {
            ".".join(str(n // c) for n, c in zip(record.chunk_offset, seen.chunk_shape, strict=True)): (
                record.byte_offset,
                record.size,
            )
            for record in seen.chunks
        }
    return found


def of_h5zarr(path: Path) -> Chunks:
    """The chunks in references with Zarr version 3 metadata: array/c/3/14."""
    found: Chunks = {}
    for key, value in _references(path):
        array, separator, index = key.rpartition("/c/")
        if separator:
            found.setdefault(array, {})[index.replace("/", ".")] = _place(value)
    return found


def of_kerchunk(path: Path) -> Chunks:
    """The chunks in references with Zarr version 2 metadata: array/3.14."""
    found: Chunks = {}
    for key, value in _references(path):
        array, _, index = key.rpartition("/")
        if not index.startswith(".z"):
            found.setdefault(array, {})[index] = _place(value)
    return found


def of_virtualizarr(path: Path) -> Chunks:
    """The chunks in the manifests that were saved by `translators.py`; those of size 0 are not there."""
    found: Chunks = {}
    with np.load(path) as manifests:
        for name, (addresses, sizes) in manifests.items():
            indexes = np.argwhere(sizes)
            at = tuple(indexes.T)
            keys = (".".join(map(str, index)) for index in indexes.tolist())
            places = zip(addresses[at].tolist(), sizes[at].tolist(), strict=True)
            found[name] = dict(zip(keys, places, strict=True))
    return found


READERS = {
    "h5zarr": of_h5zarr,
    "kerchunk": of_kerchunk,
    "kerchunk, 8 MB blocks": of_kerchunk,
    "VirtualiZarr": of_virtualizarr,
    "async-hdf5": of_virtualizarr,
}


def count_equal(found: Chunks, truth: Chunks, source: Path) -> tuple[int, int]:
    """How many chunks are as h5py says, and how many are otherwise, missing or too many.

    An inlined chunk is right if it has the bytes that are in the file.
    """
    equal = wrong = 0
    with source.open("rb") as file:
        for array in truth.keys() | found.keys():
            ours, theirs = found.get(array, {}), truth.get(array, {})
            for key in ours.keys() | theirs.keys():
                one, other = ours.get(key), theirs.get(key)
                if isinstance(one, bytes) and isinstance(other, tuple):
                    file.seek(other[0])
                    other = file.read(other[1])
                equal, wrong = (equal + 1, wrong) if one == other else (equal, wrong + 1)
    return equal, wrong


def _references(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open() as file:
        yield from json.load(file)["refs"].items()


def _place(value: Any) -> tuple[int, int] | bytes:
    if isinstance(value, str):
        return b64decode(value.removeprefix("base64:")) if value.startswith("base64:") else value.encode()
    return value[1], value[2]
