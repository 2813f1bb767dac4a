"""Selections in the mappings of a virtual dataset, resolved for arrays of known shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.selection import (
    AllSelection,
    BlockSelection,
    NoneSelection,
    PointSelection,
    RegularSelection,
    Selection,
)

_MOST_CELLS = 1 << 26  # elements of the bounding box of irregular blocks, for which a mask is made


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions along one axis: blocks of `block` elements, `stride` apart, from `start` up to but excluding `stop`."""

    start: int
    stride: int
    block: int
    stop: int

    @property
    def length(self) -> int:
        """The number of positions."""
        if self.is_run:
            return max(0, self.stop - self.start)
        whole, rest = divmod(self.stop - self.start, self.stride)
        return whole * self.block + min(rest, self.block)

    @property
    def is_run(self) -> bool:
        """True if the positions are contiguous."""
        return self.block >= self.stride or self.stop - self.start <= self.block

    @property
    def end(self) -> int:
        """The position after the last one, or `start` if there are none."""
        if self.is_run:
            return max(self.start, self.stop)
        whole, rest = divmod(self.stop - self.start, self.stride)
        last = self.start + (whole if rest else whole - 1) * self.stride
        return min(self.stop, last + self.block)

    def first(self, count: int) -> Axis:
        """Return the first `count` positions of an unlimited axis."""
        if count == 0 or self.block >= self.stride:
            return replace(self, stop=self.start + count)
        whole, rest = divmod(count, self.block)
        last = (whole * self.stride + rest) if rest else (whole - 1) * self.stride + self.block
        return replace(self, stop=self.start + last)

    def positions(self) -> npt.NDArray[np.int64]:
        if self.is_run:
            return np.arange(self.start, max(self.start, self.stop), dtype=np.int64)
        starts = np.arange(self.start, max(self.start, self.stop), self.stride, dtype=np.int64)
        found = (starts[:, None] + np.arange(self.block, dtype=np.int64)).reshape(-1)
        return found[found < self.stop]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Elements of an array in the order of a mapping: row-major, or in their own order for points.

    They are the product of `axes`. If `cells` is given, they are the elements with these numbers in the box that `axes`
    span.
    """

    axes: tuple[Axis, ...]
    cells: npt.NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        return prod(axis.length for axis in self.axes) if self.cells is None else len(self.cells)

    @property
    def is_box(self) -> bool:
        return self.cells is None and all(axis.is_run for axis in self.axes)

    @property
    def lower(self) -> tuple[int, ...]:
        return tuple(axis.start for axis in self.axes)

    @property
    def upper(self) -> tuple[int, ...]:
        """The corner after the last element."""
        return tuple(axis.end for axis in self.axes)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self.axes)

    def take(self, values: npt.NDArray[Any], corner: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the elements as a flat array. `values` is the part of the array that starts at `corner`."""
        taken: npt.NDArray[Any] = values[self._index(corner)]
        return taken.reshape(self.count, *values.shape[len(self.axes) :])

    def put(self, values: npt.NDArray[Any], whole: npt.NDArray[Any]) -> None:
        """Write the flat elements `values` to this region of the whole array."""
        tail = whole.shape[len(self.axes) :]
        shape = self.lengths if self.cells is None else (len(self.cells),)
        whole[self._index((0,) * len(self.axes))] = values.reshape(shape + tail)

    def _index(self, corner: tuple[int, ...]) -> tuple[Any, ...]:
        if self.is_box:
            return tuple(slice(axis.start - at, axis.stop - at) for axis, at in zip(self.axes, corner, strict=True))
        if self.cells is None:
            return np.ix_(*(axis.positions() - at for axis, at in zip(self.axes, corner, strict=True)))
        places = np.unravel_index(self.cells, self.lengths)
        return tuple(place + (axis.start - at) for place, axis, at in zip(places, self.axes, corner, strict=True))


def box(lower: tuple[int, ...], upper: tuple[int, ...]) -> Region:
    """Return a box. `upper` is the corner after its last element."""
    lengths = [max(0, end - start) for start, end in zip(lower, upper, strict=True)]
    return Region(tuple(Axis(start, max(1, n), max(1, n), start + n) for start, n in zip(lower, lengths, strict=True)))


def limited_axis(selection: RegularSelection, axis: int) -> Axis:
    """Return a limited axis of a regular selection."""
    count, block = selection.count[axis], selection.block[axis]
    if count is None or block is None:
        raise MalformedFile("a selection is unlimited along two axes")
    start, stride = selection.start[axis], _stride(selection, axis)
    if count == 0 or block == 0:
        return Axis(start, 1, 1, start)
    return Axis(start, stride, block, start + (count - 1) * stride + block)


def unlimited_axis(selection: RegularSelection, axis: int, stop: int) -> Axis:
    """Return the unlimited axis of a selection, limited to `stop`."""
    start, stride, block = selection.start[axis], _stride(selection, axis), selection.block[axis]
    if block is None:
        return Axis(start, max(1, stop), max(1, stop), max(start, stop))
    return Axis(start, stride, max(1, block), max(start, stop))


def _stride(selection: RegularSelection, axis: int) -> int:
    if selection.stride[axis] == 0:
        raise MalformedFile("a selection has a stride of 0")
    return selection.stride[axis]


def find_unlimited(selection: Selection) -> int | None:
    """Return the unlimited axis of a selection, or None."""
    if not isinstance(selection, RegularSelection):
        return None
    for axis, (count, block) in enumerate(zip(selection.count, selection.block, strict=True)):
        if count is None or block is None:
            return axis
    return None


def reach_of(selection: Selection, axis: int) -> int:
    """Return the position after the last selected one along an axis, or 0 if it depends on the array's shape."""
    match selection:
        case AllSelection() | NoneSelection():
            return 0
        case RegularSelection():
            return limited_axis(selection, axis).end
        case BlockSelection(last=last):
            return int(last[:, axis].max()) + 1 if len(last) else 0
        case PointSelection(points=points):
            return int(points[:, axis].max()) + 1 if len(points) else 0


def resolve_selection(selection: Selection, shape: tuple[int, ...]) -> Region:
    """Return the region that a limited selection means in an array of `shape`.

    Raises MalformedFile if it lies outside.
    """
    match selection:
        case AllSelection():
            region = box((0,) * len(shape), shape)
        case NoneSelection():
            return Region(box((0,) * len(shape), shape).axes, np.empty(0, np.int64))
        case RegularSelection():
            region = Region(tuple(limited_axis(selection, axis) for axis in range(len(selection.start))))
        case BlockSelection():
            region = _blocks(selection)
        case PointSelection():
            region = _points(selection)
    check_inside(region, shape)
    return region


def check_inside(region: Region, shape: tuple[int, ...]) -> None:
    """Raise MalformedFile unless a region lies inside an array of `shape`."""
    if len(region.axes) != len(shape):
        raise MalformedFile(f"a selection of rank {len(region.axes)} in an array of rank {len(shape)}")
    if any(end > extent for end, extent in zip(region.upper, shape, strict=True)):
        raise MalformedFile(f"a selection reaches to {region.upper}, outside an array of shape {shape}")


def _blocks(selection: BlockSelection) -> Region:
    """Return the region of irregular blocks. Elements in several blocks count once, as in the HDF5 library."""
    if not len(selection.first):
        return Region(box((0,) * selection.first.shape[1], (0,) * selection.first.shape[1]).axes)
    first, last = selection.first.astype(np.int64), selection.last.astype(np.int64)
    lower, upper = first.min(axis=0), last.max(axis=0) + 1
    around = box(tuple(lower.tolist()), tuple(upper.tolist()))
    if len(first) == 1:
        return around
    if prod(around.lengths) > _MOST_CELLS:
        raise Unsupported(f"a selection of {len(first)} blocks in a box of {around.lengths} is too large")
    mask = np.zeros(around.lengths, bool)
    for start, end in zip((first - lower).tolist(), (last - lower + 1).tolist(), strict=True):
        mask[tuple(map(slice, start, end))] = True
    return around if mask.all() else Region(around.axes, np.flatnonzero(mask))


def _points(selection: PointSelection) -> Region:
    points = selection.points.astype(np.int64)
    rank = points.shape[1]
    if not len(points):
        return box((0,) * rank, (0,) * rank)
    lower = points.min(axis=0)
    around = box(tuple(lower.tolist()), tuple((points.max(axis=0) + 1).tolist()))
    if prod(around.lengths) >= 1 << 62:
        raise Unsupported(f"a selection of points in a box of {around.lengths} is too large")
    return Region(around.axes, np.ravel_multi_index(tuple((points - lower).T), around.lengths).astype(np.int64))
