"""A variable in the files of a cube: where each belongs, and which values it has."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.cube_axes import Axes, CubeAxis
from h5zarr.commands.combine.file_order import Orphaned
from h5zarr.commands.combine.meaning import Meaning, find_meaning
from h5zarr.commands.combine.order import Section, Sections
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.slicing import regular_runs, slice_array, uneven_axes
from h5zarr.commands.combine.stored_arrays import StoredArray
from h5zarr.commands.combine.used_elements import Ranges
from h5zarr.zarr_model.calendars import TimeUnits, parse_units
from h5zarr.zarr_model.codecs import add_dimensions, byte_order
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.grid import RegularAxis, make_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Manifest, VariableRecord

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A variable in one file, or a range of it, with a dimension of length 1 for each new axis that it gets.

    `box` says where it belongs, by the number of the dimension. `node` is cut to this range, but may begin up to a
    chunk earlier: `skipped` has the number of elements before the range, by dimension. `number` is that of the file.
    `stored_at` is the path of the array in the file; in a cube, that may be a part of the variable.
    If the file has its dimensions in another order, dimension i is the dimension `order[i]` of the file, where new axes
    count first. Text in arrays of characters is padded to `text_length`, if that is not None.
    """

    number: int
    piece: CubePiece
    path: str
    node: ArrayNode
    record: VariableRecord | None
    box: Mapping[int, Section]
    meaning: Meaning
    first_url: int
    stored_at: str
    skipped: Mapping[int, int] = field(default_factory=dict)
    order: tuple[int, ...] | None = None
    text_length: int | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        return decode_data_type(self.node.data_type, byte_order(self.node.codecs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the range, with padded text."""
        lengths = self.node.shape if self.text_length is None else (*self.node.shape[:-1], self.text_length)
        return tuple(self.box[axis].length if axis in self.box else length for axis, length in enumerate(lengths))

    @property
    def is_padded(self) -> bool:
        """Whether its text is shorter than `shape` says."""
        return self.text_length is not None and self.text_length > self.node.shape[-1]

    @property
    def stored_node(self) -> ArrayNode:
        """The whole array in the file."""
        node = self.piece.hierarchy.nodes[self.stored_at]
        assert isinstance(node, ArrayNode)
        return node

    @property
    def place(self) -> tuple[tuple[int, int], ...]:
        """The positions along the joined dimensions."""
        return tuple((axis, section.position) for axis, section in self.box.items())

    def values(self) -> Values:
        """Return all values of the range as stored, with the new axes."""
        stored = self.stored_node
        added = len(self.node.shape) - len(stored.shape)
        order = self.order or tuple(range(len(self.node.shape)))
        key = [slice(None)] * len(stored.shape)
        for axis, section in self.box.items():
            if order[axis] >= added:
                key[order[axis] - added] = slice(section.start, section.start + section.length)
        # Only this range: others may be in files that have changed.
        found = self.piece.values(self.stored_at, tuple(key))
        # A file has one element along an axis that its variable gets. It may be spread over several.
        taken = found.reshape((1,) * added + found.shape).transpose(order)
        if self.is_padded:
            missing = self.shape[-1] - taken.shape[-1]
            taken = np.pad(taken, [(0, 0)] * (taken.ndim - 1) + [(0, missing)], constant_values=b"")
        return np.broadcast_to(taken, self.shape)


def find_members(pieces: Sequence[CubePiece], order: Sequence[int], axes: Axes) -> dict[str, list[Member]]:
    """Return the variables by path, with the files that have them, in this `order` of their numbers.

    A constant has one member for each file.
    """
    found: dict[str, list[Member]] = {}
    first_url = 0
    for number in order:
        piece = pieces[number]
        gaining = _new_axes(piece, axes)
        for path, arrays in piece.variables.stored.items():
            members = found.setdefault(path, [])
            for stored in arrays():
                gained = [axis for axis in gaining(path) if axis.name not in stored.node.dimension_names]
                whole = _make_whole(number, piece, path, stored, _expand(stored.node, gained), first_url)
                members += _find_sections(whole, stored, axes.of(path, whole.node.dimension_names))
        first_url += len(piece.hierarchy.urls)
    return found


def _make_whole(
    number: int, piece: CubePiece, path: str, stored: StoredArray, node: ArrayNode, first_url: int
) -> Member:
    """Return an array of a variable as a member without a place."""
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    return Member(
        number=number,
        piece=piece,
        path=path,
        node=node,
        record=stored.record,
        box={},
        meaning=find_meaning(stored.node, stored.record, dtype),
        first_url=first_url,
        stored_at=stored.path,
    )


def _find_sections(whole: Member, stored: StoredArray, joined: Mapping[int, CubeAxis]) -> list[Member]:
    """Return a member for each range of an array that belongs together along the joined dimensions."""
    sections: dict[int, Sections] = {number: axis.sections[whole.number] for number, axis in joined.items()}
    added = len(whole.node.shape) - len(stored.node.shape)
    used = whole.piece.used
    if used is None or not joined:
        return _sections(whole, sections)
    names = whole.node.dimension_names
    known = {number: axis for number in joined if (axis := used.axis_of(whole.path, names[number])) is not None}
    found: list[Member] = []
    for some in used.boxes(whole.path, known) if known else [{}]:
        inside = {**sections, **{number: _within(sections[number], ranges) for number, ranges in some.items()}}
        for box in [None] if stored.boxes is None else stored.boxes.tolist():
            found += _sections(whole, inside if box is None else _in_box(inside, box, stored.axes, added))
    return found


def _within(sections: Sections, ranges: Ranges) -> Sections:
    """Return the parts of sections that lie in ranges of the file. Both are in ascending order."""
    found = []
    for start, stop in ranges:
        first = bisect_right(sections, start, key=lambda one: one.start + one.length)
        for one in sections[first:]:
            if one.start >= stop:
                break
            if (part := one.within(start, stop - start)) is not None:
                found.append(part)
    return tuple(found)


def _in_box(
    sections: Mapping[int, Sections], box: Sequence[Sequence[int]], axes: tuple[int, ...], added: int
) -> dict[int, Sections]:
    """Return the parts of sections that an array has, which is a part of a variable: where they start in the array."""
    found = dict(sections)
    for axis, (start, inner, length) in zip(axes, box, strict=True):
        parts = _within(sections[axis + added], [(start, start + length)])
        found[axis + added] = tuple(replace(one, start=one.start - start + inner) for one in parts)
    return found


def spread(member: Member, axis: CubeAxis) -> list[Member]:
    """Return a variable without an axis as members along it, with the same values at each position of its file."""
    ranges = axis.sections[member.number]
    length = sum(one.length for one in ranges)
    cube = member.piece.opened.cube
    if cube is not None and (member.piece.left or any(member.path in some for some in cube.columns.lacks.values())):
        raise Orphaned(f"{member.path}: the cube does not say which of its files have it")
    node, manifest = member.node, member.node.manifest
    steps = np.repeat(np.arange(length, dtype=np.int64), manifest.count)
    repeated = replace(
        node,
        grid=make_grid([RegularAxis(length, 1), *node.grid.axes]),
        codecs=add_dimensions(node.codecs, len(node.shape), 1),
        dimension_names=(axis.name, *node.dimension_names),
        manifest=Manifest(
            index=np.column_stack((steps, np.tile(manifest.index, (length, 1)))),
            address=np.tile(manifest.address, length),
            nbytes=np.tile(manifest.nbytes, length),
            source=manifest.source if isinstance(manifest.source, int) else np.tile(manifest.source, length),
            inline={(step, *key): content for step in range(length) for key, content in manifest.inline.items()},
        ),
    )
    return _sections(replace(member, node=repeated), {0: ranges})


def _sections(whole: Member, sections: Mapping[int, Sections]) -> list[Member]:
    """Return a member for each range of the file that belongs together.

    A variable is also divided along other axes whose chunks have different lengths: all members have regular grids.
    """
    if sections:
        uneven = {axis: (Section(0, 0, whole.node.shape[axis]),) for axis in uneven_axes(whole.node)}
        sections = dict(sorted({**uneven, **sections}.items()))
    found = []
    for run in regular_runs(whole.node, sections):
        made = [replace(whole, node=run.node)]
        for axis, ranges in sections.items():
            inside = [part for one in ranges if (part := one.within(run.starts.get(axis, 0), run.node.shape[axis]))]
            made = [replace(one, box={**one.box, axis: section}) for one in made for section in inside]
        found += [_cut(one, run.starts) for one in made]
    return found


def _cut(member: Member, starts: Mapping[int, int]) -> Member:
    """Return a member whose array has only the chunks of its range. The array begins at `starts` in the file."""
    for axis, section in member.box.items():
        if section.length < member.node.shape[axis]:
            node, skipped = slice_array(member.node, axis, section.start - starts.get(axis, 0), section.length)
            member = replace(member, node=node, skipped={**member.skipped, **({axis: skipped} if skipped else {})})
    return member


def _new_axes(piece: CubePiece, axes: Axes) -> Any:
    """Return a function that returns the new axes of a variable. Coordinates get only the axis with their own name."""
    coordinates = coordinate_paths(piece) if axes.new else set()

    def gaining(path: str) -> list[CubeAxis]:
        name = path.rpartition("/")[2]
        return [axis for axis in axes.new if path not in coordinates or name == axis.name]

    return gaining


def coordinate_paths(piece: CubePiece) -> set[str]:
    """Return the paths of coordinates by xarray's rules: named like a dimension, or listed in `coordinates`."""
    found = set()
    for path, node in piece.hierarchy.nodes.items():
        folder = path if isinstance(node, GroupNode) else path.rpartition("/")[0]
        named = node.attributes.get("coordinates")
        if isinstance(named, str):
            found |= {f"{folder.rstrip('/')}/{name}" for name in named.split()}
        if isinstance(node, ArrayNode) and path.rpartition("/")[2] in node.dimension_names:
            found.add(path)
    return found


def _expand(node: ArrayNode, axes: Sequence[CubeAxis]) -> ArrayNode:
    """Return an array with a leading dimension of length 1 for each new axis."""
    if not axes:
        return node
    count, manifest = len(axes), node.manifest
    zeros = np.zeros((manifest.count, count), np.int64)
    return replace(
        node,
        grid=make_grid([*[RegularAxis(1, 1)] * count, *node.grid.axes]),
        codecs=add_dimensions(node.codecs, len(node.shape), count),
        dimension_names=(*[axis.name for axis in axes], *node.dimension_names),
        manifest=Manifest(
            address=manifest.address,
            nbytes=manifest.nbytes,
            source=manifest.source,
            index=np.concatenate((zeros, manifest.index), axis=1),
            inline={(0,) * count + key: content for key, content in manifest.inline.items()},
        ),
    )


def times_of(member: Member) -> TimeUnits | None:
    """Return the time units of a variable; bounds have those of the variable that they belong to."""
    own = parse_units(member.node.attributes)
    if own is not None:
        return own
    owner = member.piece.bounds_owners.get(member.path)
    return None if owner is None else parse_units(owner.attributes)


def inlined_form(node: ArrayNode) -> Any:
    """Return the values of an inlined array in a form that can be compared; None for one that is referenced."""
    if node.manifest.count:
        return None
    return node.shape, json.dumps(node.data_type), json.dumps(node.codecs), dict(node.manifest.inline)
