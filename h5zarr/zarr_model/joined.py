"""Variables that are joined from several arrays, because one Zarr array cannot hold all of their parts.

Zarr has one data type, one list of codecs and one `scale_factor` per array. Files of an archive may differ in these. A
joined variable then has an array for each way in which its parts are stored, in a group of their own, and the record of
its group says which part of the variable is in which array. `docs/combine.md` describes the layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

PARTS_GROUP = "_h5zarr_parts"
"""The name of the group, next to a joined variable, that contains its arrays."""

Boxes = npt.NDArray[np.int64]
_MOST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedPart:
    """One array of a joined variable; `path` is relative to the group of the variable.

    `boxes` has shape (count, axes, 3): for each box and joined axis, its start in the variable, its start in the array,
    and its length. Along other axes, a box is as long as the array.
    """

    path: str
    boxes: Boxes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinedVariable:
    """A variable of several arrays. `axes` has the numbers of the joined dimensions.

    Elements that are in no box are missing data.
    """

    dimension_names: tuple[str, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    parts: tuple[JoinedPart, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every element is in a box."""
        covered = sum(int(part.boxes[:, :, 2].prod(axis=1).sum()) for part in self.parts)
        return covered == prod(self.shape[axis] for axis in self.axes)


def part_path(path: str, number: int) -> str:
    """Return the path of an array of the joined variable at `path`. Each array has a group of its own."""
    parent, _, name = path.rpartition("/")
    return f"{parent}/{PARTS_GROUP}/{name}/{number}/{name}"


def is_part(path: str) -> bool:
    """Return whether a node belongs to the arrays of joined variables, which readers with the record do not show."""
    return PARTS_GROUP in path.split("/")


def encode_joined(variable: JoinedVariable) -> dict[str, Any]:
    """Return a joined variable as JSON."""
    return {
        "dimensions": list(variable.dimension_names),
        "shape": list(variable.shape),
        "axes": list(variable.axes),
        "parts": [{"path": part.path, "boxes": part.boxes.tolist()} for part in variable.parts],
    }


def decode_joined(document: Any) -> JoinedVariable:
    """Return the variable that JSON describes. Raises ValueError or another built-in error if it is malformed."""
    names, shape, axes = document["dimensions"], tuple(document["shape"]), tuple(document["axes"])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(names) != len(shape):
        raise ValueError("a joined variable does not have a name for each dimension")
    if not all(type(one) is int and 0 <= one <= _MOST for one in (*shape, *axes)):
        raise ValueError("a joined variable has a length that is not a number")
    if not axes or sorted(set(axes)) != list(axes) or axes[-1] >= len(shape):
        raise ValueError("a joined variable has axes that are not its dimensions")
    lengths = np.array([shape[axis] for axis in axes], np.int64)
    parts = tuple(_decode_part(one, lengths) for one in document["parts"])
    return JoinedVariable(dimension_names=tuple(names), shape=shape, axes=axes, parts=parts)


def _decode_part(document: Mapping[str, Any], lengths: npt.NDArray[np.int64]) -> JoinedPart:
    path = document["path"]
    boxes = np.array(document["boxes"], np.int64).reshape(-1, len(lengths), 3)
    if not isinstance(path, str) or ".." in path.split("/"):
        raise ValueError("a part of a joined variable has no path")
    start, inner, length = boxes[..., 0], boxes[..., 1], boxes[..., 2]
    if (boxes < 0).any() or (boxes > _MOST).any() or (start + length > lengths).any() or (inner + length > _MOST).any():
        raise ValueError("a part of a joined variable lies outside of it")
    return JoinedPart(path=path, boxes=boxes)
