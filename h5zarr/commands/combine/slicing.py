"""Cut ranges out of an array, by its chunks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from h5zarr.zarr_model.chunk_selection import ChunkAxis
from h5zarr.zarr_model.codecs import split_crop
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Manifest
from h5zarr.zarr_model.joined_manifest import JoinedManifest, as_joined, is_late


class _Run(NamedTuple):
    """Neighbouring chunks along an axis that are stored in the same length: the first and the number after the last,
    their elements, and the length.
    """

    first: int
    end: int
    start: int
    length: int
    chunk: int


@dataclass(frozen=True, slots=True, eq=False)
class RegularRun:
    """A part of an array that has a regular chunk grid, and where it begins, by dimension."""

    node: ArrayNode
    starts: Mapping[int, int]


def regular_runs(node: ArrayNode, axes: Collection[int]) -> list[RegularRun]:
    """Return the parts of an array that have regular grids, divided along some axes, which include all uneven ones.

    An array that was joined before has chunks of different lengths; each of its files has a regular grid.
    """
    if isinstance(node.grid, RegularGrid) or not axes:
        return [RegularRun(node, {})]
    stored_shape, codecs = split_crop(node.codecs, len(node.shape))
    runs = [
        _find_runs(axis, None if stored_shape is None else stored_shape[number])
        for number, axis in enumerate(node.grid.axes)
    ]
    found = []
    is_streamed = is_late(node.manifest) and all(len(some) == 1 for some in runs[1:])
    ordered = node.manifest if is_streamed else _in_order(node.manifest)
    for parts in product(*runs):
        grid = RegularGrid(tuple(one.length for one in parts), tuple(one.chunk for one in parts))
        manifest = _window(node, parts[0].first, parts[0].end) if is_streamed else _take_chunks(ordered, parts)
        made = replace(node, grid=grid, codecs=tuple(codecs), manifest=manifest)
        found.append(RegularRun(made, {number: one.start for number, one in enumerate(parts)}))
    return found


def uneven_axes(node: ArrayNode) -> list[int]:
    """Return the axes along which chunks have different lengths, or not all elements of a stored chunk are used."""
    if isinstance(node.grid, RegularGrid):
        return []
    stored_shape, _ = split_crop(node.codecs, len(node.shape))
    stored = stored_shape or (None,) * len(node.shape)
    return [number for number, axis in enumerate(node.grid.axes) if len(_find_runs(axis, stored[number])) > 1]


def _find_runs(axis: ChunkAxis, stored: int | None) -> list[_Run]:
    """Return the runs along an axis. If chunks are cropped, the last one of each run may be used in part."""
    numbers = np.arange(axis.count, dtype=np.int64)
    begin, end = axis.bounds(numbers)
    lengths = axis.stored_lengths(numbers) if stored is None else np.full(len(numbers), stored)
    is_last = np.ones(len(numbers), bool)
    is_last[:-1] = (lengths[1:] != lengths[:-1]) | (end - begin != lengths)[:-1]
    lasts = np.flatnonzero(is_last)
    firsts = np.append(0, lasts[:-1] + 1)[: len(lasts)]
    return [
        _Run(first, last + 1, int(begin[first]), int(end[last] - begin[first]), int(lengths[first]))
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    ] or [_Run(0, 0, 0, axis.length, stored or axis.longest)]


def _in_order(manifest: ChunkLocations) -> ChunkLocations:
    """Return the chunks in the order of the first axis, as h5zarr writes them."""
    column = manifest.index[:, 0]
    if not (np.diff(column) < 0).any():
        return manifest
    order = np.argsort(column, kind="stable")
    return Manifest(
        index=manifest.index[order],
        address=manifest.address[order],
        nbytes=manifest.nbytes[order],
        source=manifest.source if isinstance(manifest.source, int) else manifest.source[order],
        inline=manifest.inline,
    )


def _take_chunks(manifest: ChunkLocations, parts: tuple[_Run, ...]) -> Manifest:
    """Return the chunks in a run of each axis, with their numbers in it."""
    # There may be a run for each file, so the rows are not all compared for each of them.
    rows = slice(*np.searchsorted(manifest.index[:, 0], [parts[0].first, parts[0].end]).tolist())
    index = manifest.index[rows]
    firsts, ends = (np.array(column, np.int64) for column in list(zip(*parts, strict=True))[:2])
    kept = ((index >= firsts) & (index < ends)).all(axis=1)
    source = manifest.source if isinstance(manifest.source, int) else manifest.source[rows][kept]
    return Manifest(
        index=index[kept] - firsts,
        address=manifest.address[rows][kept],
        nbytes=manifest.nbytes[rows][kept],
        source=source,
        inline={
            tuple(at - one.first for at, one in zip(key, parts, strict=True)): content
            for key, content in manifest.inline.items()
            if all(one.first <= at < one.end for at, one in zip(key, parts, strict=True))
        },
    )


def _window(node: ArrayNode, first: int, end: int) -> JoinedManifest:
    """Return the chunks from number `first` along the first axis on, before `end`. They are not read."""
    return as_joined(node.manifest, node.grid.grid_shape).window(first, end)


def slice_array(node: ArrayNode, axis: int, start: int, length: int) -> tuple[ArrayNode, int]:
    """Return the chunks with `length` elements from `start` on, and how many elements they have before `start`."""
    chunk = node.chunk_shape[axis]
    first, skipped = divmod(start, chunk)
    count = -(-(skipped + length) // chunk)
    shape = list(node.shape)
    shape[axis] = skipped + length
    grid, manifest = RegularGrid(tuple(shape), node.chunk_shape), node.manifest
    if axis == 0 and is_late(manifest):
        return replace(node, grid=grid, manifest=_window(node, first, first + count)), skipped
    kept = (manifest.index[:, axis] >= first) & (manifest.index[:, axis] < first + count)
    index = manifest.index[kept].copy()
    index[:, axis] -= first
    source = manifest.source if isinstance(manifest.source, int) else manifest.source[kept]
    return (
        replace(
            node,
            grid=grid,
            manifest=Manifest(
                index=index,
                address=manifest.address[kept],
                nbytes=np.asarray(manifest.nbytes)[kept],
                source=source,
                inline={
                    (*key[:axis], key[axis] - first, *key[axis + 1 :]): content
                    for key, content in manifest.inline.items()
                    if first <= key[axis] < first + count
                },
            ),
        ),
        skipped,
    )
