"""Join the chunks of arrays: concatenate manifests in columns, without a loop over chunks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.chunk_selection import ChunkAxis
from h5zarr.zarr_model.codecs import encode_crop
from h5zarr.zarr_model.data_types import find_type
from h5zarr.zarr_model.grid import RegularAxis, RegularGrid, make_axis, make_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest
from h5zarr.zarr_model.joined_manifest import JoinedManifest, Window, as_joined, is_late

_MOST_CHUNKS = 1_000_000  # in an array that is cut into equal chunks
_LEAST_NBYTES = 4_096  # of a chunk that was cut, unless that makes hardly more of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """An array of one piece, and where it belongs: the number of its slot along each joined axis, by dimension.

    `first_url` is added to the source numbers of its manifest.
    """

    node: ArrayNode
    slots: tuple[tuple[int, int], ...]
    first_url: int


@dataclass(frozen=True, slots=True, eq=False)
class JoinedAxis:
    """One dimension of the result: the lengths of its slots, and the length of chunks in each."""

    dimension: int
    lengths: tuple[int, ...]
    chunks: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all chunks except the last have the same length."""
        return len(set(self.chunks)) == 1 and all(length % self.chunks[0] == 0 for length in self.lengths[:-1])

    @property
    def is_padded(self) -> bool:
        """Whether a chunk before the last is stored at full size but only partly used."""
        return any(length % chunk for length, chunk in zip(self.lengths[:-1], self.chunks[:-1], strict=True))

    @property
    def first_chunks(self) -> npt.NDArray[np.int64]:
        """The number of the first chunk of each slot."""
        counts = [-(-length // chunk) for length, chunk in zip(self.lengths, self.chunks, strict=True)]
        return np.cumsum([0, *counts[:-1]], dtype=np.int64)

    def to_axis(self) -> ChunkAxis:
        if self.is_whole:
            return RegularAxis(sum(self.lengths), self.chunks[0])
        lengths = [_divide(length, chunk) for length, chunk in zip(self.lengths, self.chunks, strict=True)]
        lengths[-1][-1:] = self.chunks[-1]  # the last chunk of all may extend past the end
        return make_axis(np.concatenate(lengths), sum(self.lengths))


def _divide(length: int, chunk: int) -> npt.NDArray[np.int64]:
    """Return the lengths of the chunks in a slot; the last has the rest."""
    lengths = np.full(-(-length // chunk), chunk, np.int64)
    if length % chunk:
        lengths[-1] = length % chunk
    return lengths


def join_arrays(placed: Sequence[Placed], lengths: dict[int, tuple[int, ...]], fill_value: Json) -> ArrayNode:
    """Join arrays that have the same type and codecs, and the same chunks across the joined axes.

    `lengths` has the lengths of all slots along each joined dimension. Chunks that no piece has read as `fill_value`.
    Raises Unrepresentable if no chunk grid describes the result.
    """
    placed = _make_equal(placed, lengths)
    first = placed[0].node
    joined = {dimension: _join_axis(placed, dimension, slots) for dimension, slots in lengths.items()}
    codecs = first.codecs
    if any(axis.is_padded for axis in joined.values()):
        if _is_plain(first) and set(joined) == {0}:
            placed = [_trim(one, joined[0]) for one in placed]
        else:
            codecs = (encode_crop(_stored_shape(first, joined)), *codecs)
    axes = [
        joined[dimension].to_axis() if dimension in joined else RegularAxis(length, chunk)
        for dimension, (length, chunk) in enumerate(zip(first.shape, first.chunk_shape, strict=True))
    ]
    grid = make_grid(axes)
    is_streamed = set(joined) == {0} and any(is_late(one.node.manifest) for one in placed)
    manifest = _join_late(placed, joined, grid.grid_shape) if is_streamed else join_manifests(placed, joined)
    return replace(first, grid=grid, codecs=codecs, fill_value=fill_value, manifest=manifest)


def _stored_shape(node: ArrayNode, joined: dict[int, JoinedAxis]) -> tuple[int, ...]:
    """Return the one shape in which all chunks are stored. Raises Unrepresentable if there are several."""
    for axis in joined.values():
        if len(set(axis.chunks)) > 1:
            raise Unrepresentable("chunks are stored in different lengths, and some are only partly filled")
    return node.chunk_shape


def _join_axis(placed: Sequence[Placed], dimension: int, lengths: tuple[int, ...]) -> JoinedAxis:
    """Return one dimension of the result. All pieces in a slot have the same chunk length there.

    A slot that no piece fills has chunks like its neighbours.
    """
    chunks: list[int | None] = [None] * len(lengths)
    for one in placed:
        slot, chunk = dict(one.slots)[dimension], one.node.chunk_shape[dimension]
        if chunks[slot] not in (None, chunk):
            raise Unrepresentable("adjacent pieces have chunks of different lengths")
        chunks[slot] = chunk
    usual = next(chunk for chunk in chunks if chunk is not None)
    found: list[int] = []
    for length, stored in zip(lengths, chunks, strict=True):
        if stored is not None:
            usual = stored
        found.append(usual if stored is not None or length % usual == 0 else max(1, length))
    return JoinedAxis(dimension, lengths, tuple(found))


def _is_plain(node: ArrayNode) -> bool:
    """Return whether chunks contain only the values, one after the other."""
    return [codec["name"] for codec in node.codecs] == ["bytes"] and _element_nbytes(node) is not None


def _element_nbytes(node: ArrayNode) -> int | None:
    found = find_type(node.data_type)
    return None if isinstance(found, str) else found.nbytes


# --- plain values can be cut anywhere along the first axis


def _make_equal(placed: Sequence[Placed], lengths: dict[int, tuple[int, ...]]) -> Sequence[Placed]:
    """Cut plain arrays into chunks of equal length, if this does not take too many chunks."""
    nodes = [one.node for one in placed]
    if set(lengths) != {0} or not all(_is_plain(node) for node in nodes):
        return placed
    chunks = [(node.chunk_shape[0], node.shape[0]) for node in nodes]
    is_last = [dict(one.slots)[0] == len(lengths[0]) - 1 for one in placed]
    common = gcd(*[chunk if chunk < length else length for chunk, length in chunks])
    common = gcd(common, *[length for (_, length), last in zip(chunks, is_last, strict=True) if not last])
    others = prod(-(-n // c) for n, c in zip(nodes[0].shape[1:], nodes[0].chunk_shape[1:], strict=True))
    if common == 0:
        return placed
    count, before = sum(lengths[0]) // common * others, sum(node.grid.chunk_count for node in nodes)
    nbytes = common * prod(nodes[0].chunk_shape[1:]) * (_element_nbytes(nodes[0]) or 1)
    if count > _MOST_CHUNKS or (nbytes < _LEAST_NBYTES and count > 2 * before):
        return placed
    return [replace(one, node=_cut(one.node, common)) for one in placed]


def _cut(node: ArrayNode, length: int) -> ArrayNode:
    """Return a plain array with shorter chunks along the first axis. `length` divides the present length."""
    chunk, element = node.chunk_shape[0], _element_nbytes(node)
    assert element is not None
    row_nbytes = element * prod(node.chunk_shape[1:])
    parts = -(-min(chunk, node.shape[0]) // length)
    if length == chunk:
        return node
    manifest = node.manifest
    offsets = np.arange(parts, dtype=np.int64)
    index = np.repeat(manifest.index, parts, axis=0)
    index[:, 0] = index[:, 0] * parts + np.tile(offsets, manifest.count)
    address = np.repeat(manifest.address, parts) + np.tile(offsets * length * row_nbytes, manifest.count)
    inline = {
        (key[0] * parts + part, *key[1:]): content[part * length * row_nbytes : (part + 1) * length * row_nbytes]
        for key, content in manifest.inline.items()
        for part in range(parts)
    }
    grid = RegularGrid(node.shape, (length, *node.chunk_shape[1:]))
    source = manifest.source if isinstance(manifest.source, int) else np.repeat(manifest.source, parts)
    kept = np.flatnonzero(grid.contains(index))
    kept = kept[np.lexsort(index[kept].T[::-1])]
    made = Manifest(
        index=index[kept],
        address=address[kept],
        nbytes=np.full(len(kept), length * row_nbytes, np.int64),
        source=source if isinstance(source, int) else source[kept],
        inline={key: content for key, content in inline.items() if key[0] < grid.grid_shape[0]},
    )
    return replace(node, grid=grid, manifest=made)


def _trim(placed: Placed, axis: JoinedAxis) -> Placed:
    """Return a plain array whose last chunk has only the bytes of its values. The last chunk of the axis stays."""
    node, slot = placed.node, dict(placed.slots)[0]
    length, chunk = axis.lengths[slot], axis.chunks[slot]
    element = _element_nbytes(node)
    if slot == len(axis.lengths) - 1 or not length % chunk or element is None:
        return placed
    nbytes = element * prod(node.chunk_shape[1:]) * (length % chunk)
    manifest, last = node.manifest, length // chunk
    trimmed = Manifest(
        index=manifest.index,
        address=manifest.address,
        source=manifest.source,
        nbytes=np.where(manifest.index[:, 0] == last, nbytes, manifest.nbytes),
        inline={key: content[:nbytes] if key[0] == last else content for key, content in manifest.inline.items()},
    )
    return replace(placed, node=replace(node, manifest=trimmed))


# --- manifests


def _join_late(placed: Sequence[Placed], joined: dict[int, JoinedAxis], grid: tuple[int, ...]) -> JoinedManifest:
    """Return the chunks of pieces that follow each other along the first axis, of which some are not in memory."""
    firsts = joined[0].first_chunks
    windows: list[Window] = []
    ordered = sorted(placed, key=lambda one: dict(one.slots)[0])
    for late, several in groupby(ordered, lambda one: is_late(one.node.manifest)):
        some = list(several)
        if late:
            for one in some:
                inside = as_joined(one.node.manifest, one.node.grid.grid_shape)
                windows += inside.placed(int(firsts[dict(one.slots)[0]]), one.first_url)
        else:
            last = some[-1].node.grid.grid_shape[0]
            begin, end = (int(firsts[dict(one.slots)[0]]) for one in (some[0], some[-1]))
            chunks = join_manifests(some, joined)
            windows.append(Window(chunks=chunks, grid=grid, first=begin, end=end + last, position=begin))
    return JoinedManifest(windows)


def join_manifests(placed: Sequence[Placed], joined: dict[int, JoinedAxis]) -> Manifest:
    """Return the chunks of all pieces, with their indexes in the joined grid, in row-major order."""
    firsts = {dimension: axis.first_chunks for dimension, axis in joined.items()}
    columns: list[tuple[npt.NDArray[np.int64], ...]] = []
    sources = []
    inline: dict[tuple[int, ...], bytes] = {}
    for one in placed:
        manifest, rank = one.node.manifest, len(one.node.shape)
        shift = np.zeros(rank, np.int64)
        for dimension, slot in one.slots:
            shift[dimension] = firsts[dimension][slot]
        inside = one.node.grid.contains(manifest.index)
        rows = slice(None) if inside.all() else inside
        columns.append((manifest.index[rows] + shift, manifest.address[rows], manifest.nbytes[rows]))
        source = np.broadcast_to(manifest.source, manifest.count)[rows]
        sources.append(np.asarray(source, np.int32) + np.int32(one.first_url))
        inline |= {
            tuple(int(a + b) for a, b in zip(key, shift, strict=True)): content
            for key, content in manifest.inline.items()
        }
    index, address, nbytes = (np.concatenate(column) for column in zip(*columns, strict=True))
    source = np.concatenate(sources)
    if len(index) and index.shape[1]:
        order = np.lexsort(index.T[::-1])
        if (np.diff(order) != 1).any():
            index, address, nbytes, source = index[order], address[order], nbytes[order], source[order]
    return Manifest(index=index, address=address, nbytes=nbytes, source=source, inline=inline)
