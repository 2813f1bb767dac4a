"""Pass virtual references to Icechunk in bulk, and configure the layout of its manifests.

By default Icechunk puts all references of an array into one manifest. It builds the manifest in memory, so memory grows
with the array, a reader loads all of it to read one chunk, and a writer rewrites all of it to add one. Large arrays are
therefore split into several manifests.
Icechunk 2 also compresses the location of each chunk separately if a manifest has many. That takes longer than
everything else and gains little, because manifests are compressed as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.containers.icechunk.locations import Located
from h5zarr.errors import OutputError
from h5zarr.io.location import Location
from h5zarr.io.ranges import Column
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Hierarchy

_MANIFEST = 8_000  # an update writes the last one of each array again
_LARGEST_PLAIN = 65_535  # Icechunk's maximum for the size up to which locations stay uncompressed
_BATCH = 20_000
_SPARSE = 4  # a sparser box of the grid is not passed as a whole

Rejected = list[tuple[int, ...]] | None
"""The chunks whose references Icechunk rejects, if any."""


def block_shape(grid: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the shape of the largest block with at most `most` chunks, and at least one."""
    shape = [1] * len(grid)
    for axis in reversed(range(len(grid))):
        within = prod(shape[axis + 1 :])
        shape[axis] = max(1, min(grid[axis], most // within))
        if shape[axis] < grid[axis]:
            break
    return tuple(shape)


def lay_out(config: Any, hierarchy: Hierarchy) -> bool:
    """Configure Icechunk's manifest layout for `hierarchy`. Return whether that changed `config`.

    Existing configuration is left unchanged.
    """
    import icechunk

    manifest = config.manifest or icechunk.ManifestConfig()
    if manifest.splitting is not None:
        return False
    sizes = {
        path: split
        for path, node in hierarchy.nodes.items()
        if isinstance(node, ArrayNode) and (split := split_sizes(node))
    }
    if sizes:
        axis = icechunk.ManifestSplitDimCondition.Axis
        conditions = {
            icechunk.ManifestSplitCondition.path_matches(f"^{re.escape(path)}$"): {
                axis(at): size for at, size in split.items()
            }
            for path, split in sizes.items()
        }
        manifest.splitting = icechunk.ManifestSplittingConfig.from_dict(conditions)
    compression = getattr(icechunk, "ManifestVirtualChunkLocationCompressionConfig", None)
    if compression is not None and manifest.virtual_chunk_location_compression is None:
        manifest.virtual_chunk_location_compression = compression(min_num_chunks=_LARGEST_PLAIN)
    # What was written is not needed again.
    manifest.preload = icechunk.ManifestPreloadConfig(
        max_total_refs=0, preload_if=icechunk.ManifestPreloadCondition.false()
    )
    config.manifest = manifest
    caching = config.caching or icechunk.CachingConfig()
    caching.num_chunk_refs = caching.num_transaction_changes = 0
    config.caching = caching
    return True


def split_sizes(node: ArrayNode) -> dict[int, int]:
    """Return the number of chunks per manifest along each axis that is split.

    A manifest then has chunks that follow each other in row-major order.
    """
    if node.manifest.count <= _MANIFEST:
        return {}
    grid = node.grid.grid_shape
    shape = block_shape(grid, _MANIFEST)
    return {axis: size for axis, size in enumerate(shape) if size < grid[axis]}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Some chunks of the array at `path`, all in one file."""

    path: str
    source: Located
    index: Column
    address: Column
    nbytes: Column


class ReferenceSetter:
    """Passes references to Icechunk. `shown` is the output, for errors.

    Icechunk compares each location with its containers. That takes a third of the time, and all references to a file
    have the same location, so only the first ones of each file are compared.
    """

    def __init__(self, located: Mapping[int, Located], shown: str) -> None:
        self._located, self._shown = located, shown
        self._compared: set[int] = set()

    def set(self, store: Any, path: str, manifest: ChunkLocations) -> None:
        """Pass the references of the array at `path` to an Icechunk store.

        Raises OutputError if Icechunk rejects one: it would read as fill.
        """
        if (manifest.nbytes < 0).any():
            what = f"{path}: Icechunk cannot refer to a whole file of unknown size"
            raise OutputError(self._shown, what, remedy="Translate the file again, or write JSON references.")
        if not manifest.count:
            return
        if (boxes := _find_boxes(store, manifest)) is not None:
            self._set_boxes(store, path, manifest, boxes)
            return
        for number, rows in _rows_by_source(manifest):
            columns = (manifest.index[rows], manifest.address[rows], manifest.nbytes[rows])
            give, spans = _how_to_give(store, columns[0])
            for span in spans:
                index, address, nbytes = (column[span] for column in columns)
                part = _Part(path=path, source=self._located[number], index=index, address=address, nbytes=nbytes)
                if rejected := give(store, part):
                    raise _rejected(rejected, path, part.source, self._shown)
            self._compared.add(number)

    def _set_boxes(self, store: Any, path: str, manifest: ChunkLocations, boxes: _Boxes) -> None:
        """Pass references that fill boxes of the grid, one box after the other."""
        address = np.ascontiguousarray(manifest.address).view(np.uint64)
        nbytes = np.ascontiguousarray(manifest.nbytes).view(np.uint64)
        for number, first, last, origin, extents in zip(*boxes, strict=True):
            source = self._located[number]
            rejected = store.set_virtual_refs_arr(
                path,
                tuple(extents),
                [source.location] * (last - first),
                address[first:last],
                nbytes[first:last],
                arr_offset=tuple(origin),
                checksum=source.etag or source.modified,
                validate_containers=number not in self._compared,
            )
            if rejected:
                raise _rejected(rejected, path, source, self._shown)
            self._compared.add(number)


_Boxes = tuple[list[int], list[int], list[int], list[list[int]], list[list[int]]]
"""For each box: the source, the first row, the row after the last, the first chunk, and the number of chunks."""


def _find_boxes(store: Any, manifest: ChunkLocations) -> _Boxes | None:
    """Return the boxes of the grid that the references of each file fill, if they are so simple, as in most cubes."""
    index = manifest.index
    if not hasattr(store, "set_virtual_refs_arr") or not index.shape[1]:
        return None
    source = np.broadcast_to(np.asarray(manifest.source), manifest.count)
    first = np.concatenate([[0], np.flatnonzero(np.diff(source)) + 1])
    last = np.append(first[1:], manifest.count)
    origin = np.minimum.reduceat(index, first, axis=0)
    extents = np.maximum.reduceat(index, first, axis=0) - origin + 1
    counts = last - first
    if counts.max() > _BATCH or (extents.prod(axis=1) != counts).any() or not _is_sorted(index, first):
        return None
    return source[first].tolist(), first.tolist(), last.tolist(), origin.tolist(), extents.tolist()


def _is_sorted(index: Column, first: npt.NDArray[np.intp]) -> bool:
    """Return whether chunks are in row-major order, each once, within the rows that begin at `first`."""
    steps = np.diff(index, axis=0)
    changed = steps != 0
    leading = np.take_along_axis(steps, changed.argmax(axis=1)[:, None], axis=1)[:, 0]
    leading[first[1:] - 1] = 1  # from one run to the next
    return bool((leading > 0).all())


def _rows_by_source(manifest: ChunkLocations) -> Iterator[tuple[int, Any]]:
    """Yield the number of each URL, and its rows."""
    if isinstance(manifest.source, int | np.integer):
        yield int(manifest.source), slice(None)
        return
    order = np.argsort(manifest.source, kind="stable")
    numbers, first = np.unique(manifest.source[order], return_index=True)
    yield from zip(numbers.tolist(), np.split(order, first[1:]), strict=True)


def _how_to_give(store: Any, index: Column) -> tuple[Callable[[Any, _Part], Rejected], Iterator[slice]]:
    """Return how to pass chunks, and the rows to pass at a time: all at once would take much memory.

    Icechunk 2 accepts arrays, but no coordinates, so the chunks must fill a box of the grid, or nearly.
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
    """Yield the rows whose chunks are in the same small block of a box, if they are consecutive."""
    is_first = np.zeros(len(index), np.bool_)
    is_first[0] = True
    for axis, size in enumerate(block_shape(extents, _BATCH)):
        if size < extents[axis]:
            block = index[:, axis] // size
            is_first[1:] |= block[1:] != block[:-1]
    firsts = [*np.flatnonzero(is_first).tolist(), len(index)]
    return (slice(first, last) for first, last in pairwise(firsts))


def _give_box(store: Any, part: _Part) -> Rejected:
    """Pass references as arrays over a box of the grid."""
    origin = part.index.min(axis=0)
    extents = tuple((part.index.max(axis=0) - origin + 1).tolist())
    count = prod(extents)
    locations, address, nbytes = [part.source.location] * count, part.address, part.nbytes
    places = np.ravel_multi_index(tuple((part.index - origin).T), extents)
    if not np.array_equal(places, np.arange(count)):
        is_there = np.zeros(count, np.bool_)
        is_there[places] = True
        locations = np.where(is_there, part.source.location, "").astype(object).tolist()  # "" means no chunk
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
    """Pass references as objects."""
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
    place = Location.parse(source.location)
    what = f"{path}: Icechunk rejects {count} to {place}, such as that of chunk ({first})"
    if source.location.startswith("http") and ":" in source.prefix.partition("://")[2]:
        return OutputError(shown, what, remedy="Icechunk 1 cannot read from a server with a port: install Icechunk 2.")
    return OutputError(shown, what, remedy=f"Check the container {source.prefix} in the repository's configuration.")
