"""Each variable of a cube: what differs between the files, and the array that results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.axes import CubeAxis, NotJoinable
from h5zarr.commands.combine.cube_members import Member, times_of
from h5zarr.commands.combine.joining import Placed, join_arrays
from h5zarr.commands.combine.pieces import names_of
from h5zarr.commands.combine.times import CommonTimes
from h5zarr.encode.inlining import Budget
from h5zarr.errors import Unrepresentable
from h5zarr.filters.pipeline import redo_filters
from h5zarr.tree import StoredForm
from h5zarr.zarr_model.codecs import byte_order, find_filter
from h5zarr.zarr_model.data_types import decode_data_type, encode_dtype, encode_serializer
from h5zarr.zarr_model.fill_values import encode_fill
from h5zarr.zarr_model.grid import RegularGrid, whole_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing
from h5zarr.zarr_model.vlen_text import encode_texts

Values = npt.NDArray[Any]
_MEANING = ("scale_factor", "add_offset", "missing_value", "_Unsigned", "units", "calendar")
_LEVELS = ("level", "clevel")
_LEAVE_OUT = "Leave the variable out with exclude=[PATH]."


def join_variable(
    path: str, members: Sequence[Member], axes: Sequence[CubeAxis], times: Mapping[str, CommonTimes], budget: Budget
) -> ArrayNode:
    """Return one array of the members. Raises NotJoinable, which names the files and the reason."""
    first = members[0].node
    _check_shapes(path, members, axes)
    own = [axis for axis in axes if axis.name in first.dimension_names]
    lengths = {first.dimension_names.index(axis.name): axis.lengths for axis in own}
    boxes = prod(len(axis.lengths) for axis in own)
    _check_meaning(path, members, but_units=path in times)
    if _is_small(members, lengths, budget) or path in times:
        return _write_inline(path, members, lengths, times.get(path), boxes, budget)
    fill_value = _choose_fill(path, members, is_complete=len(members) == boxes)
    usual = _most_common(members)
    alike = [one for one in members if _signature(one.node) == _signature(usual.node)]
    odd = [one for one in members if _signature(one.node) != _signature(usual.node)]
    placed = [one.placed() for one in alike] + [_encode_again(path, one, usual.node, budget) for one in odd]
    try:
        return join_arrays(placed, lengths, fill_value)
    except Unrepresentable as error:
        raise NotJoinable(f"{path}: {error}", remedy=_LEAVE_OUT) from None


def _check_shapes(path: str, members: Sequence[Member], axes: Sequence[CubeAxis]) -> None:
    """Raise NotJoinable unless all members have the same dimensions, and the same lengths except along the axes."""
    joined = {axis.name for axis in axes}
    first = members[0]
    for one in members:
        if one.node.dimension_names != first.node.dimension_names:
            named = [f"({', '.join(member.node.dimension_names)}) in {member.piece.name}" for member in (first, one)]
            raise NotJoinable(f"{path}: its dimensions are {named[0]} and {named[1]}", remedy=_LEAVE_OUT)
        for name, length, other in zip(first.node.dimension_names, first.node.shape, one.node.shape, strict=True):
            if name not in joined and length != other:
                what = f"{path}: {name} has {length} elements in {first.piece.name} and {other} in {one.piece.name}"
                raise NotJoinable(what)


def _check_meaning(path: str, members: Sequence[Member], *, but_units: bool) -> None:
    """Raise NotJoinable if the numbers do not mean the same in all files. `but_units`: times are converted."""
    names = [name for name in _MEANING if not (but_units and name in ("units", "calendar"))]
    by_text: dict[str, list[Member]] = {}
    for one in members:
        text = json.dumps(
            [*[one.node.attributes.get(name) for name in names], _fill_attribute(one), _element_form(one)]
        )
        by_text.setdefault(text, []).append(one)
    if len(by_text) == 1:
        return
    (_, some), (_, others) = list(by_text.items())[:2]
    differing = [name for name in names if some[0].node.attributes.get(name) != others[0].node.attributes.get(name)]
    names_ = names_of([one.piece for one in some]), names_of([one.piece for one in others])
    what = f"{path}: different {' and '.join(differing) or f'{FILL_VALUE} or type'} in {names_[1]} than in {names_[0]}"
    raise NotJoinable(what, remedy=_LEAVE_OUT)


def _element_form(member: Member) -> str:
    """Return how the file means its elements, if their Zarr type does not show it."""
    form = StoredForm() if member.record is None else member.record.form
    return repr((form.number, form.enumeration, form.padding, form.members))


def _fill_attribute(member: Member) -> Json:
    record = member.record
    kept = None if record is None or record.fill_value is None else record.fill_value.value
    return [member.node.attributes.get(FILL_VALUE), kept]


# --- small variables are inlined as one chunk


def _is_small(members: Sequence[Member], lengths: Mapping[int, tuple[int, ...]], budget: Budget) -> bool:
    """Return whether to inline a variable. It must be small, and have one dimension or be inlined in all files."""
    nodes = [one.node for one in members]
    is_inline = all(not node.manifest.count for node in nodes)
    nbytes = sum(_nbytes(node) for node in nodes)
    limit = budget.inlining.coordinate_nbytes * (16 if len(nodes[0].shape) == 1 or is_inline else 0)
    return nbytes <= limit and budget.allows(nbytes)


def _nbytes(node: ArrayNode) -> int:
    inline = sum(map(len, node.manifest.inline.values()))
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    return max(inline, prod(node.shape) * dtype.itemsize)


def _write_inline(
    path: str,
    members: Sequence[Member],
    lengths: Mapping[int, tuple[int, ...]],
    times: CommonTimes | None,
    boxes: int,
    budget: Budget,
) -> ArrayNode:
    """Return an array with all values in one inlined chunk."""
    parts = [(one, _in_common(one, times)) for one in members]
    dtypes = {values.dtype for _, values in parts}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)
    first = members[0].node
    shape = tuple(sum(lengths[axis]) if axis in lengths else length for axis, length in enumerate(first.shape))
    if len(members) < boxes:
        missing, dtype = _missing_value(path, members[0], dtype)
        whole = np.full(shape, missing, dtype)
    else:
        whole = np.empty(shape, dtype)
    for one, values in parts:
        whole[_box(one, lengths, values.shape)] = values
    attributes = dict(first.attributes)
    if times is not None and "units" in attributes:
        attributes["units"] = times.units
    content = encode_texts(whole) if dtype.kind == "O" else whole.tobytes()
    return replace(
        first,
        grid=whole_grid(shape),
        data_type=first.data_type if dtype == _dtype(first) else encode_dtype(dtype),
        codecs=(encode_serializer(dtype),),
        fill_value=first.fill_value if dtype == _dtype(first) else 0,
        attributes=attributes,
        manifest=_inline_manifest(len(shape), {(0,) * len(shape): content} if content else {}),
    )


def _inline_manifest(rank: int, inline: Mapping[tuple[int, ...], bytes]) -> Manifest:
    none = np.empty(0, np.int64)
    return Manifest(index=np.empty((0, rank), np.int64), address=none, nbytes=none, inline=inline)


def _dtype(node: ArrayNode) -> np.dtype[Any]:
    return decode_data_type(node.data_type, byte_order(node.codecs))


def _in_common(member: Member, times: CommonTimes | None) -> Values:
    values = member.values()
    if times is None:
        return values
    units = times_of(member)
    assert units is not None
    return times.convert(values, units)


def _box(member: Member, lengths: Mapping[int, tuple[int, ...]], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the part of the cube that a member fills."""
    slots = dict(member.slots)
    starts = [sum(lengths[axis][: slots[axis]]) if axis in slots else 0 for axis in range(len(shape))]
    return tuple(slice(start, start + length) for start, length in zip(starts, shape, strict=True))


# --- fill values


def _missing_value(path: str, member: Member, dtype: np.dtype[Any]) -> tuple[Any, np.dtype[Any]]:
    """Return the stored value that marks missing data, and the type of the values."""
    found = missing_number(member)
    if found is not None:
        return found, dtype
    if dtype.kind == "f":
        return np.nan, dtype
    what = f"{path}: some files lack it, and its type, {dtype}, has no value for missing data"
    raise NotJoinable(what, remedy=_LEAVE_OUT)


def missing_number(member: Member) -> Any:
    """Return `_FillValue` as a number; None if there is none."""
    value, dtype = member.node.attributes.get(FILL_VALUE), _dtype(member.node)
    found = decode_missing(value, dtype) if dtype.kind in "iuf" else None
    return None if found is None else found[()]


def _choose_fill(path: str, members: Sequence[Member], *, is_complete: bool) -> Json:
    """Return the fill value of the result. It matters only for chunks that a piece does not have."""
    unwritten = [one for one in members if _has_gaps(one.node)]
    fills = {json.dumps(one.node.fill_value): one for one in unwritten}
    if is_complete:
        if len(fills) > 1:
            raise NotJoinable(f"{path}: unwritten chunks have different fill values", remedy=_LEAVE_OUT)
        return (unwritten or members)[0].node.fill_value
    missing, dtype = _missing_value(path, members[0], _dtype(members[0].node))
    encoded: Json = encode_fill(dtype, np.asarray(missing, dtype))
    if fills and set(fills) != {json.dumps(encoded)}:
        one = unwritten[0]
        what = f"{path}: some files lack it, and {one.piece.name} has unwritten chunks with another fill value"
        raise NotJoinable(what, remedy=_LEAVE_OUT)
    return encoded


def _has_gaps(node: ArrayNode) -> bool:
    return node.manifest.count + len(node.manifest.inline) < node.grid.chunk_count


# --- pieces that are stored differently from most


def _signature(node: ArrayNode) -> str:
    """Return, as text, what all chunks of an array must have in common. Compression levels do not matter."""
    codecs = [{**codec, "configuration": _decisive(codec.get("configuration", {}))} for codec in node.codecs]
    return json.dumps([node.data_type, codecs, node.chunk_shape[1:], len(node.shape)])


def _decisive(configuration: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in configuration.items() if name not in _LEVELS}


def _most_common(members: Sequence[Member]) -> Member:
    """Return the first member that is stored like most of the chunks."""
    counts: Counter[str] = Counter()
    example: dict[str, Member] = {}
    for one in members:
        signature = _signature(one.node)
        counts[signature] += one.node.grid.chunk_count
        example.setdefault(signature, one)
    return example[counts.most_common(1)[0][0]]


def _encode_again(path: str, member: Member, like: ArrayNode, budget: Budget) -> Placed:
    """Return a piece that is stored differently, encoded again like most others, and inlined."""
    if _dtype(member.node).newbyteorder("=") != _dtype(like).newbyteorder("="):
        what = f"{path}: its type is {_dtype(member.node)} in {member.piece.name} and {_dtype(like)} in most files"
        raise NotJoinable(what, remedy=_LEAVE_OUT)
    nbytes = _nbytes(member.node)
    if not budget.allows(nbytes):
        what = f"{path}: it is stored differently in {member.piece.name} than in most files"
        remedy = f"Allow {nbytes:,} more bytes to be inlined with max_inline_bytes=NUMBER, or leave it out."
        raise NotJoinable(what, remedy=remedy)
    values = member.values().astype(_dtype(like), copy=False)
    grid = RegularGrid(member.node.shape, like.chunk_shape)
    filters = [find_filter(codec) for codec in like.codecs[1:]]
    inline = {}
    for number in range(grid.chunk_count):
        index = grid.index(number)
        part = values[grid.part(index)]
        chunk = np.zeros(grid.chunk_shape, values.dtype)
        chunk[tuple(map(slice, part.shape))] = part
        inline[index] = redo_filters(chunk.tobytes(), filters)
    manifest = _inline_manifest(len(grid.shape), inline)
    return replace(member.placed(), node=replace(like, grid=grid, manifest=manifest))
