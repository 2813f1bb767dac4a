"""Write many references in several commits, so that memory does not grow with their number.

Icechunk keeps about 400 bytes for each reference until it is committed. So references are committed in steps to a
temporary branch. The branch of the user then moves from its old to its new snapshot, once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from h5zarr.containers.icechunk.virtual_refs import split_sizes
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Hierarchy, Manifest

_STEP = 200_000  # references in a commit, if manifests allow
_NAME = "h5zarr-writing-"
_ABANDONED_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the references of an array: rows of its manifest."""

    path: str
    rows: slice

    def of(self, manifest: ChunkLocations) -> Manifest:
        """Return these rows, without inlined chunks."""
        source = manifest.source
        return Manifest(
            index=manifest.index[self.rows],
            address=manifest.address[self.rows],
            nbytes=manifest.nbytes[self.rows],
            source=source if isinstance(source, int | np.integer) else source[self.rows],
        )


def plan_steps(hierarchy: Hierarchy) -> list[list[Share]]:
    """Return the references to set before each commit. No manifest gets references in two steps."""
    steps: list[list[Share]] = []
    room = 0
    for path, node in hierarchy.nodes.items():
        if not isinstance(node, ArrayNode) or not node.manifest.count:
            continue
        edges = _edges(node)
        begin = 0
        while begin < len(edges) - 1:
            if room <= 0 or (room < _STEP and edges[begin + 1] - edges[begin] > room):
                steps.append([])
                room = _STEP
            end = max(begin + 1, int(np.searchsorted(edges, edges[begin] + room, "right")) - 1)
            steps[-1].append(Share(path, slice(int(edges[begin]), int(edges[end]))))
            room -= int(edges[end] - edges[begin])
            begin = end
    return steps


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
