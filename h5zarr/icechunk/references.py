"""The references of an array, handed to Icechunk in bulk, and what it says to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import OutputError
from h5zarr.hierarchy import Manifest
from h5zarr.icechunk.locations import Located
from h5zarr.io.url import display_url

_BATCH = 50_000
_SPARSE = 4  # a box of the grid with more places than this for each chunk is not handed over as a whole


def set_references(store: Any, path: str, manifest: Manifest, located: Mapping[int, Located], shown: str) -> None:
    """Give the references of the array at `path` to a store of Icechunk.

    Raises OutputError, with `shown` for the place of the output, where Icechunk does not take one of them: it would
    read as fill.
    """
    if (manifest.nbytes < 0).any():
        what = f"{path}: Icechunk cannot refer to a whole file whose size is not known"
        raise OutputError(shown, what, remedy="Translate the file again, or write JSON references.")
    for number, rows in _rows_by_source(manifest):
        source = located[number]
        give = _give_box if _is_box(store, manifest.index[rows]) else _give_one_by_one
        if rejected := give(store, path, manifest, rows, source):
            raise _rejected(rejected, path, source, shown)


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


def _is_box(store: Any, index: npt.NDArray[np.int64]) -> bool:
    """Return whether chunks can be given as a box of the grid: Icechunk 2 takes arrays, but no coordinates."""
    if not hasattr(store, "set_virtual_refs_arr") or not index.shape[1]:
        return False
    extents: list[int] = (index.max(axis=0) - index.min(axis=0) + 1).tolist()
    return prod(extents) <= _SPARSE * len(index)


def _give_box(store: Any, path: str, manifest: Manifest, rows: Any, source: Located) -> list[tuple[int, ...]] | None:
    """Give the references as arrays over a box of the grid. Return the chunks that were rejected, if any."""
    index = manifest.index[rows]
    origin = index.min(axis=0)
    extents = tuple((index.max(axis=0) - origin + 1).tolist())
    places = np.ravel_multi_index(tuple((index - origin).T), extents)
    locations = np.full(prod(extents), "", object)  # nothing is a chunk that is not there
    address, nbytes = np.zeros(len(locations), np.uint64), np.zeros(len(locations), np.uint64)
    locations[places] = source.location
    address[places], nbytes[places] = manifest.address[rows], manifest.nbytes[rows]
    rejected: list[tuple[int, ...]] | None = store.set_virtual_refs_arr(
        path,
        extents,
        locations.tolist(),
        address,
        nbytes,
        arr_offset=tuple(origin.tolist()),
        checksum=source.etag or source.modified,
    )
    return rejected


def _give_one_by_one(
    store: Any, path: str, manifest: Manifest, rows: Any, source: Located
) -> list[tuple[int, ...]] | None:
    """Give the references as objects, many at a time. Return the chunks that were rejected, if any."""
    from icechunk import VirtualChunkSpec

    index, address, nbytes = manifest.index[rows], manifest.address[rows], manifest.nbytes[rows]
    for first in range(0, len(index), _BATCH):
        part = slice(first, first + _BATCH)
        columns = zip(index[part].tolist(), address[part].tolist(), nbytes[part].tolist(), strict=True)
        specs = [
            VirtualChunkSpec(place, source.location, start, count, source.etag, source.modified)
            for place, start, count in columns
        ]
        rejected: list[tuple[int, ...]] | None = store.set_virtual_refs(path, specs)
        if rejected:
            return rejected
    return None


def _rejected(rejected: list[tuple[int, ...]], path: str, source: Located, shown: str) -> OutputError:
    count = "1 reference" if len(rejected) == 1 else f"{len(rejected)} references"
    first = ", ".join(map(str, rejected[0]))
    what = f"{path}: Icechunk rejects {count} to {display_url(source.location)}, such as that of chunk ({first})"
    if source.location.startswith("http") and ":" in source.prefix.partition("://")[2]:
        return OutputError(shown, what, remedy="Icechunk 1 reads from no server with a port: install Icechunk 2.")
    return OutputError(shown, what, remedy=f"Check the container {source.prefix} in the repository's configuration.")
