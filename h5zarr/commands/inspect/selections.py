"""Selections as text, in numpy's notation if it has one."""

from __future__ import annotations

from h5zarr.display import counted
from h5zarr.hdf5.selection import (
    AllSelection,
    BlockSelection,
    NoneSelection,
    PointSelection,
    RegularSelection,
    Selection,
)


def selection_text(selection: Selection) -> str:
    """Return a selection as `[0:10, 5:]`, or the number of points or blocks if slices cannot express it."""
    match selection:
        case AllSelection():
            return "[...]"
        case NoneSelection():
            return "[nothing]"
        case PointSelection(points):
            if len(points) == 1:
                return "[" + ", ".join(str(index) for index in points[0]) + "]"
            return f"[{counted(len(points), 'point')}]"
        case BlockSelection(first, last):
            if len(first) == 1:
                sides = zip(first[0].tolist(), last[0].tolist(), strict=True)
                return "[" + ", ".join(f"{start}:{end + 1}" for start, end in sides) + "]"
            return f"[{counted(len(first), 'block')}]"
        case RegularSelection():
            axes = zip(selection.start, selection.stride, selection.count, selection.block, strict=True)
            return "[" + ", ".join(_axis(*axis) for axis in axes) + "]"


def _axis(start: int, stride: int, count: int | None, block: int | None) -> str:
    if block is None or (count is None and stride == block):
        return f"{start}:"
    if count is None:
        return f"{start}::{stride}" if block == 1 else f"{start}::{stride} by {block}"
    if count == 1 or stride == block:
        return f"{start}:{start + count * block}"
    end = start + (count - 1) * stride + block
    return f"{start}:{end}:{stride}" if block == 1 else f"{start}:{end}:{stride} by {block}"
