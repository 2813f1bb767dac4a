"""Each variable of a cube: what differs between the files, and the arrays that result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from h5zarr.commands.combine.alignment import describe_alignment
from h5zarr.commands.combine.attributes import merge_attributes
from h5zarr.commands.combine.compatibility import check_shapes, check_units
from h5zarr.commands.combine.constants import find_difference
from h5zarr.commands.combine.cube_axes import CubeAxis
from h5zarr.commands.combine.duplicates import resolve_duplicates
from h5zarr.commands.combine.inline_values import (
    is_small,
    make_inline,
    missing_number,
    needed_nbytes,
    require_room,
    write_inline,
)
from h5zarr.commands.combine.members import Member
from h5zarr.commands.combine.parts import Built, build_array, build_inline, find_boxes, own_slots, whole_slots
from h5zarr.commands.combine.regimes import adapt_few, group_regimes, has_gaps
from h5zarr.commands.combine.settings import Context, VariableOutcome, some_names
from h5zarr.commands.combine.times import CommonTimes
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.fill_values import encode_fill
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, GroupRecord, Json, Manifest, VariableRecord
from h5zarr.zarr_model.joined import PARTS_GROUP, JoinedPart, JoinedVariable, part_path
from h5zarr.zarr_model.missing import FILL_VALUE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """What a variable became: nodes by path, its record or its parts, and a summary."""

    outcome: VariableOutcome
    nodes: Mapping[str, ArrayNode | GroupNode] = field(default_factory=dict)
    records: Mapping[str, VariableRecord] = field(default_factory=dict)
    joined: JoinedVariable | None = None


def make_variable(path: str, members: Sequence[Member], context: Context) -> Made:
    """Return the arrays of a variable, or why it is refused."""
    try:
        if not any(one.box for one in members):
            return _keep_constant(path, members, context)
        return _join(path, members, context)
    except (NotJoinable, Unrepresentable) as error:
        reason, remedy = str(error).removeprefix(f"{path}: "), error.remedy
    return Made(outcome=VariableOutcome(path=path, how="refused", notes=(reason, remedy)))


def _keep_constant(path: str, members: Sequence[Member], context: Context) -> Made:
    """Return a variable that has none of the axes. It must be the same in all files, or the user takes the first."""
    notes = []
    if (difference := find_difference(members)) is not None:
        if context.choices.constant == "refuse":
            raise NotJoinable(f"{path}: {difference.text}", remedy=difference.remedy)
        notes = [f"{difference.text}; the first is used"]
    first = members[0]
    if first.is_padded and difference is None:
        first = next((one for one in members if not one.is_padded), first)  # the same text, and nothing to pad
    if first.is_padded:
        return _keep_padded(path, members, context, notes)
    manifest = first.node.manifest
    shifted = Manifest(
        index=manifest.index,
        address=manifest.address,
        nbytes=manifest.nbytes,
        source=manifest.source + first.first_url,
        inline=manifest.inline,
    )
    merged, dropped = merge_attributes(path, members, context.choices.attributes)
    node = replace(first.node, manifest=shifted, attributes=merged)
    outcome = VariableOutcome(path=path, how="constant", notes=(*notes, *dropped))
    return Made(outcome=outcome, nodes={path: node}, records=_records(path, first.record))


def _keep_padded(path: str, members: Sequence[Member], context: Context, notes: Sequence[str]) -> Made:
    """Return text without an axis that is shorter than text in other files, with the length of the longest."""
    first = members[0]
    context.budget.require(needed_nbytes(first), f"{path}: its text is padded to the length of other files")
    merged, dropped = merge_attributes(path, members, context.choices.attributes)
    node = make_inline(np.ascontiguousarray(first.values()), first.node.dimension_names, merged)
    outcome = VariableOutcome(path=path, how="constant", notes=(*notes, *dropped))
    return Made(outcome=outcome, nodes={path: node}, records=_records(path, first.record))


def _records(path: str, record: VariableRecord | None) -> dict[str, VariableRecord]:
    return {} if record is None else {path: record}


def _join(path: str, members: Sequence[Member], context: Context) -> Made:
    members = [one for one in members if all(at.length for at in one.box.values())] or members[:1]  # not of empty files
    check_shapes(path, members, context)
    check_units(path, members, context)
    members, lost = resolve_duplicates(path, members, context)
    is_chosen = lost and context.choices.on_duplicate != "refuse"  # otherwise, what they share is the same
    notes = [f"{some_names(lost)}: a part that another file also has is not used"] if is_chosen else []
    own = context.axes.of(path, members[0].node.dimension_names)
    if len(own) == 1 and (axis := own.get(0)) is not None and axis.is_laid_out and axis.path == path:
        return _lay_out(path, members, axis, context)
    notes += describe_alignment(members)
    axes = _find_axes(path, members, context)
    shape = tuple(axes.get(number, length) for number, length in enumerate(members[0].shape))
    is_complete = sum(prod(one.shape) for one in members) == prod(shape)
    if not is_complete:
        notes.append(_describe_missing(path, members, prod(shape), context))
    if (made := _try_inline(path, members, shape, is_complete, context)) is not None:
        return replace(made, outcome=replace(made.outcome, notes=(*notes, *made.outcome.notes)))
    regimes, again = adapt_few(group_regimes(members), context.budget)
    if again:
        notes.append(f"{some_names(again)}: stored differently from most, so encoded again and inlined")
    if len(regimes) == 1 and not any(one.skipped or one.is_padded for one in regimes[0]):
        try:
            return _make_one(path, regimes[0], axes, is_complete, context, notes)
        except Unrepresentable as error:
            notes.append(str(error).removeprefix(f"{path}: "))
    return _make_parts(path, members, shape, tuple(axes), context, notes)


def _find_axes(path: str, members: Sequence[Member], context: Context) -> dict[int, int]:
    """Return the lengths of the dimensions along which members have ranges, by the number of the dimension."""
    found = {number: axis.length for number, axis in context.axes.of(path, members[0].node.dimension_names).items()}
    for number in members[0].box:
        found.setdefault(number, max(one.box[number].stop for one in members))
    return dict(sorted(found.items()))


def _describe_missing(path: str, members: Sequence[Member], size: int, context: Context) -> str:
    there = {one.number for one in members}
    count = len(next(iter(context.axes.of(path, members[0].node.dimension_names).values())).sections)
    if lacking := count - len(there):
        return f"missing in {lacking:,} of {count:,} files, where it reads as missing data"
    share = 100 * (1 - sum(prod(one.shape) for one in members) / size)
    return f"{share:.3g} % of it is in no file, and reads as missing data"


# --- the coordinate of an axis that is laid out ahead


def _lay_out(path: str, members: Sequence[Member], axis: CubeAxis, context: Context) -> Made:
    """Return the coordinate of an axis with all of its times, whether a file has them or not."""
    times = context.times[path]
    assert axis.values is not None
    assert axis.times is not None
    merged, notes = merge_attributes(path, members, context.choices.attributes)
    kept = {name: value for name, value in merged.items() if name not in (FILL_VALUE, "missing_value")}
    kept |= {"units": times.units, "calendar": axis.times.calendar}
    node = make_inline(times.convert(axis.values, axis.times), (axis.name,), kept, compressed=True)
    outcome = VariableOutcome(path=path, how="inlined", notes=notes)
    record = _inlined_record(members, times)
    return Made(outcome=outcome, nodes={path: node}, records=_records(path, record))


# --- small variables, and times that are converted


def _try_inline(
    path: str, members: Sequence[Member], shape: tuple[int, ...], is_complete: bool, context: Context
) -> Made | None:
    """Return a variable as one inlined chunk; None if it should not or cannot be inlined."""
    times = context.times.get(path)
    try:
        missing = None if is_complete else missing_number(path, members[0], members[0].dtype)
    except Unrepresentable:
        return None
    if not _may_inline(path, members, context):
        return None
    merged, notes = merge_attributes(path, members, context.choices.attributes)
    first = replace(members[0], node=replace(members[0].node, attributes=merged))
    node = write_inline([first, *members[1:]], shape, times, missing)
    if times is not None:
        notes = (*notes, f"times of different units become {times.units!r}")
    outcome = VariableOutcome(path=path, how="inlined", notes=notes)
    return Made(outcome=outcome, nodes={path: node}, records=_records(path, _inlined_record(members, times)))


def _may_inline(path: str, members: Sequence[Member], context: Context) -> bool:
    """Return whether to inline members, and take their bytes from the budget. Times of other units must be inlined."""
    if path in context.times:
        require_room(path, members, context.budget)
        return True
    is_same = len({(one.meaning.kind, one.meaning.numbers) for one in members}) == 1
    return is_same and _have_common_type(members) and is_small(members, context.budget)


def _inlined_record(members: Sequence[Member], times: CommonTimes | None) -> VariableRecord | None:
    """Return the record of members whose values were written again, perhaps as another type."""
    record = members[0].record
    if record is None or (times is None and len({one.dtype for one in members}) == 1):
        return record
    return replace(record, form=replace(record.form, number=None), types={})


def _have_common_type(members: Sequence[Member]) -> bool:
    kinds = {one.dtype.kind for one in members}
    return len({one.dtype for one in members}) == 1 or kinds <= set("iuf")


# --- one array


def _make_one(
    path: str,
    members: Sequence[Member],
    axes: Mapping[int, int],
    is_complete: bool,
    context: Context,
    notes: list[str],
) -> Made:
    """Return a variable as one array. Raises Unrepresentable if that cannot hold it."""
    if not is_complete and len({one.meaning.numbers for one in members}) > 1:
        raise Unrepresentable("files that pack their values differently lack some of them")
    slots = whole_slots(members, axes)
    attributes, dropped = merge_attributes(path, members, context.choices.attributes)
    fill_value = _choose_fill(path, members, is_complete=is_complete)
    built = build_array(members, slots, fill_value, attributes)
    nodes: dict[str, ArrayNode | GroupNode] = {path: built.node}
    record, more = _name_parameters(path, built, context.paths)
    nodes |= more
    if built.parameters:
        notes = [*notes, _describe_parameters(members)]
    if not isinstance(built.node.grid, RegularGrid):
        notes = [*notes, "chunks of different lengths"]
    outcome = VariableOutcome(path=path, how="joined", notes=(*notes, *dropped))
    return Made(outcome=outcome, nodes=nodes, records=_records(path, record))


def _describe_parameters(members: Sequence[Member]) -> str:
    names = [
        name
        for name in members[0].meaning.parameters
        if len({np.asarray(one.meaning.parameters[name]).tobytes() for one in members}) > 1
    ]
    return f'each file has its own {" and ".join(names)}, which only engine="h5zarr" applies'


def _name_parameters(
    path: str, built: Built, taken: frozenset[str]
) -> tuple[VariableRecord | None, dict[str, ArrayNode]]:
    """Return the record with the names of the parameters' variables, and these variables by path."""
    parent, _, name = path.rpartition("/")
    names, nodes = {}, {}
    for parameter, node in built.parameters.items():
        own = f"{name}_{parameter.lstrip('_')}"
        while f"{parent}/{own}" in taken:
            own += "_"
        names[parameter] = own
        nodes[f"{parent}/{own}"] = node
    if not names:
        return built.record, {}
    return replace(built.record or VariableRecord(), parameters=names), nodes


def _choose_fill(path: str, members: Sequence[Member], *, is_complete: bool) -> Json:
    """Return the fill value of an array. It matters only for chunks that no file has."""
    unwritten = [one for one in members if has_gaps(one.node)]
    if is_complete:
        return (unwritten or members)[0].node.fill_value
    dtype = members[0].dtype
    encoded: Json = encode_fill(dtype, np.asarray(missing_number(path, members[0], dtype), dtype))
    if any(json.dumps(one.node.fill_value) != json.dumps(encoded) for one in unwritten):
        raise Unrepresentable("unwritten chunks and missing files read as different values")
    return encoded


# --- several arrays


def _make_parts(
    path: str,
    members: Sequence[Member],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    context: Context,
    notes: list[str],
) -> Made:
    """Return a variable as several arrays in a group of their own, which engine="h5zarr" joins."""
    parent = path.rpartition("/")[0]
    name = path.rpartition("/")[2]
    nodes: dict[str, ArrayNode | GroupNode] = {}
    for folder in (f"{parent}/{PARTS_GROUP}", f"{parent}/{PARTS_GROUP}/{name}"):
        nodes[folder] = GroupNode(attributes={})
    parts = []
    regimes = [members] if path in context.times else group_regimes(members)
    built = [one for some in regimes for one in _build_parts(path, some, context)]
    for number, (some, made) in enumerate(built):
        at = part_path(path, number)
        folder = at.rpartition("/")[0]
        record, more = _name_parameters(at, made, frozenset((at,)))
        own = some[0].piece.hierarchy.nodes.get(parent or "/")
        is_classic = isinstance(own, GroupNode) and own.record is not None and own.record.is_classic
        variables = {} if record is None else {name: record}
        nodes[folder] = GroupNode(attributes={}, record=GroupRecord(is_classic=is_classic, variables=variables))
        nodes |= {at: made.node, **more}
        relative = at.removeprefix(f"{parent}/")
        parts.append(JoinedPart(path=relative, boxes=find_boxes(some, own_slots(some))))
    joined = JoinedVariable(dimension_names=members[0].node.dimension_names, shape=shape, axes=axes, parts=tuple(parts))
    notes = [*notes, *_describe_parts(built)]
    return Made(outcome=VariableOutcome(path=path, how="parts", notes=tuple(notes)), nodes=nodes, joined=joined)


def _build_parts(path: str, members: Sequence[Member], context: Context) -> list[tuple[Sequence[Member], Built]]:
    """Return the arrays of one regime: one array, or one for each shape of chunks."""
    if len(members[0].box) == 1 and _may_inline(path, members, context):
        times, merged = context.times.get(path), merge_attributes(path, members, context.choices.attributes)[0]
        whole = [replace(one, skipped={}) for one in members]
        whole[0] = replace(whole[0], node=replace(whole[0].node, attributes=merged))
        record = _inlined_record(members, times)
        return [(whole, Built(node=build_inline(whole, times), record=record, parameters={}))]
    try:
        return [(members, _build_part(path, members, context))]
    except Unrepresentable:
        groups = group_regimes(members, whole_chunks=True)
        if len(groups) == 1:
            raise
        return [(some, _build_part(path, some, context)) for some in groups]


def _build_part(path: str, members: Sequence[Member], context: Context) -> Built:
    """Return one array with nothing but these members. Its attributes are theirs alone: they decode its values."""
    attributes, _ = merge_attributes(path, members, context.choices.attributes)
    return build_array(members, own_slots(members), _choose_fill(path, members, is_complete=True), attributes)


def _describe_parts(built: Sequence[tuple[Sequence[Member], Built]]) -> list[str]:
    """Return what distinguishes the arrays of a variable, with the files of each."""
    said = []
    for number, (some, made) in enumerate(built):
        codecs = "+".join(str(codec["name"]).rpartition(".")[2] for codec in made.node.codecs)
        chunks = "×".join(map(str, made.node.grid.largest_shape))
        about = f"{some[0].dtype}, {codecs}, chunks of {chunks}"
        said.append(f"part {number}: {about}, from {some_names(some, 2)}")
    return said[:4] + ([f"and {len(said) - 4:,} more parts"] if len(said) > 4 else [])
