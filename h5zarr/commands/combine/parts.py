"""Arrays of a variable: one for each regime, its parameters along the axis, and where each belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from h5zarr.commands.combine.inline_values import make_inline, write_inline
from h5zarr.commands.combine.joining import Placed, join_arrays
from h5zarr.commands.combine.meaning import PARAMETERS
from h5zarr.commands.combine.members import Member
from h5zarr.commands.combine.times import CommonTimes
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, VariableRecord
from h5zarr.zarr_model.joined import Boxes

_USUAL = VariableRecord()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """An array of some members, the record of its variable, and arrays of parameters by the name of the attribute."""

    node: ArrayNode
    record: VariableRecord | None
    parameters: Mapping[str, ArrayNode]


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The ranges along one dimension of an array that members fill: their positions in the cube, and their lengths."""

    positions: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def starts(self) -> dict[int, int]:
        """Where each slot begins in the array, by its position in the cube."""
        return dict(zip(self.positions, np.cumsum([0, *self.lengths[:-1]]).tolist(), strict=True))


def whole_slots(members: Sequence[Member], axes: Mapping[int, int]) -> dict[int, Slots]:
    """Return the slots of each dimension in `axes`, which has their lengths, with a slot for each unfilled range."""
    found = {}
    for dimension, whole in axes.items():
        ranges = _ranges(members, dimension)
        positions, lengths, end = [], [], 0
        for position, length in [*ranges, (whole, 0)]:
            if position > end:
                positions.append(end)
                lengths.append(position - end)
            if length:
                positions.append(position)
                lengths.append(length)
                end = position + length
        found[dimension] = Slots(tuple(positions), tuple(lengths))
    return found


def own_slots(members: Sequence[Member]) -> dict[int, Slots]:
    """Return the slots of each joined dimension of an array that has only these members."""
    found = {}
    for dimension in members[0].box:
        ranges = _ranges(members, dimension)
        skipped = {one.box[dimension].position: one.skipped.get(dimension, 0) for one in members}
        lengths = [length + skipped[position] for position, length in ranges]
        found[dimension] = Slots(tuple(position for position, _ in ranges), tuple(lengths))
    return found


def _ranges(members: Sequence[Member], dimension: int) -> list[tuple[int, int]]:
    return sorted({(one.box[dimension].position, one.box[dimension].length) for one in members})


def build_array(
    members: Sequence[Member], slots: Mapping[int, Slots], fill_value: Json, attributes: Mapping[str, Json]
) -> Built:
    """Return one array of members in the same regime. Raises Unrepresentable if no chunk grid describes it.

    `attributes` are those that all members share, or the user's choice of them.
    """
    numbers = {dimension: {at: n for n, at in enumerate(one.positions)} for dimension, one in slots.items()}
    placed = [
        Placed(
            node=one.node,
            slots=tuple((axis, numbers[axis][section.position]) for axis, section in one.box.items()),
            first_url=one.first_url,
        )
        for one in members
    ]
    node = join_arrays(placed, {dimension: one.lengths for dimension, one in slots.items()}, fill_value)
    record = members[0].record
    if len({one.meaning.numbers for one in members}) == 1:
        return Built(node=replace(node, attributes=attributes), record=record, parameters={})
    kept = {name: value for name, value in attributes.items() if name not in PARAMETERS}
    record = record or _USUAL
    types = {name: kind for name, kind in record.types.items() if name not in PARAMETERS}
    return Built(
        node=replace(node, attributes=kept), record=replace(record, types=types), parameters=_parameters(members, slots)
    )


def _parameters(members: Sequence[Member], slots: Mapping[int, Slots]) -> dict[str, ArrayNode]:
    """Return an array along the joined axis for each parameter, with the value of each element's file."""
    ((dimension, own),) = slots.items()
    order = sorted(members, key=lambda one: one.box[dimension].position)
    name = order[0].node.dimension_names[dimension]
    made = {}
    for parameter, number in order[0].meaning.parameters.items():
        values = np.array([one.meaning.parameters[parameter] for one in order], np.asarray(number).dtype)
        about = {"long_name": f"{parameter} of each file"}
        made[parameter] = make_inline(np.repeat(values, own.lengths), (name,), about, compressed=True)
    return made


def build_inline(members: Sequence[Member], times: CommonTimes | None) -> ArrayNode:
    """Return one inlined chunk with the values of members along one axis, without gaps between them."""
    ((axis, slots),) = own_slots(members).items()
    starts = slots.starts
    moved = [
        replace(one, box={axis: replace(at, position=starts[at.position])}) for one in members for at in [one.box[axis]]
    ]
    shape = list(members[0].shape)
    shape[axis] = sum(slots.lengths)
    return write_inline(moved, tuple(shape), times, None)


def find_boxes(members: Sequence[Member], slots: Mapping[int, Slots]) -> Boxes:
    """Return where the members are in the cube and in their array. Neighbours along one axis are merged."""
    starts = {dimension: one.starts for dimension, one in slots.items()}
    boxes = np.array(
        [
            [
                [section.position, starts[axis][section.position] + one.skipped.get(axis, 0), section.length]
                for axis, section in one.box.items()
            ]
            for one in sorted(members, key=lambda one: one.place)
        ],
        np.int64,
    )
    return _merge(boxes) if boxes.shape[1] == 1 else boxes


def _merge(boxes: Boxes) -> Boxes:
    start, inner, length = boxes[:, 0, 0], boxes[:, 0, 1], boxes[:, 0, 2]
    is_next = (start[1:] == start[:-1] + length[:-1]) & (inner[1:] == inner[:-1] + length[:-1])
    first = np.flatnonzero(np.append(True, ~is_next))
    merged = np.stack((start[first], inner[first], np.add.reduceat(length, first)), axis=1)
    return merged[:, None, :]
