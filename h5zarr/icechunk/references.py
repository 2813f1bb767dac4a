"""The references of an array, handed to Icechunk in bulk, and what it says to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import OutputError
from h5zarr.hierarchy import Manifest
from h5zarr.icechunk.blocks import block_shape
from h5zarr.icechunk.locations import Located
from h5zarr.io.ranges import Column
from h5zarr.io.url import display_url

_BATCH = 20_000
_SPARSE = 4  # a box of the grid with more places than this for each chunk is not handed over as a whole

Rejected = list[tuple[int, ...]] | None
"""The chunks whose references Icechunk does not take, if any."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Some chunks of the array at `path` that are all in one file."""

    path: str
    source: Located
    index: Column
    address: Column
    nbytes: Column


def set_references(store: Any, path: str, manifest: Manifest, located: Mapping[int, Located], shown: str) -> None:
    """Give the references of the array at `path` to a store of Icechunk.

    Raises OutputError, with `shown` for the place of the output, where Icechunk does not take one of them: it would
    read as fill.
    """
    if (manifest.nbytes < 0).any():
        what = f"{path}: Icechunk cannot refer to a whole file whose size is not known"
        raise OutputError(shown, what, remedy="Translate the file again, or write JSON references.")
    for number, rows in _rows_by_source(manifest):
        columns = (manifest.index[rows], manifest.address[rows], manifest.nbytes[rows])
        give, spans = _how_to_give(store, columns[0])
        for span in spans:
            index, address, nbytes = (column[span] for column in columns)
            part = _Part(path=path, source=located[number], index=index, address=address, nbytes=nbytes)
            if rejected := give(store, part):
                raise _rejected(rejected, path, part.source, shown)


def _rows_by_source(manifest: Manifest) -> Iterator[tuple[int, Any]]:
    """Yield the number of each URL, and which rows are in it."""
    if not manifest.count:
        return
    if isinstance(manifest.source, int | np.integer):
        yield int(manifest.source), slice(None)
        return
    order = np.argsort(manifest.source, kind="stable")
    numbers, first = np.unique(manifest.source[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, first[1:]), strict=True)


def _how_to_give(store: Any, index: Column) -> tuple[Callable[[Any, _Part], Rejected], Iterator[slice]]:
    """Return how chunks are given, and the rows of them that are given at a time: all at once would take much memory.

    Icechunk 2 takes arrays, but no coordinates, so the chunks must fill a box of the grid, or nearly.
    """
    if not hasattr(store, "set_virtual_refs_arr") or not index.shape[1]:
        return _give_one_by_one, _batches(len(index))
    origin = index.min(axis=0)
    extents: list[int] = (index.max(axis=0) - origin + 1).tolist()
    if prod(extents) > _SPARSE * len(index):
        return _give_one_by_one, _batches(len(index))
    return _give_box, _runs(index - origin, extents)


def _batches(count: int) -> Iterator[slice]:
    return (slice(first, first + _BATCH) for first in range(0, count, _BATCH))


def _runs(index: Column, extents: list[int]) -> Iterator[slice]:
    """Yield the rows whose chunks are in the same small part of a box, where they stand behind each other."""
    is_first = np.zeros(len(index), np.bool_)
    is_first[0] = True
    for axis, size in enumerate(block_shape(extents, _BATCH)):
        if size < extents[axis]:
            block = index[:, axis] // size
            is_first[1:] |= block[1:] != block[:-1]
    firsts = [*np.flatnonzero(is_first).tolist(), len(index)]
    return (slice(first, last) for first, last in pairwise(firsts))


def _give_box(store: Any, part: _Part) -> Rejected:
    """Give references as arrays over a box of the grid."""
    origin = part.index.min(axis=0)
    extents = tuple((part.index.max(axis=0) - origin + 1).tolist())
    count = prod(extents)
    locations, address, nbytes = [part.source.location] * count, part.address, part.nbytes
    places = np.ravel_multi_index(tuple((part.index - origin).T), extents)
    if not np.array_equal(places, np.arange(count)):
        is_there = np.zeros(count, np.bool_)
        is_there[places] = True
        locations = np.where(is_there, part.source.location, "").astype(object).tolist()  # "" is no chunk
        address, nbytes = _scatter(places, part.address, count), _scatter(places, part.nbytes, count)
    rejected: Rejected = store.set_virtual_refs_arr(
        part.path,
        extents,
        locations,
        np.ascontiguousarray(address, np.uint64),
        np.ascontiguousarray(nbytes, np.uint64),
        arr_offset=tuple(origin.tolist()),
        checksum=part.source.etag or part.source.modified,
    )
    return rejected


def _scatter(places: npt.NDArray[np.intp], column: Column, count: int) -> Column:
    made = np.zeros(count, np.int64)
    made[places] = column
    return made


def _give_one_by_one(store: Any, part: _Part) -> Rejected:
    """Give references as objects."""
    from icechunk import VirtualChunkSpec

    source = part.source
    specs = map(
        VirtualChunkSpec,
        part.index.tolist(),
        repeat(source.location),
        part.address.tolist(),
        part.nbytes.tolist(),
        repeat(source.etag),
        repeat(source.modified),
    )
    rejected: Rejected = store.set_virtual_refs(part.path, list(specs))
    return rejected


def _rejected(rejected: list[tuple[int, ...]], path: str, source: Located, shown: str) -> OutputError:
    count = "1 reference" if len(rejected) == 1 else f"{len(rejected)} references"
    first = ", ".join(map(str, rejected[0]))
    what = f"{path}: Icechunk rejects {count} to {display_url(source.location)}, such as that of chunk ({first})"
    if source.location.startswith("http") and ":" in source.prefix.partition("://")[2]:
        return OutputError(shown, what, remedy="Icechunk 1 reads from no server with a port: install Icechunk 2.")
    return OutputError(shown, what, remedy=f"Check the container {source.prefix} in the repository's configuration.")
