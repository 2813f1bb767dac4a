"""A cube as a source: which of its elements come from a file.

Arrays of a cube also cover what no file has: gaps of an axis that was laid out ahead, variables that some files lack,
and files that are to leave the cube. Those elements must not take the place of files that have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.io.location import Location

Numbers = npt.NDArray[np.int64]
Ranges = list[tuple[int, int]]
"""Ranges of elements: the first, and the one after the last."""


class UsedElements:
    """The elements of a cube that its files have. Axes are given by their paths in the cube."""

    def __init__(self, layout: CubeLayout) -> None:
        self._layout = layout

    def axis_of(self, path: str, name: str) -> str | None:
        """Return the axis that a dimension of the variable at `path` belongs to; None if it is not joined, or empty."""
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            if (axis := f"{folder}/{name}") in self._layout.axes:
                return axis if self._layout.axes[axis] else None
        return None

    def numbers(self, axis: str) -> Numbers | None:
        """Return the elements along an axis that some file has; None for all of them."""
        ranges = self._merged(axis, None)
        if ranges == [(0, self._layout.axes[axis])]:
            return None
        return np.concatenate([np.empty(0, np.int64), *[np.arange(*one) for one in ranges]])

    def count(self, axis: str) -> int:
        """Return how many elements along an axis some file has."""
        return sum(stop - start for start, stop in self._merged(axis, None))

    def boxes(self, path: str, axes: Mapping[int, str]) -> list[Mapping[int, Ranges]]:
        """Return the elements of a variable that its files have, as ranges along each of its joined dimensions."""
        if len(axes) == 1:
            ((number, axis),) = axes.items()
            return [{number: self._merged(axis, path if path in self._lacking else None)}]
        return [
            {number: [(at, at + length) for at, _, length in piece.at[axis]] for number, axis in axes.items()}
            for piece in self._layout.pieces
            if path not in piece.lacks and all(axis in piece.at for axis in axes.values())
        ]

    def file_at(self, axis: str, number: int, path: str) -> str | None:
        """Return the name of a file that has this element of the variable at `path` along an axis."""
        columns = self._layout.columns
        numbers, position, _, length = columns.ranges.along(axis)
        for file in numbers[(position <= number) & (number < position + length)].tolist():
            if path not in columns.lacks.get(file, ()):
                return str(Location.parse(columns.urls[file]))
        return None

    @cached_property
    def _lacking(self) -> frozenset[str]:
        """The variables that some files lack."""
        return frozenset(path for some in self._layout.columns.lacks.values() for path in some)

    def _merged(self, axis: str, path: str | None) -> Ranges:
        """Return the elements along an axis that files have; with `path`, files that have this variable."""
        columns = self._layout.columns
        numbers, position, _, length = columns.ranges.along(axis)
        if path is not None:
            lacking = [number for number, some in columns.lacks.items() if path in some]
            has = ~np.isin(numbers, lacking)
            position, length = position[has], length[has]
        position, length = position[length > 0], length[length > 0]
        if not len(position):
            return []
        order = np.argsort(position, kind="stable")
        start, stop = position[order], np.maximum.accumulate((position + length)[order])
        begins = np.flatnonzero(np.append(True, start[1:] > stop[:-1]))
        lasts = np.append(begins[1:] - 1, -1)
        return list(zip(start[begins].tolist(), stop[lasts].tolist(), strict=True))
