"""The files of a cube as columns: an archive has so many that an object for each takes too much time and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.late_sequence import LateSequence

Column = npt.NDArray[np.int64]

Range = tuple[int, int, int]
"""The position of a range on the axis, its start in the file, and its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubePieceState:
    """A file of a cube, and its ranges by the path of the axis. `url` may contain secrets, which are not written.

    `lacks` has the variables of the cube that the file does not have.
    """

    url: str
    at: Mapping[str, tuple[Range, ...]]
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeColumns:
    """Ranges of files, one row each. Rows `ends[i]` to `ends[i + 1]` are those of file `i`. `axis` numbers `axes`."""

    axes: tuple[str, ...]
    ends: Column
    axis: Column
    position: Column
    start: Column
    length: Column

    def along(self, path: str) -> tuple[Column, Column, Column, Column]:
        """Return columns of the ranges along an axis: the number of the file, position, start and length."""
        if path not in self.axes:
            none = np.empty(0, np.int64)
            return none, none, none, none
        rows = np.flatnonzero(self.axis == self.axes.index(path))
        return np.searchsorted(self.ends, rows, "right") - 1, self.position[rows], self.start[rows], self.length[rows]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PieceColumns(Sequence[CubePieceState]):
    """Files in columns. `lacks` has an entry only for files that lack a variable, by number."""

    urls: Sequence[str]
    ranges: RangeColumns
    lacks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urls)

    @overload
    def __getitem__(self, number: int) -> CubePieceState: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[CubePieceState]: ...
    def __getitem__(self, number: int | slice) -> CubePieceState | Sequence[CubePieceState]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(len(self.urls))[number])
        number = range(len(self.urls))[number]
        rows, found = self.ranges, dict[str, tuple[Range, ...]]()
        for row in range(int(rows.ends[number]), int(rows.ends[number + 1])):
            one = int(rows.position[row]), int(rows.start[row]), int(rows.length[row])
            path = rows.axes[rows.axis[row]]
            found[path] = (*found.get(path, ()), one)
        return CubePieceState(url=self.urls[number], at=found, lacks=self.lacks.get(number, ()))

    def __iter__(self) -> Iterator[CubePieceState]:
        rows, paths = self.ranges, self.ranges.axes
        listed = zip(*(column.tolist() for column in (rows.position, rows.start, rows.length)), strict=True)
        axis, ends = rows.axis.tolist(), rows.ends.tolist()
        at = zip(axis, listed, strict=True)
        for number, url in enumerate(self.urls):
            found: dict[str, tuple[Range, ...]] = {}
            for _ in range(ends[number + 1] - ends[number]):
                which, one = next(at)
                found[paths[which]] = (*found[paths[which]], one) if paths[which] in found else (one,)
            yield CubePieceState(url=url, at=found, lacks=self.lacks.get(number, ()))

    def first_positions(self, path: str) -> Column:
        """Return where each file begins along an axis; -1 for a file that has no part of it."""
        numbers, position, _, _ = self.ranges.along(path)
        found = np.full(len(self), -1, np.int64)
        found[numbers[::-1]] = position[::-1]
        return found

    def take(self, numbers: Column) -> PieceColumns:
        """Return some files, in this order."""
        rows = self.ranges
        counts = np.diff(rows.ends)[numbers]
        ends = np.concatenate([[0], np.cumsum(counts)])
        at = np.repeat(rows.ends[numbers] - ends[:-1], counts) + np.arange(ends[-1])
        urls = self.urls
        listed = numbers.tolist()
        ranges = RangeColumns(
            axes=rows.axes,
            ends=ends,
            axis=rows.axis[at],
            position=rows.position[at],
            start=rows.start[at],
            length=rows.length[at],
        )
        lacks = {new: self.lacks[old] for new, old in enumerate(listed) if old in self.lacks} if self.lacks else {}
        return PieceColumns(urls=[urls[number] for number in listed], ranges=ranges, lacks=lacks)

    def moved(self, at: Mapping[str, Sequence[Range]], lacks: tuple[str, ...] = ()) -> PieceColumns:
        """Return these files as files of another cube, of which this one has the ranges `at`, in ascending order.

        Along an axis that only the other one has, all files are where this cube is. `lacks` has the variables of the
        other cube that this one does not have.
        """
        found = []
        for path in (*self.ranges.axes, *(path for path in at if path not in self.ranges.axes)):
            outer = np.array(at.get(path, ()), np.int64).reshape(-1, 3)
            if path in self.ranges.axes:
                found.append((path, *_place(self.ranges.along(path), outer)))
            else:
                numbers = np.repeat(np.arange(len(self)), len(outer))
                found.append((path, numbers, *np.tile(outer, (len(self), 1)).T))
        every = {number: tuple(dict.fromkeys((*own, *lacks))) for number, own in self.lacks.items()}
        if lacks:
            every = {number: every.get(number, lacks) for number in range(len(self))}
        return PieceColumns(urls=self.urls, ranges=_collect(found, len(self)), lacks=every)


def _place(inner: tuple[Column, Column, Column, Column], outer: Column) -> tuple[Column, Column, Column, Column]:
    """Return the parts of ranges that lie in the ranges `outer` of another cube, with their positions there."""
    numbers, position, start, length = inner
    moved, first, count = outer.T
    lowest = np.searchsorted(first + count, position, "right")
    counts = np.maximum(np.searchsorted(first, position + length, "left") - lowest, 0)
    rows = np.repeat(np.arange(len(numbers)), counts)
    which = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + lowest[rows]
    begin = np.maximum(position[rows], first[which])
    end = np.minimum(position[rows] + length[rows], first[which] + count[which])
    kept = begin < end
    rows, which, begin, end = rows[kept], which[kept], begin[kept], end[kept]
    return numbers[rows], moved[which] + begin - first[which], start[rows] + begin - position[rows], end - begin


def _collect(found: Sequence[tuple[str, Column, Column, Column, Column]], count: int) -> RangeColumns:
    """Return ranges along several axes as columns: the path, numbers of files, positions, starts and lengths."""
    empty = np.empty(0, np.int64)
    axis = np.concatenate([empty, *[np.full(len(one[1]), number) for number, one in enumerate(found)]])
    columns = [np.concatenate([empty, *[one[at] for one in found]]) for at in range(1, 5)]
    order = np.argsort(columns[0], kind="stable")
    numbers, position, start, length = (column[order] for column in columns)
    return RangeColumns(
        axes=tuple(one[0] for one in found),
        ends=np.searchsorted(numbers, np.arange(count + 1)),
        axis=axis[order],
        position=position,
        start=start,
        length=length,
    )


def piece_columns(pieces: Iterable[CubePieceState]) -> PieceColumns:
    """Return files as columns."""
    if isinstance(pieces, LateSequence):
        pieces = pieces.loaded()
    if isinstance(pieces, PieceColumns):
        return pieces
    numbers: dict[str, int] = {}
    urls: list[str] = []
    axis: list[int] = []
    rows: list[Range] = []
    ends = [0]
    lacks: dict[int, tuple[str, ...]] = {}
    for piece in pieces:
        if piece.lacks:
            lacks[len(urls)] = piece.lacks
        urls.append(piece.url)
        for path, ranges in piece.at.items():
            rows += ranges
            axis += repeat(numbers.setdefault(path, len(numbers)), len(ranges))
        ends.append(len(rows))
    position, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    ranges = RangeColumns(
        axes=tuple(numbers),
        ends=np.array(ends, np.int64),
        axis=np.array(axis, np.int64),
        position=position,
        start=start,
        length=length,
    )
    return PieceColumns(urls=urls, ranges=ranges, lacks=lacks)


def join_columns(several: Sequence[PieceColumns]) -> PieceColumns:
    """Return the files of several cubes, one after the other."""
    axes = tuple(dict.fromkeys(path for one in several for path in one.ranges.axes))
    firsts = np.cumsum([0, *map(len, several)])
    rows = np.cumsum([0, *[len(one.ranges.axis) for one in several]])
    tables = [np.array([axes.index(path) for path in one.ranges.axes], np.int64) for one in several]
    ends = [np.zeros(1, np.int64), *[one.ranges.ends[1:] + first for one, first in zip(several, rows, strict=False)]]
    ranges = RangeColumns(
        axes=axes,
        ends=np.concatenate(ends),
        axis=np.concatenate([t[one.ranges.axis] for one, t in zip(several, tables, strict=True)]),
        position=np.concatenate([one.ranges.position for one in several]),
        start=np.concatenate([one.ranges.start for one in several]),
        length=np.concatenate([one.ranges.length for one in several]),
    )
    lacks = {
        int(first) + at: some for one, first in zip(several, firsts, strict=False) for at, some in one.lacks.items()
    }
    return PieceColumns(urls=[url for one in several for url in one.urls], ranges=ranges, lacks=lacks)
