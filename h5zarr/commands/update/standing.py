"""The cube as it stands, as a source of its next state: without the files that leave it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.cube import join_pieces
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.settings import Choices
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import NotJoinable
from h5zarr.opening import Opened
from h5zarr.zarr_model.hierarchy import ArrayNode


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The cube as a piece. `constants` are variables that it took from a file that leaves; another must have them."""

    piece: CubePiece
    constants: frozenset[str] = frozenset()


def stand(opened: Opened, leaving: Collection[str]) -> Standing | None:
    """Return a cube with all of its files but those that are `leaving`; None if none is left."""
    layout = opened.cube
    assert layout is not None
    columns = layout.columns
    kept = [number for number, url in enumerate(columns.urls) if url not in leaving]
    if not kept:
        return None
    hierarchy, lost = opened.hierarchy, frozenset[str]()
    if columns.urls[0] in leaving:
        # Constants are those of the first file, and another one will be the first.
        names = {axis.rpartition("/")[2] for axis in layout.axes}
        nodes = {
            path: node
            for path, node in hierarchy.nodes.items()
            if not isinstance(node, ArrayNode) or names & set(node.dimension_names)
        }
        lost = frozenset(hierarchy.nodes.keys() - nodes.keys())
        hierarchy = replace(hierarchy, nodes=nodes)
    made = replace(opened, hierarchy=hierarchy, cube=replace(layout, pieces=columns.take(np.array(kept))))
    return Standing(CubePiece(opened.url, made, frozenset(leaving)), lost)


def lift(
    piece: CubePiece, cube: CubePiece | None, along: tuple[Along, ...], inlining: Inlining, choices: Choices
) -> CubePiece:
    """Return a file with the axes that the cube has and the file does not: new dimensions of length 1.

    Coordinates that come from the name of the file, or from its attributes, become a variable. Raises NotJoinable if
    the file has none, or one of another kind than the cube.
    """
    known = {name for node in piece.arrays.values() for name in node.dimension_names}
    if all(one.name in known and one.coordinate_of is None for one in along):
        return piece
    alone = [Along(one.name, one.coordinate_of) for one in along]
    made = join_pieces([piece], alone, inlining, choices)
    for one in along if cube is not None else ():
        assert cube is not None
        ours, theirs = (nodes.get(f"/{one.name}") for nodes in (made.arrays(), cube.arrays))
        if (
            ours is not None
            and theirs is not None
            and (ours.data_type == "string") is not (theirs.data_type == "string")
        ):
            what = (
                f"{piece.name}: its coordinate {one.name} is {ours.data_type}, and that of the cube {theirs.data_type}"
            )
            raise NotJoinable(what, remedy="Make the cube anew.")
    return replace(piece, opened=replace(piece.opened, hierarchy=made.hierarchy))
