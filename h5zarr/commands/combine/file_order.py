"""The files of a cube that was joined with others: in the order of the axis, and without those that left it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import MalformedFile, NotJoinable
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Manifest
from h5zarr.zarr_model.joined_manifest import JoinedManifest


class Orphaned(NotJoinable):
    """The cube still needs a file that leaves it."""


def arrange_files(
    hierarchy: Hierarchy, layout: CubeLayout, pieces: Sequence[CubePiece]
) -> tuple[Hierarchy, tuple[SourceState, ...]]:
    """Return the references with their files in the order of the layout, each followed by the files it refers to.

    `pieces` are in the order of the URLs. Raises Orphaned if there are still references to a file that left a cube.
    """
    urls = hierarchy.urls
    states = dict(enumerate(state for piece in pieces for state in piece.known_states()))
    arranged = _find_order(pieces, layout.columns.urls)
    known = tuple(state for number in arranged if (state := states[number]) is not None)
    if arranged == list(range(len(urls))):
        return hierarchy, known
    table = np.full(max(1, len(urls)), -1, np.int32)
    table[arranged] = np.arange(len(arranged), dtype=np.int32)
    nodes: dict[str, ArrayNode | GroupNode] = {}
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode) or not node.manifest.count:
            nodes[path] = node
            continue
        manifest = node.manifest
        if isinstance(manifest, JoinedManifest):
            nodes[path] = replace(
                node, manifest=_renumber(path, manifest, table, is_complete=len(arranged) == len(urls))
            )
            continue
        source = table[manifest.source]
        if np.any(source < 0):
            raise Orphaned(f"{path}: it is taken from a file that leaves the cube")
        nodes[path] = replace(
            node,
            manifest=Manifest(
                index=manifest.index,
                address=manifest.address,
                nbytes=manifest.nbytes,
                source=source if isinstance(source, np.ndarray) else int(source),
                inline=manifest.inline,
            ),
        )
    return replace(hierarchy, nodes=nodes, urls=tuple(urls[number] for number in arranged)), known


def _renumber(
    path: str, manifest: JoinedManifest, table: npt.NDArray[np.int32], *, is_complete: bool
) -> JoinedManifest:
    """Return chunks with new numbers of files. They are only read if files leave, to find references to these."""
    renumbered = manifest.renumbered(table)
    try:
        for _ in () if is_complete else renumbered.slabs():
            pass
    except MalformedFile:
        raise Orphaned(f"{path}: it is taken from a file that leaves the cube") from None
    return renumbered


def _find_order(pieces: Sequence[CubePiece], own: Sequence[str]) -> list[int]:
    """Return the numbers of the URLs to keep. In a cube, those between two of its files belong to the first of them."""
    groups: dict[str, range] = {}
    others: list[int] = []
    first = 0
    for piece in pieces:
        urls, cube = piece.hierarchy.urls, piece.opened.cube
        files = {piece.opened.source} if cube is None else set(cube.columns.urls) | piece.left
        begins = sorted({urls.index(url) for url in files if url in urls} if cube is None else _begins(urls, files))
        for begin, end in zip(begins, [*begins[1:], len(urls)], strict=True):
            if urls[begin] not in piece.left:
                groups[urls[begin]] = range(first + begin, first + end)
        others += range(first, first + (begins[0] if begins else len(urls)))
        first += len(urls)
    return [*others, *[number for url in dict.fromkeys(own) if url in groups for number in groups[url]]]


def _begins(urls: Sequence[str], files: Collection[str]) -> list[int]:
    """Return where the URLs of each file begin: at its own."""
    return list({url: number for number, url in reversed(list(enumerate(urls))) if url in files}.values())
