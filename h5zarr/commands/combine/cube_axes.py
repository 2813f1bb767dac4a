"""Axes of a cube: which files have which part of each.

Dimensions belong to groups. If groups have coordinates of their own for a dimension of the same name, each has its own
axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.along import NewCoordinate
from h5zarr.commands.combine.order import Sections
from h5zarr.zarr_model.calendars import TimeUnits

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CubeAxis:
    """An axis along which files are joined, in the group `folder` ("" for the root) and the groups in it.

    `sections` says for each file which part of the axis it has. `values` are the coordinates, if there are any; if they
    are times, `times` has their units. `coordinate` describes those that no file has. `is_laid_out`: the axis was laid
    out ahead, so that it also has coordinates of which there is no file.
    """

    name: str
    folder: str
    is_new: bool
    length: int
    sections: tuple[Sections, ...]
    values: Values | None = None
    times: TimeUnits | None = None
    coordinate: NewCoordinate | None = None
    is_laid_out: bool = False

    @property
    def path(self) -> str:
        """The path of the coordinate, and of the axis in the layout of the cube."""
        return f"{self.folder}/{self.name}"

    def label(self, position: int) -> str:
        """Return the date at a position, if the coordinates are times; else the position."""
        if self.times is None or self.values is None:
            return str(position)
        return self.times.date(self.values[position].item())

    @property
    def part_count(self) -> int:
        """The number of different ranges that files have."""
        return len({(one.position, one.length) for sections in self.sections for one in sections})


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """All axes of a cube. `names` are those that the user gave."""

    names: tuple[str, ...]
    by_place: Mapping[tuple[str, str], CubeAxis]

    def find(self, path: str, name: str) -> CubeAxis | None:
        """Return the axis that a dimension of the variable at `path` belongs to; None if it is not joined."""
        folder = path
        while folder and name in self.names:
            folder = folder.rpartition("/")[0]
            if (axis := self.by_place.get((folder, name))) is not None:
                return axis
        return None

    def of(self, path: str, names: Sequence[str]) -> dict[int, CubeAxis]:
        """Return the axes of a variable with these dimensions, by the number of the dimension."""
        found = {number: self.find(path, name) for number, name in enumerate(names)}
        return {number: axis for number, axis in found.items() if axis is not None}

    @property
    def new(self) -> tuple[CubeAxis, ...]:
        """The axes that no file has."""
        return tuple(axis for axis in self.by_place.values() if axis.is_new)

    @property
    def main(self) -> tuple[CubeAxis, ...]:
        """One axis for each name: the one nearest to the root."""
        first: dict[str, CubeAxis] = {}
        for axis in self.by_place.values():
            first.setdefault(axis.name, axis)
        return tuple(first.values())


def gaps(axis: CubeAxis) -> list[tuple[str, str]]:
    """Return the coordinates before and after each gap: a step of more than 1.5 times the usual step."""
    values = axis.values
    if values is None or values.dtype.kind not in "iuf" or len(values) < 3:
        return []
    steps = np.abs(np.diff(values.astype(np.float64)))
    wide = np.flatnonzero(steps > 1.5 * np.median(steps))
    shown = str if axis.times is None else axis.times.date
    return [(shown(values[at].item()), shown(values[at + 1].item())) for at in wide.tolist()]
