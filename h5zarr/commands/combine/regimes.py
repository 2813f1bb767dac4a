"""Regimes: the members of a variable that can share one array, because they are stored and decoded in the same way."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from h5zarr.commands.combine.inline_values import inline_manifest, needed_nbytes
from h5zarr.commands.combine.members import Member
from h5zarr.encode.inlining import Budget
from h5zarr.errors import H5ZarrError, Unrepresentable
from h5zarr.filters.pipeline import redo_filters, undo_filters
from h5zarr.zarr_model.codecs import find_filter
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json

_LEVELS = ("level", "clevel")  # settings of compressors that do not matter for decoding
_FEW = 8


def group_regimes(members: Sequence[Member], *, whole_chunks: bool = False) -> list[list[Member]]:
    """Return the members by regime, in the order of their first members.

    With `whole_chunks`, the members of a regime also have chunks of the same length along the joined axes.
    """
    found: dict[Hashable, list[Member]] = {}
    for number, one in enumerate(members):
        # Only its own array can describe a member that begins inside a chunk.
        key = (_signature(one, whole_chunks=whole_chunks), number if one.skipped else None)
        found.setdefault(key, []).append(one)
    return [some for group in found.values() for some in _by_fill(group)]


def _signature(member: Member, *, whole_chunks: bool) -> Hashable:
    """Return what all members of a regime have in common. Compression levels do not matter."""
    node = member.node
    codecs = [{**codec, "configuration": _decisive(codec.get("configuration", {}))} for codec in node.codecs]
    chunks = [None if axis in member.box and not whole_chunks else chunk for axis, chunk in enumerate(node.chunk_shape)]
    across = [length for axis, length in enumerate(node.shape) if axis not in member.box]  # differs only for text
    # Parameters become an array along the joined axis. Along several axes, it could be as large as the variable.
    numbers = member.meaning.numbers if len(member.box) > 1 else None
    return json.dumps([node.data_type, codecs, chunks, across]), member.meaning.kind, numbers


def _decisive(configuration: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in configuration.items() if name not in _LEVELS}


def _by_fill(members: Sequence[Member]) -> list[list[Member]]:
    """Return the members by the value of their unwritten chunks. Members without such chunks join the first ones."""
    found: dict[str, list[Member]] = {}
    complete: list[Member] = []
    for one in members:
        if has_gaps(one.node):
            found.setdefault(json.dumps(one.node.fill_value), []).append(one)
        else:
            complete.append(one)
    if len(found) < 2:
        return [list(members)]
    first, *others = found.values()
    return [sorted([*first, *complete], key=lambda one: one.place), *others]


def has_gaps(node: ArrayNode) -> bool:
    """Return whether some chunks are not written, and read as the fill value."""
    return node.manifest.count + node.manifest.inline_count < node.grid.chunk_count


def adapt_few(regimes: list[list[Member]], budget: Budget) -> tuple[list[list[Member]], list[Member]]:
    """Encode a few members that are stored differently like most others, and inline them, if the budget allows it.

    Returns the regimes, and the members that were encoded again.
    """
    usual = max(regimes, key=lambda some: sum(one.node.grid.chunk_count for one in some))
    like = usual[0]
    odd = [one for some in regimes if some is not usual for one in some if _is_alike(one, like)]
    if like.is_padded:
        return regimes, []
    count, total = _count_files(odd), _count_files([one for some in regimes for one in some])
    nbytes = sum(map(needed_nbytes, odd))
    if not odd or count > max(_FEW, total // 20) or 2 * count > total or not budget.allows(nbytes):
        return regimes, []
    try:
        adapted = [_encode_again(one, like) for one in odd]
    except H5ZarrError:  # a codec of another tool, or one that loses information
        budget.give_back(nbytes)
        return regimes, []
    merged = sorted([*usual, *adapted], key=lambda one: one.place)
    others = [[one for one in some if one not in odd] for some in regimes if some is not usual]
    return [merged, *filter(None, others)], odd


def _count_files(members: Sequence[Member]) -> int:
    """Return how many files some members come from. A cube among the pieces counts for all of its files."""
    return sum({one.number: one.piece.file_count for one in members}.values())


def _is_alike(one: Member, like: Member) -> bool:
    """Return whether the values of a member can be stored like those of another, without a change of meaning."""
    numbers = [one.meaning.numbers, like.meaning.numbers] if len(one.box) > 1 else []
    return (
        one.dtype.newbyteorder("=") == like.dtype.newbyteorder("=")
        and one.dtype.kind in "biufcS"
        and one.meaning.kind == like.meaning.kind
        and len(set(numbers)) < 2
    )


def _encode_again(member: Member, like: Member) -> Member:
    """Return a member with all chunks inlined, encoded like those of another one."""
    first, *others = like.node.codecs
    if first["name"] != "bytes" or like.skipped:
        raise Unrepresentable("only numbers are encoded again, in whole chunks")
    values = member.values().astype(like.dtype, copy=False)
    grid = RegularGrid(values.shape, like.node.chunk_shape)
    filters = [find_filter(codec) for codec in others]
    inline = {}
    for number in range(grid.chunk_count):
        index = grid.index(number)
        part = values[grid.part(index)]
        chunk = np.zeros(grid.chunk_shape, values.dtype)
        chunk[tuple(map(slice, part.shape))] = part
        content = chunk.tobytes()
        inline[index] = redo_filters(content, filters)
        if undo_filters(inline[index], filters, 0, len(content)) != content:
            raise Unrepresentable("a filter of these files loses information")
    manifest = inline_manifest(len(grid.shape), inline)
    node = replace(like.node, grid=grid, attributes=member.node.attributes, manifest=manifest)
    return replace(member, node=node, skipped={})
