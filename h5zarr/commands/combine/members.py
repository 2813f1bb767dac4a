"""A variable in the files of a cube: where each belongs, and which values it has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.axes import Axes, CubeAxis
from h5zarr.commands.combine.meaning import Meaning, find_meaning
from h5zarr.commands.combine.order import Section
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.slicing import regular_runs, slice_array
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.zarr_model.calendars import TimeUnits, bounds_of, parse_units
from h5zarr.zarr_model.codecs import byte_order, encode_crop, split_crop
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.grid import RegularAxis, RegularGrid, make_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Json, Manifest, VariableRecord

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """A variable in one file, or a range of it, with a dimension of length 1 for each new axis that it gets.

    `box` says where it belongs, by the number of the dimension. `node` is cut to this range, but may begin up to a
    chunk earlier: `skipped` has the number of elements before the range, by dimension. `number` is that of the file.
    """

    number: int
    piece: CubePiece
    path: str
    node: ArrayNode
    record: VariableRecord | None
    box: Mapping[int, Section]
    meaning: Meaning
    first_url: int
    skipped: Mapping[int, int] = field(default_factory=dict)

    @property
    def dtype(self) -> np.dtype[Any]:
        return decode_data_type(self.node.data_type, byte_order(self.node.codecs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the range."""
        return tuple(
            self.box[axis].length if axis in self.box else length for axis, length in enumerate(self.node.shape)
        )

    @property
    def place(self) -> tuple[tuple[int, int], ...]:
        """The positions along the joined dimensions."""
        return tuple((axis, section.position) for axis, section in self.box.items())

    def values(self) -> Values:
        """Return all values of the range as stored, with the new axes."""
        whole = self.piece.values(self.path)
        added = len(self.node.shape) - whole.ndim
        found = whole.reshape((1,) * added + whole.shape)
        key: list[slice] = []
        for axis, length in enumerate(self.shape):
            start = self.box[axis].start if axis in self.box and axis >= added else 0
            key.append(slice(start, start + (1 if axis < added else length)))
        # A file has one element along an axis that its variable gets. It may be spread over several.
        taken = found[tuple(key)] if key else found  # () would take text out of its array
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
        for path, node in piece.arrays.items():
            members = found.setdefault(path, [])
            gained = [axis for axis in gaining(path) if axis.name not in node.dimension_names]
            made = _expand(node, gained)
            record = piece.hierarchy.record_of(path)
            dtype = decode_data_type(node.data_type, byte_order(node.codecs))
            whole = Member(
                number=number,
                piece=piece,
                path=path,
                node=made,
                record=record,
                box={},
                meaning=find_meaning(node, record, dtype),
                first_url=first_url,
            )
            joined = axes.of(path, made.dimension_names)
            try:
                members += _sections(whole, {axis: one.sections[number] for axis, one in joined.items()})
            except Unrepresentable as error:
                raise NotJoinable(f"{piece.name}: {path}: {error}") from None
        first_url += len(piece.hierarchy.urls)
    return found


def spread(member: Member, axis: CubeAxis) -> list[Member]:
    """Return a variable without an axis as members along it, with the same values at each position of its file."""
    ranges = axis.sections[member.number]
    length = sum(one.length for one in ranges)
    node, manifest = member.node, member.node.manifest
    steps = np.repeat(np.arange(length, dtype=np.int64), manifest.count)
    repeated = replace(
        node,
        grid=RegularGrid((length, *node.shape), (1, *node.chunk_shape)),
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


def _sections(whole: Member, sections: Mapping[int, tuple[Section, ...]]) -> list[Member]:
    """Return a member for each range of the file that belongs together."""
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
    coordinates = _coordinates(piece) if axes.new else set()

    def gaining(path: str) -> list[CubeAxis]:
        name = path.rpartition("/")[2]
        return [axis for axis in axes.new if path not in coordinates or name == axis.name]

    return gaining


def _coordinates(piece: CubePiece) -> set[str]:
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
        codecs=_expand_crop(node, count),
        dimension_names=(*[axis.name for axis in axes], *node.dimension_names),
        manifest=Manifest(
            address=manifest.address,
            nbytes=manifest.nbytes,
            source=manifest.source,
            index=np.concatenate((zeros, manifest.index), axis=1),
            inline={(0,) * count + key: content for key, content in manifest.inline.items()},
        ),
    )


def _expand_crop(node: ArrayNode, count: int) -> tuple[Json, ...]:
    """Return the codecs of an array with leading dimensions of length 1."""
    stored_shape, codecs = split_crop(node.codecs, len(node.shape))
    return tuple(codecs) if stored_shape is None else (encode_crop((1,) * count + stored_shape), *codecs)


def times_of(member: Member) -> TimeUnits | None:
    """Return the time units of a variable; bounds have those of the variable that they belong to."""
    own = parse_units(member.node.attributes)
    if own is not None:
        return own
    folder, _, name = member.path.rpartition("/")
    for path, node in member.piece.arrays.items():
        if path.rpartition("/")[0] == folder and bounds_of(node.attributes) == name:
            return parse_units(node.attributes)
    return None


def inlined_form(node: ArrayNode) -> Any:
    """Return the values of an inlined array in a form that can be compared; None for one that is referenced."""
    if node.manifest.count:
        return None
    return node.shape, json.dumps(node.data_type), json.dumps(node.codecs), dict(node.manifest.inline)
