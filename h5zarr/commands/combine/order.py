"""Where the elements of pieces belong along an axis, by their coordinate. Pure.

All values of the coordinate together, each once and sorted, are the axis. A piece usually fills one range of it. If
another piece has values in between, it fills several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A range of a piece along an axis: elements from `start` on are elements from `position` on of the axis."""

    position: int
    start: int
    length: int

    @property
    def stop(self) -> int:
        """The position after the last."""
        return self.position + self.length

    def within(self, start: int, length: int) -> Section | None:
        """Return what this has in common with `length` elements from `start` on of the piece; None for nothing."""
        begin, end = max(self.start, start), min(self.start + self.length, start + length)
        if begin >= end and self.length:
            return None
        return Section(self.position + begin - self.start, begin, end - begin)


Sections = tuple[Section, ...]


Numbers = npt.NDArray[np.int64]
"""Which elements of a piece are used, in ascending order."""


def stack(lengths: Sequence[int | None], used: Sequence[Numbers | None] | None = None) -> tuple[int, list[Sections]]:
    """Return the length of an axis on which pieces follow each other, and the sections of each.

    A piece of length None does not have the axis. `used` has the numbers of its elements, if it does not use them all.
    """
    sections: list[Sections] = []
    position = 0
    for number, length in enumerate(lengths):
        sections.append(() if length is None else _whole(position, length, used[number] if used else None))
        position += length or 0
    return position, sections


def _whole(position: int, length: int, used: Numbers | None) -> Sections:
    """Return the sections of a piece whose elements are next to each other on the axis."""
    if used is None:
        return (Section(position, 0, length),)
    return find_sections(position + np.arange(length), used)


def find_sections(places: Numbers, used: Numbers) -> Sections:
    """Return the sections of a piece whose elements `used` have these places on the axis."""
    first = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    first = np.union1d(first, np.flatnonzero(np.diff(used, prepend=-2) != 1))
    lengths = np.diff(np.append(first, len(places)))
    rows = zip(places[first].tolist(), used[first].tolist(), lengths.tolist(), strict=True)
    return tuple(Section(*row) for row in rows)


def place(
    values: Sequence[Values | None], used: Sequence[Numbers | None] | None = None
) -> tuple[Values, list[Sections]]:
    """Return the values of the axis, and the sections of each piece; none for a piece without the axis.

    Values that identify an element are sorted, in the direction that the pieces have. If they do not, because a piece
    is not sorted or has a value twice, whole pieces follow each other in the order of their first values, and pieces
    with exactly the same values share their place. `used` has the numbers of the elements of each piece whose values
    these are, if they are not all of its elements.
    """
    used = [None] * len(values) if used is None else used
    known = [one for one in values if one is not None and len(one)]
    if not known:
        empty = next((one for one in values if one is not None), np.empty(0))
        return empty, [() if one is None else (Section(0, 0, 0),) for one in values]
    direction = _direction(known)
    if direction == 0:
        return _place_whole(values, used)
    everything = np.concatenate(known)
    union = np.unique(everything)
    places = np.searchsorted(union, everything)
    if direction < 0:
        union, places = union[::-1], len(union) - 1 - places
    edges = np.cumsum([0, *map(len, known)])
    kept = [one for one, some in zip(used, values, strict=True) if some is not None and len(some)]
    numbers = np.concatenate([np.arange(len(v)) if n is None else n for n, v in zip(kept, known, strict=True)])
    # A new section begins where a piece begins, and where its next element is not the next of the axis.
    begins = np.ones(len(places), bool)
    begins[1:] = (np.diff(places) != 1) | (np.diff(numbers) != 1)
    begins[edges[:-1]] = True
    first = np.flatnonzero(begins)
    lengths = np.diff(np.append(first, len(places)))
    owner = np.searchsorted(edges, first, "right") - 1
    found: list[list[Section]] = [[] for _ in known]
    for at, number, length in zip(first.tolist(), owner.tolist(), lengths.tolist(), strict=True):
        found[number].append(Section(int(places[at]), int(numbers[at]), length))
    sections = iter(found)
    return union, [tuple(next(sections)) if one is not None and len(one) else () for one in values]


def _direction(values: Sequence[Values]) -> int:
    """Return 1 if all pieces ascend, -1 if all descend, and 0 if their values do not identify their elements."""
    long = [one for one in values if len(one) > 1]
    if any(one.dtype.kind not in "iufM" for one in long):
        return 0 if any(not _is_ascending(one) for one in long) else 1
    if all(bool((one[1:] > one[:-1]).all()) for one in long):
        return 1 if not any(one.dtype.kind == "f" and np.isnan(one).any() for one in values) else 0
    return -1 if all(bool((one[1:] < one[:-1]).all()) for one in long) else 0


def _is_ascending(values: Values) -> bool:
    listed = values.tolist()
    return all(one < other for one, other in pairwise(listed))


def _place_whole(values: Sequence[Values | None], used: Sequence[Numbers | None]) -> tuple[Values, list[Sections]]:
    """Place whole pieces behind each other. Pieces with the same values share a place."""
    by_content: dict[Any, list[int]] = {}
    for number, one in enumerate(values):
        if one is not None and len(one):
            content = tuple(one.tolist()) if one.dtype.kind == "O" else one.tobytes()
            by_content.setdefault((str(one.dtype), content), []).append(number)
    groups = [(values[numbers[0]], numbers) for numbers in by_content.values()]
    firsts = [one.tolist()[0] for one, _ in groups if one is not None]
    order = sorted(range(len(groups)), key=lambda at: (firsts[at] != firsts[at], firsts[at]))  # NaN comes last
    sections: list[Sections] = [() for _ in values]
    position, parts = 0, []
    for at in order:
        one, numbers = groups[at]
        assert one is not None
        for number in numbers:
            sections[number] = _whole(position, len(one), used[number])
        position += len(one)
        parts.append(one)
    return np.concatenate(parts), sections
