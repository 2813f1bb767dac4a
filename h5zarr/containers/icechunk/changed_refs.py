"""What changes in a repository when a cube is updated: only that is written, so that commits stay small. Pure.

Icechunk writes a manifest again if any of its references changes. Manifests that an update does not touch stay as they
are, and so do their files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.containers.icechunk.steps import record_size, rows_of, to_manifest
from h5zarr.containers.icechunk.virtual_refs import split_sizes
from h5zarr.containers.late_manifest import LateManifest
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.record_totals import count_records
from h5zarr.containers.streamed_records import StoredRecord, StreamedRecords
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Hierarchy, Manifest, RecordTotals
from h5zarr.zarr_model.joined_manifest import as_joined, is_late

_MOST = 200_000  # references to set; writing everything anew in steps takes less memory
_MOST_DELETED = 20_000
_MOST_IN_MEMORY = 2_000_000
Numbers = npt.NDArray[np.int64]
_MOST_NUMBER = np.iinfo(np.int64).max


@dataclass(slots=True)
class ChangedReferences:
    """References to set, by the path of the array; inlined chunks to set, by key; keys and nodes to delete.

    `totals` has those of the records of large arrays, and `blocks` the names of the blocks of files that are there.
    """

    references: dict[str, Manifest] = field(default_factory=dict)
    inline: dict[str, bytes] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    totals: dict[str, Mapping[int, RecordTotals]] = field(default_factory=dict)
    blocks: Sequence[str] = ()

    @property
    def used(self) -> list[int]:
        """The numbers of the files that references to set point to."""
        return sorted({number for one in self.references.values() for number in np.unique(one.source).tolist()})

    @property
    def is_too_large(self) -> bool:
        """Return whether it takes less memory to write everything anew, in steps."""
        count = sum(one.count for one in self.references.values())
        return count > _MOST or len(self.deleted) > _MOST_DELETED


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
            if not _compare_arrays(path, known, node, table, made):
                return None
            if made.is_too_large:
                return None
    return made


def _compare_arrays(
    path: str, before: ArrayNode | None, node: ArrayNode, table: Numbers, made: ChangedReferences
) -> bool:
    """Add the changes of one array. Return whether that was possible, and worth it.

    `table` has the new numbers of unchanged files by the old ones.
    """
    old = None if before is None else before.manifest
    if before is not None and isinstance(old, LateManifest) and old.known is not None and is_late(node.manifest):
        return _compare_records(path, before, old, node, table, made)
    if max(node.manifest.count, 0 if old is None else old.count) > _MOST_IN_MEMORY:
        return False
    if split_sizes(node):
        made.totals[path] = count_records(node.manifest, node.grid.grid_shape, record_size(node))
    return _compare(path, old, node.manifest, table, made)


def _compare_records(
    path: str, before: ArrayNode, old: LateManifest, node: ArrayNode, table: Numbers, made: ChangedReferences
) -> bool:
    """Add the changes of an array whose records are read only if they are not stored in the same place."""
    grid, known, size = node.grid.grid_shape, old.known, old.record_size
    if known is None or size != record_size(node) or grid[1:] != before.grid.grid_shape[1:]:
        return False
    totals: dict[int, RecordTotals] = {}
    gone = set(known.totals)
    records = StreamedRecords(as_joined(node.manifest, grid), grid, size, lambda one: one.token == known.token)
    for number, record in records:
        if isinstance(record, StoredRecord):
            if record.number != number:
                return False  # what follows has moved, too
            totals[number] = record.totals
        else:
            new = to_manifest(record, number * size, grid)
            totals |= count_records(new, grid, size)
            was = old.read_records([number])[0] if number in gone else rows_of(new, slice(0))
            if not _compare(path, was, new, table, made) or made.is_too_large:
                return False
        gone.discard(number)
    made.totals[path] = totals
    vanished = old.read_records(sorted(gone))
    return all(_compare(path, was, rows_of(was, slice(0)), table, made) for was in vanished)


def _compare(
    path: str, old: ChunkLocations | None, manifest: ChunkLocations, table: Numbers, made: ChangedReferences
) -> bool:
    """Add the changes of the references of an array, or of a part of it, and return True."""
    prefix = KeyLayout(path, "c", "/", manifest.index.shape[1]).prefix
    inline = manifest.inline
    if old is None:
        _add(made, path, rows_of(manifest, slice(None)))
        made.inline |= {_key(prefix, index): content for index, content in inline.items()}
        return True
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
    _add(made, path, rows_of(manifest, np.flatnonzero(~same)))
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


def _add(made: ChangedReferences, path: str, references: Manifest) -> None:
    if references.count:
        known = made.references.get(path)
        made.references[path] = references if known is None else _join(known, references)


def _join(one: Manifest, other: Manifest) -> Manifest:
    sources = [np.broadcast_to(np.asarray(part.source, np.int32), part.count) for part in (one, other)]
    return Manifest(
        index=np.concatenate((one.index, other.index)),
        address=np.concatenate((one.address, other.address)),
        nbytes=np.concatenate((one.nbytes, other.nbytes)),
        source=np.concatenate(sources),
    )


def _key(prefix: str, index: Collection[int]) -> str:
    return prefix + "/".join(map(str, index))
