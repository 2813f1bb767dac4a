"""Where the elements of a cube's arrays belong, and which files have them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy
from h5zarr.zarr_model.joined import Boxes, JoinedVariable, is_part

Slices = tuple[slice, ...]


class Cell(NamedTuple):
    """Elements of an array that are in the same files: `inner` is their part of the array.

    `start` is where they begin in the cube. `pieces` are the numbers of the files that may have them, and `shifts` says
    for each of these what to add to positions in the cube, along each axis. None: any file may have them.
    """

    inner: Slices
    start: tuple[int, ...]
    pieces: tuple[int, ...] | None
    shifts: Mapping[int, tuple[int, ...]]

    def source(self, piece: int) -> Slices:
        """Return the part of the variable in a file."""
        shifts = self.shifts.get(piece, (0,) * len(self.start))
        return tuple(
            slice(start + shift, start + shift + one.stop - one.start)
            for start, shift, one in zip(self.start, shifts, self.inner, strict=True)
        )


class AxisPieces:
    """The files along an axis. Between neighbouring `edges`, the same files have all elements."""

    def __init__(self, layout: CubeLayout, path: str) -> None:
        self.path = path
        ranges = [
            (position, start, length, number)
            for number, piece in enumerate(layout.pieces)
            for position, start, length in piece.at.get(path, ())
        ]
        ends = {end for position, _, length, _ in ranges for end in (position, position + length)}
        self.edges = sorted({0, layout.axes[path], *ends})
        self.lengths: dict[int, int] = {}
        self._shifts: list[dict[int, int]] = [{} for _ in self.edges]
        for position, start, length, number in ranges:
            self.lengths[number] = self.lengths.get(number, 0) + length
            for at in range(bisect_left(self.edges, position), bisect_left(self.edges, position + length)):
                self._shifts[at][number] = start - position

    def split(self, start: int, stop: int) -> Iterator[tuple[int, int, Mapping[int, int]]]:
        """Yield the parts of a range, each with the files that have it and their shifts."""
        at = bisect_right(self.edges, start) - 1
        while start < stop:
            end = min(stop, self.edges[at + 1]) if at + 1 < len(self.edges) else stop
            yield start, end, self._shifts[at]
            start, at = end, at + 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredVariable:
    """An array of a cube: the path of the variable that it belongs to, and its axes by the number of the dimension.

    `boxes` are those of an array that is a part of the variable; `joined` are the dimensions that they are about.
    """

    path: str
    variable: str
    node: ArrayNode
    axes: Mapping[int, AxisPieces]
    boxes: Boxes | None = None
    joined: tuple[int, ...] = ()

    def cells(self, region: Slices) -> Iterator[Cell]:
        """Yield the parts of a region that are in the same files. Elements outside of all boxes are not used."""
        for inner, shifts in self._placed(region):
            split = [
                [(one.start + shift, one.stop + shift, None)]
                if (axis := self.axes.get(number)) is None
                else list(axis.split(one.start + shift, one.stop + shift))
                for number, (one, shift) in enumerate(zip(inner, shifts, strict=True))
            ]
            for parts in product(*split):
                yield _make_cell(parts, shifts)

    def _placed(self, region: Slices) -> Iterator[tuple[Slices, tuple[int, ...]]]:
        """Yield the parts of a region that are in boxes, and what to add to get positions in the cube."""
        if self.boxes is None:
            yield region, (0,) * len(region)
            return
        begin = [region[axis].start for axis in self.joined]
        end = [region[axis].stop for axis in self.joined]
        inner, length = self.boxes[:, :, 1], self.boxes[:, :, 2]
        overlaps = ((inner < end) & (inner + length > begin)).all(axis=1)
        for box in self.boxes[overlaps].tolist():
            part, shifts = list(region), [0] * len(region)
            for axis, (position, start, count) in zip(self.joined, box, strict=True):
                part[axis] = slice(max(part[axis].start, start), min(part[axis].stop, start + count))
                shifts[axis] = position - start
            yield tuple(part), tuple(shifts)

    @property
    def whole(self) -> Slices:
        """The region of all elements."""
        return tuple(slice(0, length) for length in self.node.shape)


def _make_cell(parts: Sequence[tuple[int, int, Mapping[int, int] | None]], shifts: Sequence[int]) -> Cell:
    inner = tuple(slice(start - shift, stop - shift) for (start, stop, _), shift in zip(parts, shifts, strict=True))
    start = tuple(one[0] for one in parts)
    known = [one[2] for one in parts if one[2] is not None]
    if not known:
        return Cell(inner, start, None, {})
    numbers = sorted(set(known[0]).intersection(*known[1:]))
    found = {number: tuple(0 if one[2] is None else one[2][number] for one in parts) for number in numbers}
    return Cell(inner, start, tuple(numbers), found)


def find_stored(hierarchy: Hierarchy, layout: CubeLayout) -> dict[str, StoredVariable]:
    """Return the arrays of a cube by path, except for those with parameters of others."""
    axes = {path: AxisPieces(layout, path) for path in layout.axes}
    hidden = _parameter_paths(hierarchy)
    found = {}
    for path, node in hierarchy.nodes.items():
        if isinstance(node, ArrayNode) and not is_part(path) and path not in hidden:
            own = _axes_of(path, node.dimension_names, axes)
            found[path] = StoredVariable(path=path, variable=path, node=node, axes=own)
    for path, joined in joined_variables(hierarchy):
        for part in joined.parts:
            at = f"{path.rpartition('/')[0]}/{part.path}"
            array = hierarchy.nodes.get(at)
            if isinstance(array, ArrayNode):
                found[at] = StoredVariable(
                    path=at,
                    variable=path,
                    node=array,
                    axes=_axes_of(path, array.dimension_names, axes),
                    boxes=part.boxes,
                    joined=joined.axes,
                )
    return found


def joined_variables(hierarchy: Hierarchy) -> Iterator[tuple[str, JoinedVariable]]:
    """Yield the path of each variable that has several arrays."""
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode) and node.record is not None:
            for name, joined in node.record.joined.items():
                yield f"{path.rstrip('/')}/{name}", joined


def _parameter_paths(hierarchy: Hierarchy) -> set[str]:
    return {
        f"{path.rstrip('/')}/{name}"
        for path, node in hierarchy.nodes.items()
        if isinstance(node, GroupNode) and node.record is not None
        for record in node.record.variables.values()
        for name in record.parameters.values()
    }


def _axes_of(path: str, names: Sequence[str], axes: Mapping[str, AxisPieces]) -> dict[int, AxisPieces]:
    """Return the axes of a variable: each is in its group, or the nearest one above."""
    found = {}
    for number, name in enumerate(names):
        folder = path
        while folder and number not in found:
            folder = folder.rpartition("/")[0]
            if (axis := axes.get(f"{folder}/{name}")) is not None:
                found[number] = axis
    return found
