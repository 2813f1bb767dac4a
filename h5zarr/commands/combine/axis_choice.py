"""Choose the axis along which files are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from h5zarr.commands.combine.facts import FileFacts

_SINCE = " since "


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The axis along which files are joined, and the reason for choosing it. A new axis may have no name.

    `others` could be chosen for the same reason.
    """

    name: str | None
    is_new: bool
    reason: str
    others: tuple[str, ...] = ()


def find_axis(files: Sequence[FileFacts], along: str | None = None) -> Axis:
    """Return the axis: `along` if given; else the unlimited dimension, then time, then the only one that differs."""
    lengths = _find_lengths(files)
    if along is not None:
        is_new = along not in lengths
        return Axis(name=along, is_new=is_new, reason="you chose it" + (", and no file has it" if is_new else ""))
    differing = [name for name, found in lengths.items() if len(found) > 1]
    growing = [name for name in lengths if any(name in facts.unlimited for facts in files)]
    times = _find_times(files)
    if len(both := [name for name in growing if name in times]) == 1:
        growing = both
    for names, reason in ((growing, "it is unlimited"), (times, "it is the time dimension")):
        if names:
            chosen = next((name for name in names if name in differing), names[0])
            others = tuple(name for name in names if name != chosen)
            return Axis(name=chosen, is_new=False, reason=reason, others=others)
    if len(differing) == 1:
        return Axis(name=differing[0], is_new=False, reason="it is the only one whose length differs")
    return Axis(name=None, is_new=True, reason="no dimension is unlimited, a time dimension, or the only one to differ")


def _find_lengths(files: Sequence[FileFacts]) -> dict[str, set[int]]:
    """Return the lengths of each dimension across all files."""
    lengths: dict[str, set[int]] = {}
    for facts in files:
        for array in facts.arrays.values():
            for name, length in zip(array.dimension_names, array.shape, strict=True):
                lengths.setdefault(name, set()).add(length)
    return lengths


def _find_times(files: Sequence[FileFacts]) -> list[str]:
    """Return the dimensions whose coordinate holds times; without one, a dimension with the name time."""
    found = {}
    for facts in files:
        for path, array in facts.arrays.items():
            name = path.rpartition("/")[2]
            if array.dimension_names == (name,) and _SINCE in array.meaning["units"]:
                found[name] = True
    named = [name for facts in files for array in facts.arrays.values() for name in array.dimension_names]
    return list(found) or [name for name in dict.fromkeys(named) if name.lower() == "time"]
