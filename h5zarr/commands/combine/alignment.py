"""Give a variable the same dimensions in all files, as `xarray.concat` does: the same names, in the same order.

A variable that has its dimensions in another order is transposed, and one that lacks the joined dimension is repeated
along it. Arrays of characters are text to xarray: neither the name nor the length of their last dimension matters, so
text is padded to the longest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from h5zarr.commands.combine.cube_axes import Axes
from h5zarr.commands.combine.members import Member, spread
from h5zarr.commands.combine.order import Section
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.settings import some_names
from h5zarr.zarr_model.codecs import byte_order, split_transpose, transpose_codecs
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.grid import make_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest

TextLengths = Mapping[tuple[str, str], int]
"""The greatest length of each dimension of characters, by its group and name."""

_CHARACTER = np.dtype("S1")


def align_variables(
    variables: Mapping[str, Sequence[Member]], pieces: Sequence[CubePiece], axes: Axes
) -> dict[str, Sequence[Member]]:
    """Return the variables by path, with the same dimensions in all files as far as possible."""
    lengths = find_text_lengths(pieces, axes)
    return {
        path: _align_boxes(_align(path, _align_text(path, members, lengths), axes))
        for path, members in variables.items()
    }


def describe_alignment(members: Sequence[Member]) -> list[str]:
    """Return what was changed, with the names of the files."""
    notes = []
    repeated = [one for one in members if len(one.node.shape) > len(one.stored_node.shape)]
    if repeated and len(repeated) < len(members):
        notes.append(f"{some_names(repeated)}: repeated along a dimension that it lacks there")
    known = set(map(id, repeated))
    if turned := [one for one in members if one.order is not None and id(one) not in known]:
        notes.append(f"{some_names(turned)}: transposed, because its dimensions are in another order there")
    if any(one.is_padded for one in members):
        notes.append(f"text of different lengths is padded to {members[0].text_length} characters")
    return notes


# --- the order of dimensions


def _align(path: str, members: Sequence[Member], axes: Axes) -> Sequence[Member]:
    """Return the members with all dimensions that one of them has, in the order of their first appearance."""
    if len({one.node.dimension_names for one in members}) < 2:
        return members
    names = tuple(dict.fromkeys(name for one in members for name in one.node.dimension_names))
    made: list[Member] = []
    for one in members:
        lacking = [name for name in names if name not in one.node.dimension_names]
        axis = axes.find(path, lacking[0]) if lacking else None
        if not lacking:
            made.append(_transpose(one, names))
        elif len(lacking) == 1 and axis is not None and not one.box and axis.sections[one.number]:
            made += [_transpose(part, names) for part in spread(one, axis)]
        else:
            return members
    return made


def _transpose(member: Member, names: tuple[str, ...]) -> Member:
    """Return a member with its dimensions in this order."""
    if member.node.dimension_names == names:
        return member
    own = member.node.dimension_names
    order = tuple(own.index(name) for name in names)
    place = {axis: number for number, axis in enumerate(order)}
    return replace(
        member,
        node=_transpose_array(member.node, order),
        box={place[axis]: member.box[axis] for axis in sorted(member.box, key=place.__getitem__)},
        skipped={place[axis]: count for axis, count in member.skipped.items()},
        order=tuple((member.order or range(len(own)))[axis] for axis in order),
    )


def _transpose_array(node: ArrayNode, order: tuple[int, ...]) -> ArrayNode:
    """Return an array whose dimension i is the dimension `order[i]` of another one. Its chunks stay as they are."""
    manifest = node.manifest
    stored, codecs = split_transpose(node.codecs, len(order))
    place = {axis: number for number, axis in enumerate(order)}
    index = manifest.index[:, list(order)]
    rows = np.lexsort(index.T[::-1])
    return replace(
        node,
        grid=make_grid([node.grid.axes[axis] for axis in order]),
        codecs=transpose_codecs([place[axis] for axis in stored], codecs),
        dimension_names=tuple(node.dimension_names[axis] for axis in order),
        manifest=Manifest(
            index=index[rows],
            address=manifest.address[rows],
            nbytes=np.asarray(manifest.nbytes)[rows],
            source=manifest.source if isinstance(manifest.source, int) else manifest.source[rows],
            inline={tuple(key[axis] for axis in order): content for key, content in manifest.inline.items()},
        ),
    )


def _align_boxes(members: Sequence[Member]) -> Sequence[Member]:
    """Return members that have a range along the same dimensions. Some were divided along more than the joined ones."""
    divided = sorted({axis for one in members for axis in one.box})
    if all(len(one.box) == len(divided) or not one.box for one in members):
        return members
    return [
        replace(one, box={axis: one.box.get(axis, Section(0, 0, one.node.shape[axis])) for axis in divided})
        if one.box and len(one.node.shape) > divided[-1]
        else one
        for one in members
    ]


# --- the length of text


def find_text_lengths(pieces: Sequence[CubePiece], axes: Axes) -> dict[tuple[str, str], int]:
    """Return the greatest length of each dimension that xarray makes part of the text in all files.

    Only arrays of characters have such a dimension, as their last one.
    """
    found: dict[tuple[str, str], int] = {}
    others: set[tuple[str, str]] = set()
    for piece in pieces:
        for path, node in piece.variables.nodes():
            folder, _, name = path.rpartition("/")
            is_text = decode_data_type(node.data_type, byte_order(node.codecs)) == _CHARACTER
            for number, dimension in enumerate(node.dimension_names):
                place = folder, dimension
                if is_text and number == len(node.shape) - 1 and dimension != name:
                    found[place] = max(found.get(place, 0), node.shape[number])
                else:
                    others.add(place)
            others.add((folder, name))
    return {
        place: length
        for place, length in found.items()
        if place not in others and axes.find(f"{place[0]}/", place[1]) is None
    }


def _align_text(path: str, members: Sequence[Member], lengths: TextLengths) -> Sequence[Member]:
    """Return the members with text of the same length. The longest dimension gives the name."""
    folder = path.rpartition("/")[0]
    places = [(folder, one.node.dimension_names[-1]) if one.node.dimension_names else None for one in members]
    if not members or not all(place in lengths for place in places):
        return members
    longest = max((place for place in places if place is not None), key=lengths.__getitem__)
    length, name = lengths[longest], longest[1]
    if all(place == longest and one.node.shape[-1] == length for place, one in zip(places, members, strict=True)):
        return members
    return [
        replace(
            one,
            node=replace(one.node, dimension_names=(*one.node.dimension_names[:-1], name)),
            text_length=length,
        )
        for one in members
    ]
