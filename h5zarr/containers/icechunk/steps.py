"""Write many references in several commits, so that memory does not grow with their number.

Icechunk keeps about 400 bytes for each reference until it is committed. So references are committed in steps to a
temporary branch. The branch of the user then moves from its old to its new snapshot, once. References that are not in
memory are read for each step.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

from h5zarr.containers.icechunk.virtual_refs import split_sizes
from h5zarr.containers.records import Rows
from h5zarr.containers.streamed_records import StoredRecord, StreamedRecords
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Hierarchy, Manifest
from h5zarr.zarr_model.joined_manifest import as_joined, is_late

_STEP = 200_000  # references in a commit, if manifests allow
_NAME = "h5zarr-writing-"
_ABANDONED_SECONDS = 3600


class Share(NamedTuple):
    """Some of the references of an array, without inlined chunks."""

    path: str
    references: Manifest


def plan_steps(hierarchy: Hierarchy) -> Iterator[list[Share]]:
    """Yield the references to set before each commit. No manifest gets references in two steps."""
    step, room = list[Share](), _STEP
    for path, node in hierarchy.nodes.items():
        if not isinstance(node, ArrayNode) or not node.manifest.count:
            continue
        for references in _parts(node):
            if step and references.count > room:
                yield step
                step, room = [], _STEP
            step.append(Share(path, references))
            room -= references.count
    if step:
        yield step


def prepared_ahead(steps: Iterator[list[Share]]) -> Iterator[list[Share]]:
    """Yield the steps. Each is read by another thread while the one before is committed."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, steps, None)
        while (step := following.result()) is not None:
            following = pool.submit(next, steps, None)
            yield step


def _parts(node: ArrayNode) -> Iterator[Manifest]:
    """Yield the references of an array in row-major order, those of several manifests at a time."""
    grid = node.grid.grid_shape
    if is_late(node.manifest) and grid:
        for number, record in StreamedRecords(as_joined(node.manifest, grid), grid, record_size(node), _never):
            assert not isinstance(record, StoredRecord)
            if len(record.place):
                yield rows_of(to_manifest(record, number * record_size(node), grid), slice(None))
        return
    for begin, end in _spans(_edges(node)):
        yield rows_of(node.manifest, slice(begin, end))


def _never(_: object) -> bool:
    return False


def record_size(node: ArrayNode) -> int:
    """Return the number of chunks in the manifests that share positions along the first axis."""
    grid = node.grid.grid_shape
    return split_sizes(node).get(0, grid[0]) * prod(grid[1:])


def to_manifest(rows: Rows, first: int, grid: tuple[int, ...]) -> Manifest:
    """Return the chunks of a record whose first chunk has number `first`."""
    return Manifest(
        index=np.stack(np.unravel_index(first + rows.place, grid), axis=1),
        address=rows.address,
        nbytes=rows.nbytes,
        source=rows.source,
        inline=_unravel_keys(rows, first, grid),
    )


def _unravel_keys(rows: Rows, first: int, grid: tuple[int, ...]) -> dict[tuple[int, ...], bytes]:
    places = np.unravel_index(first + np.array(list(rows.inline), np.int64), grid)
    return dict(zip(zip(*(axis.tolist() for axis in places), strict=True), rows.inline.values(), strict=True))


def rows_of(manifest: ChunkLocations, rows: Any) -> Manifest:
    """Return some of the references, without inlined chunks."""
    source = manifest.source
    return Manifest(
        index=manifest.index[rows],
        address=manifest.address[rows],
        nbytes=manifest.nbytes[rows],
        source=source if isinstance(source, int | np.integer) else source[rows],
    )


def _spans(edges: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, as long as a step allows."""
    begin = 0
    while begin < len(edges) - 1:
        end = max(begin + 1, int(np.searchsorted(edges, edges[begin] + _STEP, "right")) - 1)
        yield int(edges[begin]), int(edges[end])
        begin = end


def _edges(node: ArrayNode) -> Sequence[int]:
    """Return the rows with which the manifests of an array begin, and the number of rows."""
    count, sizes = node.manifest.count, split_sizes(node)
    if not sizes or count <= _STEP:
        return [0, count]
    axis, index, grid = max(sizes), node.manifest.index, node.grid.grid_shape
    block = index[:, axis] // sizes[axis]
    for before in range(axis):  # blocks have one chunk along the axes before
        block = block + index[:, before] * prod([*grid[before + 1 : axis], -(-grid[axis] // sizes[axis])])
    return [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), count]


@contextmanager
def temporary_branch(repository: Any, snapshot: str) -> Iterator[str]:
    """Yield the name of a new branch that starts with a snapshot, and is removed in the end."""
    _remove_abandoned(repository)
    name = f"{_NAME}{int(time.time())}-{secrets.token_hex(4)}"
    repository.create_branch(name, snapshot)
    try:
        yield name
    finally:
        with suppress(Exception):
            repository.delete_branch(name)


def _remove_abandoned(repository: Any) -> None:
    """Remove the temporary branches of writers that were killed: nothing was committed to them for an hour."""
    for name in repository.list_branches():
        moment = name.removeprefix(_NAME).partition("-")[0]
        if name.startswith(_NAME) and moment.isdigit():
            with suppress(Exception):  # another run may have removed it
                newest = repository.lookup_snapshot(repository.lookup_branch(name)).written_at.timestamp()
                if time.time() - max(newest, int(moment)) > _ABANDONED_SECONDS:
                    repository.delete_branch(name)
