"""What changes in a repository when a cube is updated: only that is written, so that commits stay small. Pure.

Icechunk writes a manifest again if any of its references changes. Manifests that an update does not touch stay as they
are, and so do their files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.containers.provenance import Provenance
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Hierarchy, Manifest

_MOST = 200_000  # references to set; writing everything anew in steps takes less memory
_MOST_DELETED = 20_000
_MOST_NUMBER = np.iinfo(np.int64).max


@dataclass(slots=True)
class ChangedReferences:
    """References to set, by the path of the array; inlined chunks to set, by key; keys and nodes to delete."""

    references: dict[str, Manifest] = field(default_factory=dict)
    inline: dict[str, bytes] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)


def find_changed_urls(old: Provenance, new: Provenance) -> set[str]:
    """Return the files whose state has changed. References to them need new checksums."""
    before = {source.url: source.identity for source in old.sources}
    return {source.url for source in new.sources if before.get(source.url) != source.identity}


def find_changes(old: Hierarchy, new: Hierarchy, changed: Collection[str]) -> ChangedReferences | None:
    """Return what to write to make `new` out of `old`; None if it is better to write everything.

    `changed` are files that are in another state than before.
    """
    made = ChangedReferences()
    kinds = {path: type(node) for path, node in new.nodes.items()}
    gone = [path for path, node in old.nodes.items() if kinds.get(path) is not type(node)]
    made.nodes = [path for path in gone if not any(path.startswith(f"{above}/") for above in gone if above != path)]
    numbers = {url: number for number, url in enumerate(new.urls) if url not in changed}
    table = np.array([numbers.get(url, -1) for url in old.urls] or [-1], np.int64)
    for path, node in new.nodes.items():
        if isinstance(node, ArrayNode):
            before = old.nodes.get(path)
            known = before if isinstance(before, ArrayNode) and len(before.shape) == len(node.shape) else None
            if known is None and isinstance(before, ArrayNode):
                made.nodes.append(path)
            if not _compare(path, known, node, table, made):
                return None
    count = sum(one.count for one in made.references.values())
    return made if count <= _MOST and len(made.deleted) <= _MOST_DELETED else None


def _compare(
    path: str, before: ArrayNode | None, node: ArrayNode, table: npt.NDArray[np.int64], made: ChangedReferences
) -> bool:
    """Add the changes of one array, and return True. `table` has the new numbers of unchanged files by the old ones."""
    prefix = KeyLayout(path, "c", "/", len(node.shape)).prefix
    manifest, inline = node.manifest, node.manifest.inline
    if before is None:
        if manifest.count:
            made.references[path] = _rows(manifest, np.arange(manifest.count))
        made.inline |= {_key(prefix, index): content for index, content in inline.items()}
        return True
    old = before.manifest
    extents = _extents(old, manifest)
    if prod(extents) > _MOST_NUMBER:
        return False
    ours, theirs = _numbers(manifest.index, extents), _numbers(old.index, extents)
    order = np.argsort(theirs, kind="stable")
    at = np.minimum(np.searchsorted(theirs, ours, sorter=order), max(0, len(theirs) - 1))
    rows = order[at] if len(theirs) else np.zeros(len(ours), np.intp)
    same = np.zeros(len(ours), bool)
    if len(theirs):
        sources = np.broadcast_to(np.asarray(manifest.source), len(ours))
        others = table[np.broadcast_to(np.asarray(old.source), len(theirs))[rows]]
        same = (theirs[rows] == ours) & (old.address[rows] == manifest.address) & (old.nbytes[rows] == manifest.nbytes)
        same &= others == sources
    if not same.all():
        made.references[path] = _rows(manifest, np.flatnonzero(~same))
    lost = old.index[~np.isin(theirs, ours)].tolist()
    made.deleted += [_key(prefix, index) for index in lost if tuple(index) not in inline]
    there = set(map(tuple, manifest.index[np.isin(ours, _numbers_of(old.inline, extents))].tolist()))
    made.deleted += [_key(prefix, index) for index in old.inline if index not in inline and index not in there]
    made.inline |= {_key(prefix, at): content for at, content in inline.items() if old.inline.get(at) != content}
    return True


def _extents(*manifests: ChunkLocations) -> list[int]:
    """Return the extents of a grid that has all chunks."""
    rank = manifests[0].index.shape[1]
    found = [1] * rank
    for one in manifests:
        inline = np.array(list(one.inline), np.int64).reshape(len(one.inline), rank)
        for index in (one.index, inline):
            if len(index) and rank:
                found = np.maximum(found, index.max(axis=0) + 1).tolist()
    return found


def _numbers(index: npt.NDArray[np.int64], extents: list[int]) -> npt.NDArray[np.int64]:
    strides = np.array([prod(extents[axis + 1 :]) for axis in range(len(extents))], np.int64)
    return index @ strides if len(extents) else np.zeros(len(index), np.int64)


def _numbers_of(inline: Mapping[tuple[int, ...], bytes], extents: list[int]) -> npt.NDArray[np.int64]:
    return _numbers(np.array(list(inline), np.int64).reshape(len(inline), len(extents)), extents)


def _rows(manifest: ChunkLocations, rows: npt.NDArray[np.intp]) -> Manifest:
    source = manifest.source
    return Manifest(
        index=manifest.index[rows],
        address=manifest.address[rows],
        nbytes=manifest.nbytes[rows],
        source=source if isinstance(source, int) else source[rows],
    )


def _key(prefix: str, index: Collection[int]) -> str:
    return prefix + "/".join(map(str, index))
